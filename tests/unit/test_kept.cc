// What is kept from one run to the next: arrays in a file, words of files, the index of names and
// what references were bound to. What comes back is what was given, and no bytes do harm.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/descriptor.h"
#include "base/known_words.h"
#include "base/neighbours.h"
#include "base/read_file.h"
#include "base/sections.h"
#include "facts/host/machine.h"
#include "sim/simulation.h"
#include "temp_tree.h"
#include "this_process.h"

using namespace cohabit;

namespace {

using Names = std::tuple<std::string, std::string, std::string, std::string>;

// Its start, and an open of a library that hardly anything needs: who binds what where, by names.
// A reference whose definition is nowhere has no provider.
std::set<Names> play(Images& images, sim::BindingCache& bindings, const char* opened) {
  static const Tree tree;
  static const Machine machine = read_machine(tree, kThisMachine);
  sim::Options options;
  options.cache = &bindings;
  sim::Simulation simulation(images, machine, this_process(), options);
  (void)simulation.start();
  if (opened) (void)simulation.dlopen(opened, RTLD_NOW);
  std::set<Names> bound;
  const auto path = [&](sim::ObjectId id) {
    return images[simulation.objects()[id].image].real_path;
  };
  simulation.bindings().each([&](uint32_t, const sim::Binding& binding) {
    bound.insert({path(binding.from),
                  std::string(simulation.elf(binding.from).symbol_name(binding.reference)),
                  path(binding.to),
                  std::string(simulation.elf(binding.to).symbol_name(binding.definition))});
  });
  return bound;
}

struct Run {
  explicit Run(const Tree& tree) : images(tree) {}
  MappedFile file;
  Images images;
  sim::BindingCache bindings;

  bool give(const std::string& path) const {
    Packer packer;
    SectionWriter content, all;
    if (!images.give_index(packer, content)) return false;
    bindings.give(packer, content);
    all.add(std::span<const char>(packer.bytes()));
    all.add(content);
    const Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    return all.write(fd.get(), "key");
  }
  bool take(const std::string& path) {
    const Descriptor fd(::open(path.c_str(), O_RDONLY));
    file = std::move(*MappedFile::map(fd.get(), path));
    auto sections = SectionReader::open(file.bytes(), "key");
    if (!sections) return false;
    Unpacker unpacker(sections->next_text());
    return images.take_index(unpacker, *sections) && bindings.take(images, unpacker, *sections);
  }
};

std::vector<std::string> sections_of(const std::string& path) {
  const std::string text = *read_file(path);
  auto reader = SectionReader::open(Bytes(std::string_view(text)), "key");
  REQUIRE(reader);
  std::vector<std::string> sections;
  for (;;) {
    const std::string_view section = reader->next_text();
    if (reader->failed()) return sections;
    sections.emplace_back(section);
  }
}

void write(const std::string& path, const std::vector<std::string>& sections) {
  SectionWriter writer;
  for (const std::string& section : sections) writer.add(std::span<const char>(section));
  const Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
  REQUIRE(writer.write(fd.get(), "key"));
}

constexpr const char* kSeldomNeeded = "libBrokenLocale.so.1";

}  // namespace

TEST_CASE("arrays in a file: what was written, and nothing once a byte is another") {
  const TempTree temp;
  const std::vector<uint32_t> numbers = {1, 2, 3, 0xffffffff};
  const std::string text = "a text";
  SectionWriter writer;
  writer.add(std::span(numbers));
  writer.add(std::span<const uint32_t>());
  writer.add(std::span<const char>(text));
  const Descriptor fd(::open((temp / "f").c_str(), O_WRONLY | O_CREAT, 0600));
  REQUIRE(writer.write(fd.get(), "who may read it"));
  const std::string good = *read_file(temp / "f");

  auto reader = SectionReader::open(Bytes(std::string_view(good)), "who may read it");
  REQUIRE(reader);
  const auto back = reader->next<uint32_t>();
  CHECK(std::vector(back.begin(), back.end()) == numbers);
  CHECK(reader->next<uint64_t>().empty());
  CHECK(reader->next<uint32_t>().empty());  // six bytes are no numbers of four
  CHECK(reader->failed());
  CHECK_FALSE(SectionReader::open(Bytes(std::string_view(good)), "who may read"));

  for (size_t i = 0; i < good.size(); i++) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    CHECK_FALSE(SectionReader::open(Bytes(std::string_view(damaged)), "who may read it"));
    CHECK_FALSE(SectionReader::open(Bytes(std::string_view(good).substr(0, i)), "who may read it"));
  }
  CHECK_FALSE(reader->is_known());
  const auto known = SectionReader::open(Bytes(std::string_view(good)), "who may read it", true);
  REQUIRE(known);
  CHECK(known->is_known());
  CHECK_FALSE(SectionReader::open(Bytes(std::string_view(good)), "who may read", true));
}

TEST_CASE("words of files come back for the same file and kind") {
  KnownWords words;
  const KnownWords::File file{1, 2, 3, 4, 5}, changed{1, 2, 3, 4, 6};
  CHECK_FALSE(words.has_new());
  words.add(file, "kind", {"a", "", "b"});
  words.add(changed, "kind", {});
  CHECK(words.has_new());
  Packer packer;
  words.pack(packer, 6, true);  // what has changed at 6 or later may change once more unseen

  KnownWords later;
  const auto owner = std::make_shared<const std::string>(packer.bytes());
  REQUIRE(later.unpack(*owner, owner));
  CHECK(later.find(file, "kind") == KnownWords::Words{"a", "", "b"});
  CHECK_FALSE(later.find(file, "other"));
  CHECK_FALSE(later.find(changed, "kind"));
  CHECK_FALSE(later.has_new());
  Packer asked, unasked;
  KnownWords idle;
  REQUIRE(idle.unpack(*owner, owner));
  idle.pack(unasked, 6, false);
  later.pack(asked, 6, false);
  CHECK(unasked.bytes() == std::string(1, '\0'));
  CHECK(asked.bytes() == packer.bytes());
  for (size_t size = 0; size < packer.bytes().size(); size++) {
    KnownWords none;
    CHECK_FALSE(none.unpack(std::string_view(*owner).substr(0, size), owner));
    CHECK_FALSE(none.find(file, "kind"));
  }
}

TEST_CASE("stat of neighbours is stat") {
  const TempTree temp;
  temp.file("a/b/one");
  temp.file("a/b/two", "text");
  temp.file("a/c/one", "longer text");
  temp.link("a/link", "b");
  temp.link("a/b/nowhere", "nothing");
  Neighbours neighbours;
  const std::string paths[] = {temp / "a/b/one",
                               temp / "a/b/two",
                               temp / "a/b/none",
                               temp / "a/b/nowhere",
                               temp / "a/b/",
                               temp / "a/b/..",
                               temp / "a/link/two",
                               temp / "a/link/",
                               temp / "a/link/one",
                               temp / "a/b/one/x",
                               temp / "a/b/one/y",
                               temp / "none/x",
                               temp / "none/y",
                               temp / "a/c/one",
                               temp / "a/b/one",
                               "/",
                               "",
                               "relative",
                               temp / "a/b",
                               "/proc/self"};
  for (const std::string& path : paths) {
    struct stat one{}, other{};
    const int expected = ::stat(path.c_str(), &one), expected_error = expected ? errno : 0;
    const int found = neighbours.stat(path, other), error = found ? errno : 0;
    CHECK_MESSAGE(found == expected, path);
    CHECK_MESSAGE(error == expected_error, path);
    if (found != 0) continue;
    CHECK_MESSAGE(one.st_ino == other.st_ino, path);
    CHECK_MESSAGE(one.st_size == other.st_size, path);
  }
}

TEST_CASE("the index of an earlier run binds as this one does, and takes what is new") {
  const TempTree temp;
  const Tree tree;
  Run first(tree);
  const std::set<Names> bound = play(first.images, first.bindings, nullptr);
  REQUIRE(bound.size() > 1000);
  REQUIRE(first.give(temp / "index"));

  Run second(tree);
  REQUIRE(second.take(temp / "index"));
  CHECK(second.images.size() == first.images.size());
  CHECK(second.images.name_count() == first.images.name_count());
  CHECK(second.bindings.size() == first.bindings.size());
  CHECK(play(second.images, second.bindings, nullptr) == bound);
  CHECK(second.images.name_count() == first.images.name_count());
  CHECK(second.bindings.size() == first.bindings.size());  // nothing was looked up again
  for (NameId name = 0; name < first.images.name_count(); name++)
    REQUIRE(second.images.find_name(first.images.name(name)) == name);

  // One more library, whose names and references come to it.
  const std::set<Names> more = play(first.images, first.bindings, kSeldomNeeded);
  CHECK(more.size() > bound.size());
  CHECK(play(second.images, second.bindings, kSeldomNeeded) == more);
  CHECK(second.images.name_count() == first.images.name_count());
  REQUIRE(second.give(temp / "more"));
  Run third(tree);
  REQUIRE(third.take(temp / "more"));
  CHECK(play(third.images, third.bindings, kSeldomNeeded) == more);
  CHECK(play(third.images, third.bindings, nullptr) == bound);
}

TEST_CASE("an index is nothing once one of its files has changed") {
  const TempTree temp;
  const Tree tree;
  Run first(tree);
  const Images::Probe& libc = first.images.open("/lib64/ld-linux-x86-64.so.2", kThisMachine);
  if (libc.image == kNone) return;  // of another processor
  temp.file("lib.so", *read_file(first.images[libc.image].path));
  Run copy(tree);
  REQUIRE(copy.images.open(temp / "lib.so", kThisMachine).image == 0);
  copy.images.index(0);
  REQUIRE(copy.give(temp / "index"));
  REQUIRE(Run(tree).take(temp / "index"));
  const auto refuses = [&] {
    Run later(tree);
    CHECK_FALSE(later.take(temp / "index"));
    CHECK(later.images.name_count() == 0);
    if (later.images.size() == 0) return;
    CHECK_FALSE(later.images[0].indexed);
    later.images.index(0);
    CHECK(later.images.name_count() == copy.images.name_count());
  };
  // The time of its inode tells.
  REQUIRE(::chmod((temp / "lib.so").c_str(), 0640) == 0);
  refuses();
  temp.file("lib.so", "no library");
  refuses();
  REQUIRE(::unlink((temp / "lib.so").c_str()) == 0);
  refuses();
}

// With a right digest: as from a program that errs.
TEST_CASE("no numbers in an index do harm") {
  const TempTree temp;
  const Tree tree;
  Run first(tree);
  const std::set<Names> bound = play(first.images, first.bindings, kSeldomNeeded);
  REQUIRE(first.give(temp / "index"));
  const std::vector<std::string> good = sections_of(temp / "index");
  write(temp / "same", good);
  REQUIRE(Run(tree).take(temp / "same"));
  std::mt19937 random(20261126);
  int taken = 0, refused = 0;
  for (int round = 0; round < 400; round++) {
    std::vector<std::string> sections = good;
    std::string& section = sections[round % sections.size()];
    if (section.empty()) continue;
    if (round % 7 == 0) {
      section.resize(section.size() / 2);
    } else {
      const size_t at = random() % section.size();
      constexpr char kValues[] = {0, 1, 2, 0x7f, '\x80', '\xff'};
      for (size_t i = at; i < std::min(section.size(), at + 1 + random() % 4); i++)
        section[i] = kValues[random() % sizeof kValues];
    }
    write(temp / "other", sections);
    Run later(tree);
    (later.take(temp / "other") ? taken : refused)++;
    (void)play(later.images, later.bindings, kSeldomNeeded);
    for (NameId name = 0; name < later.images.name_count(); name += 97)
      (void)later.images.find_name(later.images.name(name));
  }
  CHECK(refused > 100);
  CHECK(taken > 0);  // some numbers are as good as others: which definition of its table, say
}
