// The index of names, on libraries so large that other threads read their references: what comes
// out is what a single thread reads, whole or damaged, indexed or thrown away unread.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/tree.h"
#include "facts/elf/format.h"
#include "temp_tree.h"
#include "world/images.h"

using namespace cohabit;

namespace {

constexpr uint32_t kGlobDat = 6;  // R_X86_64_GLOB_DAT

template <class T>
void append(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// A library that refers to `count` names: 4096 of them have one hash, one lies outside the string
// table.
struct LargeLibrary {
  uint32_t count;
  uint64_t strings_at = 0, relocations_at = 0, size = 0;

  static std::string name(uint32_t i) {
    // Pairs of letters "Ab" and "BA" hash alike (33 * 'A' + 'b' == 33 * 'B' + 'A').
    std::string text = "n";
    if (i >= 4096) return text + std::to_string(i);
    for (uint32_t bit = 0; bit < 12; bit++) text += i >> bit & 1 ? "Ab" : "BA";
    return text;
  }

  std::string bytes() {
    constexpr uint64_t kHeader = sizeof(elf::Ehdr) + 2 * sizeof(elf::Phdr);
    std::string strings(1, '\0'), symbols, relocations, dynamic;
    append(symbols, elf::Sym{});
    for (uint32_t i = 0; i < count; i++) {
      elf::Sym symbol{};
      symbol.st_name = i == 7 ? 0xfffffff0u : static_cast<uint32_t>(strings.size());
      symbol.st_info = elf::STB_GLOBAL << 4;
      append(symbols, symbol);
      strings += name(i) + '\0';
      const elf::Rela relocation{0, uint64_t{i + 1} << 32 | kGlobDat, 0};
      append(relocations, relocation);
    }
    const uint64_t symbols_at = kHeader;
    relocations_at = symbols_at + symbols.size();
    const uint64_t dynamic_at = relocations_at + relocations.size();
    strings_at = dynamic_at + 6 * sizeof(elf::Dyn);
    size = strings_at + strings.size();
    append(dynamic, elf::Dyn{elf::DT_STRTAB, strings_at});
    append(dynamic, elf::Dyn{elf::DT_STRSZ, strings.size()});
    append(dynamic, elf::Dyn{elf::DT_SYMTAB, symbols_at});
    append(dynamic, elf::Dyn{elf::DT_RELA, relocations_at});
    append(dynamic, elf::Dyn{elf::DT_RELASZ, relocations.size()});
    append(dynamic, elf::Dyn{elf::DT_NULL, 0});

    std::string file;
    elf::Ehdr header{};
    std::memcpy(header.e_ident, "\177ELF\2\1\1", 7);
    header.e_type = elf::ET_DYN;
    header.e_machine = elf::EM_X86_64;
    header.e_version = 1;
    header.e_phoff = sizeof header;
    header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof(elf::Phdr);
    header.e_phnum = 2;
    append(file, header);
    append(file, elf::Phdr{elf::PT_LOAD, elf::PF_R | elf::PF_W, 0, 0, 0, size, size, 4096});
    append(file, elf::Phdr{elf::PT_DYNAMIC, elf::PF_R | elf::PF_W, dynamic_at, dynamic_at, 0,
                           dynamic.size(), dynamic.size(), 8});
    return file + symbols + relocations + dynamic + strings;
  }
};

// Enough for the thread that reads early, and for the one that hashes the other half.
constexpr uint32_t kLarge = 60000;

ImageId open_image(Images& images, const std::string& path) {
  const ImageId id = images.open(path, elf::EM_X86_64).image;
  REQUIRE(id != kNone);
  return id;
}

}  // namespace

TEST_CASE("a large library's references have the names that stand in its string table") {
  const TempTree directory;
  LargeLibrary library{kLarge};
  directory.file("large.so", library.bytes());
  const Tree tree;
  Images images(tree);
  const ImageId id = open_image(images, directory / "large.so");
  images.index(id);
  const Image& image = images[id];
  REQUIRE(image.references.size() == kLarge);
  size_t wrong = 0;
  for (uint32_t i = 0; i < kLarge; i++)
    wrong += images.name(image.references[i].name) != (i == 7 ? "" : LargeLibrary::name(i));
  CHECK(wrong == 0);
  CHECK(images.name_count() == kLarge);
}

TEST_CASE("large libraries that are opened and never indexed leave no thread behind") {
  const TempTree directory;
  LargeLibrary library{kLarge};
  const std::string bytes = library.bytes();
  const Tree tree;
  for (int round = 0; round < 3; round++) {
    Images images(tree);
    for (int i = 0; i < 4; i++) {
      const std::string name = "copy" + std::to_string(round) + std::to_string(i) + ".so";
      directory.file(name, bytes);
      open_image(images, directory / name);
    }
  }
}

TEST_CASE("a large library that shrinks while other threads read it") {
  const TempTree directory;
  LargeLibrary library{kLarge};
  const std::string bytes = library.bytes();
  for (const uint64_t left :
       {uint64_t{4096}, library.relocations_at, library.strings_at, library.strings_at + 100000}) {
    directory.file("shrinks.so", bytes);
    const Tree tree;
    Images images(tree);
    const ImageId id = open_image(images, directory / "shrinks.so");
    REQUIRE(truncate((directory / "shrinks.so").c_str(), static_cast<off_t>(left)) == 0);
    images.index(id);
    CHECK(images[id].references.size() <= kLarge);
    CHECK(images.name_count() <= kLarge);
    REQUIRE(unlink((directory / "shrinks.so").c_str()) == 0);
  }
}

TEST_CASE("a large library that is cut short, or whose tables lie, is indexed as far as it goes") {
  const TempTree directory;
  LargeLibrary library{kLarge};
  const std::string bytes = library.bytes();
  std::vector<std::string> damaged;
  for (uint64_t size = 500; size < bytes.size(); size += bytes.size() / 13)
    damaged.push_back(bytes.substr(0, size));
  for (const char filler : {'\0', '\1', '\xff'}) {
    damaged.push_back(bytes);
    std::memset(damaged.back().data() + library.strings_at, filler,
                bytes.size() - library.strings_at);
    damaged.push_back(bytes);
    std::memset(damaged.back().data() + library.relocations_at, filler, 700000);
    damaged.push_back(bytes);
    std::memset(damaged.back().data() + 200, filler, 900000);  // symbols
  }
  const Tree tree;
  for (size_t i = 0; i < damaged.size(); i++) {
    const std::string name = "damaged" + std::to_string(i) + ".so";
    directory.file(name, damaged[i]);
    Images images(tree);
    const ImageId id = open_image(images, directory / name);
    images.index(id);
    CHECK(images[id].references.size() <= kLarge);
    for (const Reference& reference : images[id].references)
      REQUIRE(reference.name < images.name_count());
  }
}
