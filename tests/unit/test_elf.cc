// The ELF reader, against the hash values that the specifications print and the machine's own libc.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "base/tree.h"
#include "facts/elf/object.h"
#include "world/images.h"

using namespace cohabit;

TEST_CASE("hash functions give the values of the specifications") {
  // "DT_GNU_HASH" by U. Drepper and A. Roenne's note; System V gABI, chapter 5.
  CHECK(elf::gnu_hash("") == 0x00001505);
  CHECK(elf::gnu_hash("printf") == 0x156b2bb8);
  CHECK(elf::gnu_hash("exit") == 0x7c967e3f);
  CHECK(elf::gnu_hash("syscall") == 0xbac212a0);
  CHECK(elf::gnu_hash("flapenguin.me") == 0x8ae9f18e);
  CHECK(elf::sysv_hash("") == 0);
  CHECK(elf::sysv_hash("printf") == 0x077905a6);
  CHECK(elf::sysv_hash("exit") == 0x0006cf04);
  CHECK(elf::sysv_hash("syscall") == 0x0b09985c);
}

TEST_CASE("gnu_hash_of_string reads to the NUL, at any length and near the end of the file") {
  std::string text;
  for (int length = 0; length < 40; length++) {
    for (const size_t after : {0, 1, 7, 8, 30}) {
      const std::string file = text + '\0' + std::string(after, '\xff');
      CHECK(elf::gnu_hash_of_string(Bytes(file)) == elf::gnu_hash(text));
    }
    CHECK(elf::gnu_hash_of_string(Bytes(text)) == elf::gnu_hash(""));  // no NUL
    text += static_cast<char>(length % 2 ? 0x80 + length : 0xff - length);
  }
  CHECK(elf::gnu_hash_of_string(Bytes()) == elf::gnu_hash(""));
}

TEST_CASE("the C library is read as the loader has it") {
  Dl_info info{};
  REQUIRE(dladdr(reinterpret_cast<void*>(&dlsym), &info) != 0);
  const Tree tree;
  Images images(tree);
  const Images::Probe& probe = images.open(info.dli_fname, elf::EM_X86_64);
  if (probe.header.verdict == elf::HeaderVerdict::kOtherMachine) return;  // not an x86-64 machine
  REQUIRE(probe.image != kNone);
  images.index(probe.image);
  const Image& libc = images[probe.image];
  CHECK(libc.elf.defects.empty());
  CHECK(libc.elf.soname == "libc.so.6");
  CHECK(libc.elf.has_dynamic);
  CHECK(libc.elf.stack == elf::StackDemand::kNonExecutable);
  int found = 0;
  for (const char* name : {"malloc", "printf", "dlsym", "pthread_create", "memcpy"}) {
    const NameId id = images.find_name(name);
    CAPTURE(name);
    CHECK(id != kNone);
    found += dlsym(RTLD_DEFAULT, name) != nullptr && images.first_definition(id) != kNone;
  }
  CHECK(found == 5);
  CHECK(images.find_name("no_such_function_in_libc") == kNone);
}

TEST_CASE("one file by two paths is one image") {
  const Tree tree;
  Images images(tree);
  const ImageId a = images.open("/proc/self/exe", elf::EM_X86_64).image;
  const ImageId b = images.open("/proc/thread-self/exe", elf::EM_X86_64).image;
  CHECK(a == b);
}

TEST_CASE("headers are refused with the loader's words") {
  const auto message = [](std::string_view bytes) {
    return elf::check_header(Bytes(bytes), elf::EM_X86_64).message;
  };
  CHECK(message("") == "file too short");
  CHECK(message(std::string(64, 'x')) == "invalid ELF header");
  std::string header("\177ELF\2\2\1", 7);
  header.resize(64);
  header[18] = 62;  // e_machine
  CHECK(message(header) == "ELF file data encoding not little-endian");
  header[18] = 40;
  CHECK(elf::check_header(Bytes(header), elf::EM_X86_64).verdict ==
        elf::HeaderVerdict::kOtherMachine);
  header[4] = 1;
  CHECK(elf::check_header(Bytes(header), elf::EM_X86_64).verdict ==
        elf::HeaderVerdict::kOtherClass);
}

TEST_CASE("a truncated file has defects and does no harm") {
  const Tree tree;
  const auto map = tree.map("/proc/self/exe");
  REQUIRE(map);
  for (const uint64_t size : {0u, 1u, 63u, 64u, 100u, 4096u, 10000u}) {
    CAPTURE(size);
    const elf::Object object = elf::parse(*map->bytes().slice(0, size));
    CHECK_FALSE(object.defects.empty());
  }
}
