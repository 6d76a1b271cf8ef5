// What is noted of reads, and what of a bundle's holes. One test case: doctest takes SIGSEGV at the
// start of each, and our handler is installed once.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "base/touch_log.h"
#include "base/tree.h"
#include "imports/file_strings.h"
#include "temp_tree.h"

using namespace cohabit;

namespace {

constexpr size_t kUnits = 8;

char byte_at(const MappedFile& map, size_t at) {
  return *static_cast<const volatile char*>(map.bytes().text().data() + at);
}

MappedFile::Words words(const MappedFile& map, int& calls) {
  return map.extract("first letters", [&](Bytes bytes) {
    calls++;
    return MappedFile::Words{std::string(bytes.text().substr(0, 2)),
                             std::string(bytes.text().substr(kTouchUnit, 1))};
  });
}

// Of a mapped file the units that were read.
void check_units() {
  const TempTree temp;
  temp.file("a", std::string(kUnits * kTouchUnit - 10, 'a'));
  TouchLog log(TouchLog::Of::kMachine);
  Tree tree;
  tree.set_log(&log);
  const std::string path = temp.path() + "/a";
  {
    const auto map = tree.map(path);
    REQUIRE(map);
    CHECK(byte_at(*map, 0) == 'a');
    CHECK(byte_at(*map, 3 * kTouchUnit - 1) == 'a');
    CHECK(byte_at(*map, 3 * kTouchUnit) == 'a');
    CHECK(byte_at(*map, kUnits * kTouchUnit - 11) == 'a');
  }
  const TouchLog::Ranges expected = {
      {0, kTouchUnit}, {2 * kTouchUnit, 4 * kTouchUnit}, {7 * kTouchUnit, 8 * kTouchUnit - 10}};
  REQUIRE(log.paths().contains(path));
  CHECK(log.paths().at(path).ranges == expected);
}

// What was worked out of a file is noted instead of its bytes.
void check_extracts() {
  const TempTree temp;
  temp.file("a", "xy" + std::string(2 * kTouchUnit, 'z'));
  const std::string path = temp.path() + "/a";
  TouchLog log(TouchLog::Of::kMachine);
  Tree tree;
  tree.set_log(&log);
  int calls = 0;
  const std::string linked = temp.path() + "/linked";
  REQUIRE(::link(path.c_str(), linked.c_str()) == 0);
  CHECK(words(*tree.map(path), calls) == MappedFile::Words{"xy", "z"});
  CHECK(words(*tree.map(linked), calls) == MappedFile::Words{"xy", "z"});
  CHECK(calls == 1);
  CHECK(log.paths().at(path).ranges.empty());

  // The same elsewhere: the bytes are a hole.
  TouchLog other(TouchLog::Of::kBundle);
  other.set_extracts(log.extracts(), {{tree.stat(path)->id, path}});
  temp.file("a", "");
  REQUIRE(::truncate(path.c_str(), 3 * kTouchUnit) == 0);
  tree.set_log(&other);
  // By which path the file is opened is no matter.
  for (const std::string& same : {path, temp.path() + "/./a", linked}) {
    CHECK(words(*tree.map(same), calls) == MappedFile::Words{"xy", "z"});
    CHECK(calls == 1);
  }
  CHECK(other.lacking().empty());
  other.set_extracts({}, {});
  CHECK(words(*tree.map(path), calls).front() == std::string(2, '\0'));
  CHECK(other.lacking() == std::set<std::string>{path});
}

// What is read for an answer depends on how much the same thread was asked before, and on a bundle
// each thread may be asked something else.
void check_answers() {
  const TempTree temp;
  std::string text = std::string("\0near\0", 6) + std::string(3 * kTouchUnit, '\1');
  text.append(std::string("\0far\0kind_%d\0", 13));
  temp.file("a", text);
  const std::string path = temp.path() + "/a";
  Tree tree;
  const auto open = [&] { return python::FileStrings(std::move(*tree.map(path))); };
  TouchLog log(TouchLog::Of::kMachine);
  tree.set_log(&log);
  for (int thread = 0; thread < 2; thread++) {
    python::FileStrings strings = open();
    CHECK(strings.has("near"));
    CHECK(strings.has(thread == 0 ? "far" : "near"));
    CHECK(!strings.has("none"));
    CHECK(strings.may_make("kind_7"));
    CHECK(!strings.may_be_inlined("none so far"));
  }
  CHECK(log.paths().at(path).ranges.empty());

  TouchLog other(TouchLog::Of::kBundle);
  other.set_extracts(log.extracts(), {{tree.stat(path)->id, path}});
  temp.file("a", "");
  REQUIRE(::truncate(path.c_str(), static_cast<off_t>(text.size())) == 0);
  tree.set_log(&other);
  {
    python::FileStrings strings = open();
    for (int times = 0; times < 4; times++) CHECK(strings.has("near"));
    CHECK(strings.has("far"));
    CHECK(!strings.has("none"));
    CHECK(strings.may_make("kind_7"));
    CHECK(!strings.may_be_inlined("none so far"));
  }
  CHECK(other.lacking().empty());
  CHECK(!open().has("another"));
  CHECK(other.lacking() == std::set<std::string>{path});
}

}  // namespace

TEST_CASE("touch log: units that were read, and words in place of bytes") {
  check_units();
  check_extracts();
  check_answers();
}
