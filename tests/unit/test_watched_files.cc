// What counts as unchanged. Times are set by the kernel, so the tests wait for its clock.
#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "base/tree.h"
#include "base/watched_files.h"
#include "temp_tree.h"

using namespace cohabit;

namespace {

void wait_for_clock() {
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
}

}  // namespace

TEST_CASE("what was led elsewhere meanwhile is not kept") {
  const TempTree temp;
  for (const char* of : {"one", "two"}) {
    temp.file(std::string(of) + "/lib/inner/a", of);
    temp.file(std::string(of) + "/lib/b", of);
  }
  temp.link("cur", "one");
  temp.link("file", "one/lib/b");
  temp.link("far", "near");
  temp.link("near", "one/lib");
  wait_for_clock();
  // What has changed less than kTick before the start is not believed: this start is later.
  const int64_t start = WatchedFiles::now() + WatchedFiles::kTick;
  wait_for_clock();
  TouchLog log(TouchLog::Of::kMachine);
  Tree tree;
  tree.set_log(&log);
  for (const char* path :
       {"cur/lib/inner/a", "cur/lib/b", "one/lib/missing/c", "file", "far/b", "one/lib/b"})
    (void)tree.read_text(temp / path);
  (void)tree.list(temp / "far");
  (void)tree.list(temp / "one/lib/b");  // a file has no names

  const auto swap = [&](const char* link, const char* target) {
    temp.link("new", target);
    REQUIRE(std::rename((temp / "new").c_str(), (temp / link).c_str()) == 0);
  };
  SUBCASE("nothing") {
    CHECK(WatchedFiles::of(log, start));
  }
  SUBCASE("names beside") {
    temp.file("beside");
    temp.directory("more");
    CHECK(WatchedFiles::of(log, start));
  }
  SUBCASE("a link to a directory") {
    swap("cur", "two");
    CHECK_FALSE(WatchedFiles::of(log, start));
  }
  SUBCASE("a link to a file") {
    swap("file", "two/lib/b");
    CHECK_FALSE(WatchedFiles::of(log, start));
  }
  SUBCASE("a link behind a link") {
    swap("near", "two/lib");
    CHECK_FALSE(WatchedFiles::of(log, start));
  }
  SUBCASE("a directory that is only passed by") {
    REQUIRE(std::rename((temp / "one").c_str(), (temp / "old").c_str()) == 0);
    REQUIRE(std::rename((temp / "two").c_str(), (temp / "one").c_str()) == 0);
    CHECK_FALSE(WatchedFiles::of(log, start));
  }
}
