// Expected values come from outside: data/ldcache_worlds.txt holds caches with the answers of a
// real ld.so (ldcache_worlds.py makes it), and `ldconfig -p` lists the cache of this machine.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "base/tree.h"
#include "facts/host/ldcache.h"
#include "temp_tree.h"

using namespace cohabit;

namespace {

// The machine that the worlds were tried on: Debian's glibc 2.36 on an AMD CPU of level 3.
const std::vector<std::string> kActive = {"x86-64-v3", "x86-64-v2"};
const LegacyHwcap kLegacy = {uint64_t{1} << 63 | 2, uint64_t{0xf} << 48, ~uint64_t{0}};
constexpr uint16_t kX86_64 = 62;

int hex_digit(char c) {
  return c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(hex_digit(text[i]) * 16 + hex_digit(text[i + 1]));
  return bytes;
}

std::string unquote(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); i++) {
    result += text[i] == '%' ? from_hex(text.substr(i + 1, 2)) : std::string(1, text[i]);
    if (text[i] == '%') i += 2;
  }
  return result;
}

struct World {
  std::string cache;
  std::map<std::string, std::string> answers;
};

std::vector<World> read_worlds() {
  std::vector<World> worlds;
  std::ifstream file(COHABIT_SOURCE_DIR "/tests/unit/data/ldcache_worlds.txt");
  for (std::string line; std::getline(file, line);) {
    std::stringstream fields(line);
    std::string field;
    std::getline(fields, field, '\t');
    World world{from_hex(field), {}};
    while (std::getline(fields, field, '\t')) {
      const std::string pair = unquote(field);
      world.answers[pair.substr(0, pair.find('='))] = pair.substr(pair.find('=') + 1);
    }
    worlds.push_back(world);
  }
  return worlds;
}

void put(std::string& bytes, uint64_t value, int size) {
  for (int i = 0; i < size; i++) bytes += static_cast<char>(value >> (8 * i));
}

struct NewEntry {
  std::string name, path;
  int32_t flags;
};
std::string new_cache(const std::vector<NewEntry>& entries) {
  std::string table, strings;
  for (const NewEntry& entry : entries) {
    const uint64_t key = 48 + 24 * entries.size() + strings.size();
    strings += entry.name + '\0';
    put(table, static_cast<uint32_t>(entry.flags), 4);
    put(table, key, 4);
    put(table, 48 + 24 * entries.size() + strings.size(), 4);
    put(table, 0, 4);
    put(table, 0, 8);
    strings += entry.path + '\0';
  }
  std::string bytes = "glibc-ld.so.cache1.1";
  put(bytes, entries.size(), 4);
  put(bytes, strings.size(), 4);
  put(bytes, 2, 4);
  bytes.append(16, '\0');
  return bytes + table + strings;
}

LdCache parse(const std::string& text) {
  return LdCache::parse(Bytes(std::string_view(text)));
}

}  // namespace

TEST_CASE("ld.so.cache: the real ld.so's answers, in all formats, sorted or not, sound or not") {
  const std::vector<World> worlds = read_worlds();
  REQUIRE(worlds.size() >= 50);
  int found = 0;
  for (size_t i = 0; i < worlds.size(); i++) {
    const LdCache cache = parse(worlds[i].cache);
    for (const auto& [name, answer] : worlds[i].answers) {
      CAPTURE(i);
      CAPTURE(name);
      CHECK(cache.lookup(name, kX86_64, kActive, kLegacy).value_or("-") == answer);
      found += answer != "-";
    }
  }
  CHECK(found > 200);
}

TEST_CASE("ld.so.cache: this machine's, as ldconfig -p lists it") {
  const std::string listing = output_of("PATH=$PATH:/sbin:/usr/sbin LC_ALL=C ldconfig -p");
  const auto file = Tree().map("/etc/ld.so.cache");
  if (listing.empty() || !file) {
    MESSAGE("skipped: no ldconfig or no /etc/ld.so.cache here");
    return;
  }
  const LdCache cache = LdCache::parse(file->bytes());
  CHECK(cache.problems().empty());
  std::stringstream lines(listing);
  std::string line;
  std::getline(lines, line);
  size_t count = 0;
  std::map<std::string, std::string> first;  // of x86-64, not from a hwcaps directory
  while (std::getline(lines, line) && line.starts_with("\t")) {
    const size_t open = line.find(" (");
    const size_t arrow = line.find(" => ");
    REQUIRE(arrow != std::string::npos);
    REQUIRE(count < cache.entries().size());
    const LdCache::Entry& entry = cache.entries()[count++];
    CHECK(entry.name == line.substr(1, open - 1));
    CHECK(entry.path == line.substr(arrow + 4));
    const std::string kind = line.substr(open, arrow - open);
    if (kind == " (libc6,x86-64)") first.emplace(entry.name, entry.path);
  }
  CHECK(count == cache.entries().size());
  for (const auto& [name, path] : first) CHECK(cache.lookup(name, kX86_64, {}) == path);
}

TEST_CASE("ld.so.cache: each machine takes its own entries") {
  const LdCache cache = parse(new_cache(
      {{"libx.so", "/arm", 0x0a03}, {"libx.so", "/x86", 0x0303}, {"libx.so", "/old", 3}}));
  CHECK(cache.lookup("libx.so", 62, {}) == "/x86");
  CHECK(cache.lookup("libx.so", 183, {}) == "/arm");
  CHECK_FALSE(cache.lookup("liby.so", 62, {}));
}

TEST_CASE("ld.so.cache: files that ld.so ignores") {
  const std::string good = new_cache({{"libx.so", "/x", 0x0303}});
  CHECK(parse(good).lookup("libx.so", 62, {}) == "/x");
  std::string big_endian = good;
  big_endian[28] = 3;
  std::string lying = good;
  lying[20] = 100;
  const std::string broken[] = {
      "",         "x",   "glibc-ld.so.cache1.1", good.substr(0, 48),
      big_endian, lying, "ld.so-1.7.0",          std::string("ld.so-1.7.0\0\xff\xff\xff\xff", 16)};
  for (const std::string& text : broken) {
    const LdCache cache = parse(text);
    CHECK_FALSE(cache.lookup("libx.so", 62, {}));
    CHECK(cache.problems().size() == 1);
  }
}

TEST_CASE("ld.so.cache: copies stay valid") {
  LdCache copy;
  {
    const LdCache cache = parse(new_cache({{"libx.so", "/x", 0x0303}}));
    copy = cache;
  }
  CHECK(copy.entries()[0].name == "libx.so");
  CHECK(copy.lookup("libx.so", 62, {}) == "/x");
}

TEST_CASE("ld.so.cache: a file of only overlapping strings costs no more than its size") {
  std::string text = "glibc-ld.so.cache1.1";
  constexpr uint32_t kCount = 40000;
  put(text, kCount, 4);
  put(text, 0, 4);
  put(text, 2, 4);
  text.append(16, '\0');
  for (uint32_t i = 0; i < kCount; i++) {
    put(text, 0x0303, 4);
    put(text, 48 + 24 * kCount, 4);
    put(text, 48 + 24 * kCount, 4);
    put(text, 0, 4);
    put(text, 0, 8);
  }
  text += std::string(1 << 20, 'l');
  CHECK_FALSE(parse(text).lookup(std::string(1 << 20, 'l'), 62, {}));
}
