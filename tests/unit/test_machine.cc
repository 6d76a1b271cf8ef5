// Expected values come from the machine's own ld.so, run with --help and --list-diagnostics, which
// glibc has since 2.33; where it is older or absent these parts are skipped, and say so.
#include <doctest/doctest.h>

#include <sstream>

#include "facts/host/machine.h"
#include "temp_tree.h"

using namespace cohabit;

namespace {

#if defined(__aarch64__)
constexpr uint16_t kHere = 183;
#else
constexpr uint16_t kHere = 62;
#endif

// The value of NAME="value" (or NAME=value) in ld.so's diagnostics.
std::string diagnostic(const std::string& text, const std::string& name) {
  const size_t at = text.find("\n" + name + "=");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 2;
  std::string value = text.substr(begin, text.find('\n', begin) - begin);
  if (value.starts_with('"')) value = value.substr(1, value.size() - 2);
  return value;
}

bool contains(const std::vector<std::string>& list, const std::string& part) {
  for (const std::string& text : list)
    if (text.find(part) != std::string::npos) return true;
  return false;
}

// A stand-in for ld.so or libc.so.6: an ELF header and what we look for.
std::string fake_object(uint16_t machine, const std::string& text) {
  std::string bytes =
      "\x7f"
      "ELF\2\1\1";
  bytes.resize(18);
  bytes += static_cast<char>(machine);
  bytes += static_cast<char>(machine >> 8);
  bytes.resize(64);
  return bytes + text;
}

using Strings = std::vector<std::string>;

// Whether the loader could be asked. `command` runs it.
bool compare_with_loader(const Machine& machine, const std::string& command) {
  const std::string diagnostics = "\n" + output_of(command + " --list-diagnostics");
  if (diagnostic(diagnostics, "version.version").empty()) return false;
  CHECK(std::to_string(machine.glibc.major) + "." + std::to_string(machine.glibc.minor) ==
        diagnostic(diagnostics, "version.version"));
  CHECK(machine.lib == diagnostic(diagnostics, "dl_dst_lib"));
  CHECK(machine.platform == diagnostic(diagnostics, "dl_platform"));
  Strings directories;
  for (int i = 0;; i++) {
    const std::string value =
        diagnostic(diagnostics, "path.system_dirs[0x" + std::to_string(i) + "]");
    if (value.empty()) break;
    directories.push_back(value);
  }
  CHECK(machine.default_directories == directories);

  Strings hwcaps;
  std::stringstream help(output_of(command + " --help"));
  bool inside = false;
  for (std::string line; std::getline(help, line);) {
    if (line.starts_with("Subdirectories of glibc-hwcaps")) {
      inside = true;
    } else if (line.empty()) {
      inside = false;
    } else if (inside && line.find("supported, searched") != std::string::npos) {
      hwcaps.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  CHECK(machine.hwcaps == hwcaps);
  return true;
}

}  // namespace

TEST_CASE("machine: this one, as its own ld.so describes it") {
  const Machine machine = read_machine(Tree(), kHere);
  if (!compare_with_loader(machine, machine.loader_path)) {
    MESSAGE("skipped: no glibc loader with --list-diagnostics at " << machine.loader_path);
    return;
  }
  CHECK(machine.problems == Strings{});
}

TEST_CASE("machine: AArch64 below another root, as its ld.so describes it under emulation") {
  const std::string root = "/usr/aarch64-linux-gnu";  // Debian's cross libraries
  const Machine machine = read_machine(Tree(root), 183);
  const std::string run = "qemu-aarch64 -L " + root + " " + root + machine.loader_path;
  if (!Tree(root).stat(machine.loader_path) || !compare_with_loader(machine, run))
    MESSAGE("skipped: no qemu-aarch64 or no cross libraries in " << root);
}

TEST_CASE("machine: the subdirectories that ld.so tries, from its own log") {
  const Machine machine = read_machine(Tree(), kHere);
  const TempTree temp;
  temp.directory("empty");
  const std::string log =
      output_of("LD_DEBUG=libs LD_PRELOAD=libcohabit-none.so LD_LIBRARY_PATH=" + temp / "empty" +
                " /bin/true 2>&1 | grep -m1 'search path=.*(LD_LIBRARY_PATH)'");
  if (log.empty()) {
    MESSAGE("skipped: LD_DEBUG says nothing here");
    return;
  }
  std::string expected;
  for (const std::string& name : machine.hwcaps)
    expected += temp / "empty/glibc-hwcaps/" + name + ":";
  for (const std::string& name : machine.legacy_hwcaps)
    expected += temp / "empty/" + name.substr(0, name.size() - 1) + ":";
  expected += temp / "empty";
  CHECK(log.find("search path=" + expected + "\t") != std::string::npos);
}

TEST_CASE("machine: a foreign tree is read, not run") {
  const TempTree temp;
  const std::string directories("\0/lib64/\0/usr/lib64/\0more", 26);
  temp.file("lib64/ld-linux-x86-64.so.2", fake_object(62, directories + '\0'));
  temp.file("lib64/libc.so.6",
            fake_object(62, "GNU C Library (GNU libc) stable release version 2.28.\n"));
  temp.file("etc/ld.so.preload", "liba.so /b.so");
  Machine machine = read_machine(Tree(temp.path()), 62, "skylake-avx512");
  CHECK(machine.problems == Strings{});
  CHECK(machine.glibc == GlibcVersion{2, 28});
  CHECK(machine.loader_path == "/lib64/ld-linux-x86-64.so.2");
  CHECK(machine.libc_path == "/lib64/libc.so.6");
  CHECK(machine.default_directories == Strings{"/lib64/", "/usr/lib64/"});
  CHECK(machine.lib == "lib64");
  CHECK(machine.platform == "haswell");
  CHECK(machine.hwcaps.empty());  // before 2.33
  CHECK(machine.preload_file == Strings{"liba.so", "/b.so"});
  REQUIRE(machine.legacy_hwcaps.size() == 15);
  CHECK(machine.legacy_hwcaps[0] == "tls/haswell/avx512_1/x86_64/");
  CHECK(machine.legacy_hwcaps[3] == "tls/haswell/");
  CHECK(machine.legacy_hwcaps[8] == "haswell/avx512_1/x86_64/");
  CHECK(machine.legacy_hwcaps[14] == "x86_64/");

  temp.file(
      "lib64/ld-linux-x86-64.so.2",
      fake_object(62, directories + std::string("\0ld.so (x) stable release version 2.41.\n", 41)));
  machine = read_machine(Tree(temp.path()), 62, "x86-64-v4");
  CHECK(machine.glibc == GlibcVersion{2, 41});
  CHECK(contains(machine.problems, "2.28"));  // libc is of another version
  CHECK(machine.legacy_hwcaps.empty());
  CHECK(machine.hwcaps == Strings{"x86-64-v4", "x86-64-v3", "x86-64-v2"});
  CHECK(machine.platform == "x86_64");
}

TEST_CASE("machine: AArch64, and the newest version that a libc defines") {
  const TempTree temp;
  temp.file("lib/ld-linux-aarch64.so.1",
            fake_object(183, std::string("\0/nix/store/abc-glibc-2.31/lib/\0", 32)));
  temp.file("nix/store/abc-glibc-2.31/lib/libc.so.6",
            fake_object(183, std::string("\0GLIBC_2.17\0GLIBC_2.31\0GLIBC_2.4\0", 34)));
  const Machine machine = read_machine(Tree(temp.path()), 183);
  CHECK(machine.glibc == GlibcVersion{2, 31});
  CHECK(machine.lib == "lib");
  CHECK(machine.default_directories == Strings{"/nix/store/abc-glibc-2.31/lib/"});
  CHECK(machine.hwcaps.empty());
  CHECK(machine.legacy_hwcaps.back() == "atomics/");
}

TEST_CASE("machine: what is missing is said, and nothing fails") {
  const TempTree temp;
  temp.directory("usr/lib/x86_64-linux-gnu");
  Machine machine = read_machine(Tree(temp.path()), 62, "x86-64-v2");
  CHECK(machine.glibc == GlibcVersion{});
  CHECK(machine.default_directories.size() == 4);
  CHECK(machine.lib == "lib/x86_64-linux-gnu");
  CHECK(machine.hwcaps == Strings{"x86-64-v2"});
  CHECK(contains(machine.problems, "no dynamic loader"));
  CHECK(contains(machine.problems, "no libc.so.6"));

  temp.file("lib/ld-musl-x86_64.so.1");
  temp.file("etc/ld.so.cache", "garbage");
  machine = read_machine(Tree(temp.path()), 62, "fast");
  CHECK(contains(machine.problems, "musl"));
  CHECK(contains(machine.problems, "ld.so.cache"));
  CHECK(contains(machine.problems, "\"fast\""));

  temp.file("lib64/ld-linux-x86-64.so.2", "no ELF");
  CHECK(contains(read_machine(Tree(temp.path()), 62).problems, "not an ELF file"));
  CHECK(contains(read_machine(Tree(temp.path()), 40).problems, "40"));
}

// Each expectation was measured: glibc 2.36 in a chroot with that file, which names in its message
// every library that it cannot find.
TEST_CASE("machine: ld.so.preload is taken apart as ld.so does") {
  using namespace std::literals;
  const std::pair<std::string, Strings> kMeasured[] = {
      {"", {}},
      {"#", {}},
      {"/a.so", {"/a.so"}},
      {"/a.so\n", {"/a.so"}},
      {" /a.so:/b.so\t/c.so\n\n/d.so", {"/a.so", "/b.so", "/c.so", "/d.so"}},
      {"# /x.so\n/a.so\n", {"/a.so"}},
      {"/a.so # /x.so\n/b.so", {"/a.so", "/b.so"}},
      {"#a\n/lib1.so\n#/b.so\n", {"/lib1.so", "o"}},
      {"#a\n/lib1.so\n#b c\n/d.so\n", {"/lib1.so", "/d.so"}},
      {"/aa.so#x\n/b.so #y z\n/c.so #w v\n/d.so\n",
       {"/aa.so", "/b.so", "/c.so", "#w", "v", "/d.so"}},
      {"#a\n#b\n#c\n/x.so\n", {"/x.so"}},
      {"/a.so;/b.so", {"/a.so;/b.so"}},
      {"/a.so\r\n/b.so\n", {"/a.so\r", "/b.so"}},
      {"/a.so\0/b.so\n/c.so"s, {"/a.so", "/c.so"}},
      {"/a.so\0x\n"s, {"/a.so"}},
      {"\0/a.so"s, {}}};
  for (const auto& [text, items] : kMeasured) {
    CAPTURE(text);
    CHECK(parse_preload_file(text) == items);
  }
}

TEST_CASE("machine: the variables that ld.so reads") {
  const char* environment[] = {"PATH=/bin",    "LD_LIBRARY_PATH=/a:/b",
                               "LD_BIND_NOW=", "GLIBC_TUNABLES=x=y",
                               "NOLD_X=1",     "LD_ODD",
                               nullptr};
  const auto variables = loading_variables(environment);
  REQUIRE(variables.size() == 3);
  CHECK(variables[0] == std::pair<std::string, std::string>{"LD_LIBRARY_PATH", "/a:/b"});
  CHECK(variables[1].second.empty());
  CHECK(variables[2].second == "x=y");
  CHECK(loading_variables(nullptr).empty());
}
