// What ld.so has compiled in can be read without running it, which a foreign root or another CPU
// would not allow anyway:
// - its version from the banner ("... release version 2.36."), in ld.so since 2.33, else in libc;
// - its default directories from the array system_dirs (elf/dl-load.c): strings that follow each
//   other, each ending in "/";
// - $LIB from the string DL_DST_LIB: the last component of the first default directory, or all of
//   it on Debian, which patches that.
#include "facts/host/machine.h"

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/find_text.h"
#include "facts/host/cpu.h"

namespace cohabit {
namespace {

using namespace std::literals;

constexpr uint16_t kX86_64 = 62;
constexpr uint16_t kAArch64 = 183;
constexpr GlibcVersion kFirstNamedHwcaps{2, 33};
constexpr GlibcVersion kFirstWithoutLegacy{2, 37};
constexpr GlibcVersion kFirstWithBmi{2, 37};
constexpr size_t kMaxDirectories = 16;

// ---- names that depend on the ELF machine

struct Names {
  std::string_view loader;                // the file's name
  std::vector<std::string> usual_places;  // of it, the PT_INTERP of compilers first
  std::string_view multiarch;             // Debian's directory
  std::string_view musl;                  // musl's loader
};

Names names_of(uint16_t elf_machine) {
  if (elf_machine == kAArch64)
    return {"ld-linux-aarch64.so.1",
            {"/lib/ld-linux-aarch64.so.1", "/lib64/ld-linux-aarch64.so.1",
             "/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1"},
            "aarch64-linux-gnu",
            "/lib/ld-musl-aarch64.so.1"};
  return {"ld-linux-x86-64.so.2",
          {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-x86-64.so.2",
           "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"},
          "x86_64-linux-gnu",
          "/lib/ld-musl-x86_64.so.1"};
}

// ---- reading ld.so and libc.so.6

uint16_t elf_machine_of(Bytes file) {
  if (!file.text().starts_with("\x7f"
                               "ELF\2\1"sv))
    return 0;
  return file.read<uint16_t>(18).value_or(0);
}

// "2.36" at the start of text; 0.0 if it is not there.
GlibcVersion version_at(std::string_view text) {
  GlibcVersion version;
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto major = std::from_chars(begin, end, version.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return {};
  const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
  if (minor.ec != std::errc() || version.major < 0 || version.minor < 0) return {};
  return version;
}

GlibcVersion banner_version(std::string_view text) {
  constexpr std::string_view kBanner = " release version ";
  const size_t at = find_text(text, kBanner);
  return at == text.npos ? GlibcVersion{} : version_at(text.substr(at + kBanner.size(), 16));
}

// The newest version name that a libc defines; names of other libraries' versions cannot be newer.
GlibcVersion newest_defined_version(std::string_view text) {
  constexpr std::string_view kName = "\0GLIBC_2."sv;
  GlibcVersion newest;
  for (size_t at = find_text(text, kName); at != text.npos; at = find_text(text, kName, at + 1))
    newest = std::max(newest, version_at(text.substr(at + kName.size() - 2, 16)));
  return newest;
}

std::string describe(GlibcVersion version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

// "/lib/", "/usr/lib64/", "/lib/x86_64-linux-gnu/", "/nix/store/...-glibc-2.40/lib/"
bool looks_like_library_directory(std::string_view text) {
  if (text.size() < 5 || text.size() > 255 || text.front() != '/' || text.back() != '/')
    return false;
  if (text.find("//") != text.npos) return false;
  return text.find("/lib") != text.npos;
}

// The longest run of such strings, each following the NUL of the one before.
std::vector<std::string> find_system_directories(std::string_view text) {
  std::vector<std::string> best;
  constexpr std::string_view kStart = "\0/"sv;
  for (size_t at = text.find(kStart); at != text.npos; at = text.find(kStart, at + 1)) {
    std::vector<std::string> run;
    size_t begin = at + 1;
    size_t end = text.find('\0', begin);
    while (end != text.npos && run.size() < kMaxDirectories &&
           looks_like_library_directory(text.substr(begin, end - begin))) {
      run.emplace_back(text.substr(begin, end - begin));
      begin = end + 1;
      end = text.find('\0', begin);
    }
    if (run.size() > best.size()) best = run;
  }
  return best;
}

std::string find_dst_lib(std::string_view text, const std::vector<std::string>& directories) {
  if (directories.empty()) return "";
  const std::string& first = directories.front();
  std::string whole = first.substr(1, first.size() - 2);
  if (text.find(whole + '\0') != text.npos) return whole;
  return whole.substr(whole.rfind('/') + 1);  // npos + 1 is 0
}

// ---- where nothing could be read

bool is_directory(const Tree& tree, const std::string& path) {
  const auto status = tree.stat(path);
  return status && status->is_directory();
}

std::vector<std::string> usual_directories(const Tree& tree, const Names& names) {
  const std::string multiarch(names.multiarch);
  if (is_directory(tree, "/lib/" + multiarch) || is_directory(tree, "/usr/lib/" + multiarch))
    return {"/lib/" + multiarch + "/", "/usr/lib/" + multiarch + "/", "/lib/", "/usr/lib/"};
  if (is_directory(tree, "/lib64") || is_directory(tree, "/usr/lib64"))
    return {"/lib64/", "/usr/lib64/"};
  return {"/lib/", "/usr/lib/"};
}

// ---- the steps of read_machine

void find_loader(Machine& machine, const Tree& tree, const Names& names,
                 const std::string& interpreter) {
  std::vector<std::string> places = names.usual_places;
  if (!interpreter.empty()) places = {interpreter};
  for (const std::string& place : places) {
    const auto status = tree.stat(place);
    if (!status || !status->is_regular()) continue;
    machine.loader_path = place;
    return;
  }
  machine.loader_path = places.front();
  const bool musl = tree.stat(std::string(names.musl)).has_value();
  machine.problems.push_back(
      "no dynamic loader found at " + places.front() +
      (musl ? ", but musl's is there (" + std::string(names.musl) +
                  "): only glibc is simulated, so the answers will be wrong for this machine"
            : "; the default directories are a guess from what is there"));
}

void read_loader(Machine& machine, const Tree& tree, const Names& names) {
  const Result<MappedFile> file = tree.map(machine.loader_path);
  const Bytes bytes = file ? file->bytes() : Bytes();
  if (file && elf_machine_of(bytes) != machine.elf_machine)
    machine.problems.push_back(machine.loader_path + " is not an ELF file of machine " +
                               std::to_string(machine.elf_machine));
  machine.glibc = banner_version(bytes.text());
  machine.default_directories = find_system_directories(bytes.text());
  if (machine.default_directories.empty()) {
    if (file)
      machine.problems.push_back("the default directories could not be read from " +
                                 machine.loader_path + "; taken from what is there instead");
    machine.default_directories = usual_directories(tree, names);
  }
  machine.lib = find_dst_lib(bytes.text(), machine.default_directories);
  if (!file && machine.default_directories.front().find("-linux-gnu") != std::string::npos)
    machine.lib = "lib/" + std::string(names.multiarch);
}

void find_libc(Machine& machine, const Tree& tree) {
  std::vector<std::string> directories = machine.default_directories;
  if (const auto real = tree.real_path(machine.loader_path))
    directories.push_back(real->substr(0, real->rfind('/') + 1));
  for (const std::string& directory : directories) {
    const std::string path = directory + "libc.so.6";
    const Result<MappedFile> file = tree.map(path);
    if (!file || elf_machine_of(file->bytes()) != machine.elf_machine) continue;
    machine.libc_path = path;
    const std::string_view text = file->bytes().text();
    const GlibcVersion banner = banner_version(text);
    const GlibcVersion defined = newest_defined_version(text);
    if (machine.glibc == GlibcVersion{}) machine.glibc = std::max(banner, defined);
    if (std::max(banner, defined) > machine.glibc ||
        (banner != GlibcVersion{} && banner != machine.glibc))
      machine.problems.push_back(machine.loader_path + " is of glibc " + describe(machine.glibc) +
                                 ", but " + path + " of " + describe(std::max(banner, defined)));
    return;
  }
  machine.problems.push_back("no libc.so.6 found in the default directories, first of them " +
                             machine.default_directories.front());
}

// Every subset of the capabilities, in ld.so's order (_dl_important_hwcaps in elf/dl-hwcaps.c,
// until 2.36): the last capability is the most significant bit and the first part of the path.
std::vector<std::string> legacy_subdirectories(const std::vector<std::string>& capabilities) {
  std::vector<std::string> result;
  for (uint32_t set = (1U << capabilities.size()) - 1; set > 0; set--) {
    std::string path;
    for (size_t i = capabilities.size(); i-- > 0;)
      if (set >> i & 1) path += capabilities[i] + "/";
    result.push_back(path);
  }
  return result;
}

void set_legacy(Machine& machine, const Cpu& cpu) {
  std::vector<std::string> capabilities;
  constexpr uint64_t kTlsBit = uint64_t{1} << 63;
  machine.legacy_cache.accepted = kTlsBit;
  if (machine.elf_machine == kX86_64) {
    capabilities.push_back("x86_64");
    if (cpu.avx512_1) capabilities.push_back("avx512_1");
    machine.legacy_cache.accepted |= cpu.avx512_1 ? 6 : 2;  // HWCAP_X86_64, HWCAP_X86_AVX512_1
    machine.legacy_cache.platform_mask = uint64_t{0xf} << 48;
    machine.legacy_cache.platform = cpu.platform == "haswell"    ? uint64_t{1} << 50
                                    : cpu.platform == "xeon_phi" ? uint64_t{1} << 51
                                                                 : ~uint64_t{0};
  } else if (cpu.atomics) {
    capabilities.push_back("atomics");
    machine.legacy_cache.accepted |= 1 << 8;  // HWCAP_ATOMICS
  }
  if (!cpu.platform.empty()) capabilities.push_back(cpu.platform);
  capabilities.push_back("tls");
  machine.legacy_hwcaps = legacy_subdirectories(capabilities);
}

Cpu choose_cpu(Machine& machine, const std::string& cpu_level) {
  if (cpu_level.empty()) return read_cpu(machine.elf_machine);
  const std::optional<Cpu> named = find_cpu(cpu_level);
  if (!named) machine.problems.push_back("unknown CPU level \"" + cpu_level + "\"");
  return named && machine.elf_machine == kX86_64 ? *named : read_cpu(machine.elf_machine);
}

void set_cpu(Machine& machine, const Cpu& cpu) {
  machine.platform = cpu.platform;
  if (cpu.is_assumed)
    machine.problems.push_back(
        "this machine's CPU is of another kind than the examined programs: taken to be " +
        (machine.elf_machine == kX86_64 ? "x86-64 without extensions"s : "AArch64 with atomics"s));
  const bool unknown = machine.glibc == GlibcVersion{};
  if (machine.elf_machine == kX86_64 && (unknown || machine.glibc >= kFirstNamedHwcaps)) {
    int level = cpu.level;
    if (level > 2 && !cpu.bmi && machine.glibc >= kFirstWithBmi) level = 2;
    if (!cpu.is_assumed) machine.x86_isa_1 = (uint32_t{1} << level) - 1;
    for (; level > 1; level--) machine.hwcaps.push_back("x86-64-v" + std::to_string(level));
  }
  if (!unknown && machine.glibc < kFirstWithoutLegacy) set_legacy(machine, cpu);
}

void read_cache(Machine& machine, const Tree& tree) {
  const Result<MappedFile> file = tree.map("/etc/ld.so.cache");
  if (!file) {
    const auto status = tree.stat("/etc/ld.so.cache");
    if (status || status.error() != ENOENT) machine.problems.push_back(file.error().message);
    return;
  }
  machine.cache = LdCache::parse(file->bytes());
  machine.problems.insert(machine.problems.end(), machine.cache.problems().begin(),
                          machine.cache.problems().end());
}

Machine read_loading(const Tree& tree, uint16_t elf_machine, const std::string& interpreter) {
  Machine machine;
  machine.elf_machine = elf_machine;
  if (elf_machine != kX86_64 && elf_machine != kAArch64)
    machine.problems.push_back("ELF machine " + std::to_string(elf_machine) +
                               " is not known; only x86-64 (62) and AArch64 (183) are");
  const Names names = names_of(elf_machine);
  find_loader(machine, tree, names, interpreter);
  read_loader(machine, tree, names);
  find_libc(machine, tree);
  if (machine.glibc == GlibcVersion{})
    machine.problems.push_back("the glibc version could not be read; the newest rules are used");
  return machine;
}

Machine with_cpu(Machine machine, const Tree& tree, const Cpu& cpu) {
  set_cpu(machine, cpu);
  read_cache(machine, tree);
  if (auto text = tree.read_text("/etc/ld.so.preload"))
    machine.preload_file = parse_preload_file(std::move(*text));
  return machine;
}

}  // namespace

Machine read_machine(const Tree& tree, uint16_t elf_machine, const std::string& cpu_level,
                     const std::string& interpreter) {
  Machine machine = read_loading(tree, elf_machine, interpreter);
  const Cpu cpu = choose_cpu(machine, cpu_level);
  return with_cpu(std::move(machine), tree, cpu);
}

Machine read_machine(const Tree& tree, uint16_t elf_machine, const Cpu& cpu,
                     const std::string& interpreter) {
  return with_cpu(read_loading(tree, elf_machine, interpreter), tree, cpu);
}

std::optional<std::string> find_in_cache(const Machine& machine, std::string_view name) {
  auto cached =
      machine.cache.lookup(name, machine.elf_machine, machine.hwcaps, machine.legacy_cache);
  for (const auto& [assumed, path] : machine.assumed)
    if (!cached && assumed == name) return path;
  return cached;
}

// Two quirks are ld.so's own. After a comment it goes on with the shortened rest from the start of
// the file again, so that of a later comment only the first part may be blanked, and its words are
// taken for names. And a NUL ends the list, but for a last name without a separator after it.
std::vector<std::string> parse_preload_file(std::string text) {
  std::vector<std::string> items;
  if (text.empty()) return items;
  size_t rest = text.size();
  while (rest > 0) {
    size_t comment = text.find('#');
    if (comment >= rest) break;
    rest -= comment;
    do text[comment] = ' ';
    while (--rest > 0 && text[++comment] != '\n');
  }

  constexpr std::string_view kSeparators = ": \t\n";
  const size_t last_separator = text.find_last_of(kSeparators);
  const bool has_front = last_separator != text.npos;
  const std::string tail = text.substr(has_front ? last_separator + 1 : 0);
  const std::string front = has_front ? text.substr(0, last_separator) : "";
  const std::string_view list = std::string_view(front).substr(0, front.find('\0'));
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find_first_of(kSeparators, begin), list.size());
    if (end > begin) items.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  if (const std::string last = tail.substr(0, tail.find('\0')); !last.empty())
    items.push_back(last);
  return items;
}

std::vector<std::pair<std::string, std::string>> loading_variables(const char* const* environment) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (; environment && *environment; environment++) {
    const std::string_view text = *environment;
    const size_t equals = text.find('=');
    if (equals == text.npos) continue;
    const std::string_view name = text.substr(0, equals);
    if (name.starts_with("LD_") || name == "GLIBC_TUNABLES")
      variables.emplace_back(name, text.substr(equals + 1));
  }
  return variables;
}

}  // namespace cohabit
