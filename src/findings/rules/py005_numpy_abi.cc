// NumPy hands extensions a table of functions, and 2.0 changed the layout of its structs. What an
// extension was built with stands in the message of the check that its headers put into it:
//   NumPy 1 headers: "module compiled against API version 0x%x but this version of numpy is 0x%x"
//   NumPy 2 headers: "module was compiled against NumPy C-API version 0x%x (NumPy 1.20) but ..."
// A module of Cython may have neither, and a check of the types' sizes instead.
// The second names the oldest NumPy that will do. The first fails under NumPy 2: not always in the
// import (onnxruntime 1.16 prints a warning, and dies in the first run).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "base/find_text.h"
#include "facts/elf/addresses.h"
#include "facts/elf/object.h"
#include "facts/python/requirement.h"
#include "findings/expected.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

constexpr std::string_view kCommon = "compiled against ";
constexpr std::string_view kBuiltWithOne = "compiled against API version 0x";
constexpr std::string_view kBuiltWithTwo = "compiled against NumPy C-API version 0x";
constexpr std::string_view kOldest = "(NumPy ";
constexpr uint64_t kMaxModule = 1 << 20;
constexpr uint64_t kMaxSearched = 256 << 20;   // bytes of one file
constexpr uint64_t kMaxUndeclared = 64 << 20;  // size of a file whose package names no NumPy

struct Build {
  bool with_one = false;
  std::string oldest;  // "1.20"
};

// The segments that may hold constants. GNU ld makes four or more: symbols and relocations (large,
// and passed over), code, constants, data; LLVM's puts the constants into the first. Where there
// are fewer, anything may be anywhere; so too where the first has code (older linkers: constants
// stand behind it), however many a tool like patchelf has put behind.
std::vector<Bytes> constants_of(const elf::Object& object, Bytes file) {
  std::vector<elf::Phdr> plain;
  for (const elf::Phdr& segment : object.segments)
    if ((segment.p_flags & (elf::PF_X | elf::PF_W)) == 0) plain.push_back(segment);
  if (plain.size() > 1) plain.erase(plain.begin());
  const bool code_first =
      !object.segments.empty() && (object.segments.front().p_flags & elf::PF_X) != 0;
  if (object.segments.size() < 4 || code_first) plain = object.segments;
  std::vector<Bytes> parts;
  uint64_t left = kMaxSearched;
  for (const elf::Phdr& segment : plain) {
    const uint64_t size = std::min(segment.p_filesz, left);
    if (const auto part = file.slice(segment.p_offset, size)) parts.push_back(*part);
    left -= size;
  }
  return parts;
}

// One pass for both messages: the text is up to hundreds of megabytes.
void search(std::string_view text, Build& build) {
  for (size_t at; (at = find_text(text, kCommon)) != text.npos;) {
    text.remove_prefix(at);
    const std::string_view message = text.substr(0, 128);
    if (message.starts_with(kBuiltWithOne)) build.with_one = true;
    const size_t begin = message.find(kOldest), end = message.find(')');
    if (message.starts_with(kBuiltWithTwo) && begin < end && end != message.npos)
      build.oldest = message.substr(begin + kOldest.size(), end - begin - kOldest.size());
    text.remove_prefix(kCommon.size());
  }
}

// Cython checks that NumPy's types are no smaller than they were where the module was built:
// __Pyx_ImportType(module, "numpy", "dtype", sizeof(PyArray_Descr), ...), with 96 bytes in NumPy 1
// and less since 2.0 ("numpy.dtype size changed"). So `mov $96,%ecx` beside a `lea` of that name
// into %rdx, on x86-64; the sizes of other types have not shrunk.
bool expects_type_of_one(const elf::Object& object, Bytes file) {
  constexpr std::string_view kSize("\xb9\x60\0\0\0", 5), kName("dtype\0", 6), kLea("\x48\x8d\x15");
  constexpr size_t kNear = 48;  // bytes
  if (object.machine != elf::EM_X86_64) return false;
  for (const elf::Phdr& segment : object.segments) {
    const auto part = file.slice(segment.p_offset, std::min(segment.p_filesz, kMaxSearched));
    if ((segment.p_flags & elf::PF_X) == 0 || !part) continue;
    const std::string_view code = part->text();
    for (size_t at = 0; at < code.size(); at++) {
      const size_t found = find_text(code.substr(at), kSize);
      if (found == code.npos) break;
      at += found;
      const size_t begin = at - std::min(at, kNear);
      const std::string_view around = code.substr(begin, 2 * kNear + kSize.size());
      for (size_t lea = around.find(kLea); lea != around.npos; lea = around.find(kLea, lea + 1)) {
        const size_t end = begin + lea + kLea.size() + 4;  // of the instruction
        const auto distance = part->read<int32_t>(end - 4);
        const auto offset =
            distance
                ? elf::offset_of(object, segment.p_vaddr + end + static_cast<int64_t>(*distance))
                : std::nullopt;
        if (offset && file.from(*offset).text().starts_with(kName)) return true;
      }
    }
  }
  return false;
}

constexpr std::string_view kTypeCheck = "size changed, may indicate binary incompatibility";

std::optional<Build> build_of(Bytes file) {
  const elf::Object object = elf::parse(file);
  const std::string_view names = object.strings.text().substr(0, object.strings_size);
  // How the table is fetched, and types.
  if (find_text(names, "PyCapsule_") == names.npos &&
      find_text(names, "PyImport_ImportModule") == names.npos)
    return std::nullopt;
  Build build;
  bool checks_types = false;
  for (const Bytes part : constants_of(object, file)) {
    MappedFile::populate(part);
    search(part.text(), build);
    checks_types = checks_types || find_text(part.text(), kTypeCheck) != std::string_view::npos;
  }
  if (checks_types && !build.with_one) build.with_one = expects_type_of_one(object, file);
  if (!build.with_one && build.oldest.empty()) return std::nullopt;
  return build;
}

// Of a bundle the answer is there, and the constants are not.
std::optional<Build> build_in(const MappedFile& map) {
  const auto words = map.extract("NumPy it is built for, by its table or its types",
                                 [](Bytes file) -> MappedFile::Words {
                                   const std::optional<Build> build = build_of(file);
                                   if (!build) return {};
                                   return {build->oldest, build->with_one ? "1" : ""};
                                 });
  if (words.size() != 2) return std::nullopt;
  return Build{!words[1].empty(), words[0]};
}

// Who calls Python is a Python module, or a library made for some: libtorch_python.so.
bool may_call_python(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return !name.starts_with("lib") || name.find("py") != name.npos;
}

enum class Declared { kNo, kOptional, kYes };

// faiss-cpu 1.7.4 requires nothing by its metadata, and its __init__.py starts with `import numpy`.
bool imports_numpy(const EnvironmentCase& examined, const Distribution& distribution) {
  const auto index = static_cast<uint32_t>(&distribution - examined.all().data());
  const auto [begin, end] = examined.files.rows_of(index);
  for (size_t i = begin; i < end; i++) {
    const InstalledFiles::Row& row = examined.files.rows()[i];
    const size_t slash = row.record.path.find('/');
    if (slash == row.record.path.npos || row.record.path.substr(slash) != "/__init__.py") continue;
    const auto text = examined.tree.read_text(examined.files.path_of(row), kMaxModule);
    if (text && (("\n" + *text).find("\nimport numpy") != text->npos ||
                 ("\n" + *text).find("\nfrom numpy") != text->npos))
      return true;
  }
  return false;
}

Declared declares_numpy(const EnvironmentCase& examined, const Distribution& distribution) {
  const MarkerEnvironment environment = MarkerEnvironment::of(examined.interpreter);
  Declared result = Declared::kNo;
  for (const std::string& text : distribution.requires_dist) {
    const auto requirement = PackageRequirement::parse(text);
    if (!requirement || normal_name(requirement->name) != "numpy") continue;
    if (requirement->applies(environment, "")) return Declared::kYes;
    result = Declared::kOptional;
  }
  return imports_numpy(examined, distribution) ? Declared::kYes : result;
}

struct Verdict {
  std::vector<std::string> bad;  // paths
  size_t good = 0;
  std::string oldest;  // that one of the bad ones asks for; empty: built with NumPy 1
  bool takes_one_only = false, takes_two_only = false;  // of NumPy's majors, by some file
};

// Another distribution has put its own file there (FI001 tells): it is none of this one's.
bool was_overwritten(const EnvironmentCase& examined, const Distribution& distribution,
                     const std::string& path, uint64_t size) {
  const std::vector<InstalledFiles::Row>& rows = examined.files.rows();
  const auto is_its_own = [&](uint32_t index) {
    return &examined.owner(rows[index]) == &distribution &&
           examined.files.path_of(rows[index]) == path;
  };
  for (const std::vector<uint32_t>& group : examined.files.claimed_twice())
    for (const uint32_t index : group)
      if (rows[index].record.size >= 0 && static_cast<uint64_t>(rows[index].record.size) != size &&
          is_its_own(index))
        return true;
  return false;
}

Verdict judge(const EnvironmentCase& examined, const Distribution& distribution, bool declared,
              const PythonVersion& numpy) {
  Verdict verdict;
  for (const std::string& path : distribution.native_files) {
    if (!may_call_python(path)) continue;
    const Result<MappedFile> map = examined.tree.map(path);
    if (!map || (!declared && map->bytes().size() > kMaxUndeclared)) continue;
    const std::optional<Build> build = build_in(*map);
    if (!build) continue;
    const auto oldest = PythonVersion::parse(build->oldest);
    const bool too_old = oldest && numpy < *oldest;
    if ((too_old || (build->with_one && numpy.release().front() >= 2)) &&
        was_overwritten(examined, distribution, path, map->bytes().size()))
      continue;
    const bool other_major = build->with_one && numpy.release().front() >= 2;
    verdict.takes_one_only |= build->with_one;
    verdict.takes_two_only |= oldest && oldest->release().front() >= 2;
    if (too_old) verdict.oldest = build->oldest;
    if (too_old || other_major)
      verdict.bad.push_back(path);
    else
      verdict.good++;
  }
  return verdict;
}

struct Judged {
  const Distribution* distribution;
  Declared declared;
  Verdict verdict;
};

// Which others would not work with the NumPy that this one's bad files ask for.
std::vector<std::string> others_against(const std::vector<Judged>& all, const Distribution& one,
                                        const Verdict& verdict) {
  const bool wants_one = verdict.oldest.empty(), wants_two = verdict.oldest.starts_with("2");
  std::vector<std::string> against;
  for (const auto& [distribution, declared, other] : all)
    if (distribution != &one &&
        ((wants_one && other.takes_two_only) || (wants_two && other.takes_one_only)))
      against.push_back(distribution->name);
  return against;
}

// Another NumPy is no way out where another package would not work with it.
Help help_for(const EnvironmentCase& examined, const Distribution& distribution,
              const std::string& version, const Verdict& verdict,
              const std::vector<std::string>& against) {
  const std::string wanted = verdict.oldest.empty() ? "numpy<2" : "numpy>=" + verdict.oldest;
  if (against.empty())
    return {fmt::format("install {}, or a version of {} that is built for this one", wanted,
                        distribution.name),
            installer_command(examined, "install", {wanted}), Safety::kUnsafe};
  return {
      fmt::format("install a version of {} that is built for NumPy {}; with {} {} would not work",
                  distribution.name, version, wanted, fmt::join(against, ", ")),
      "", Safety::kManual};
}

Finding describe(const EnvironmentCase& examined, const Distribution& distribution,
                 const Distribution& numpy, const std::string& version, const Verdict& verdict,
                 Declared declared, const std::vector<std::string>& against) {
  Finding finding;
  const bool certain = declared == Declared::kYes && verdict.bad.size() >= verdict.good;
  finding.severity = certain ? Severity::kError : Severity::kWarning;
  const std::string built =
      verdict.oldest.empty() ? "for NumPy 1" : "for NumPy " + verdict.oldest + " or later";
  finding.headline =
      fmt::format("{} is built {}, and NumPy {} is installed", label(distribution), built, version);
  finding.evidence.push_back(fact(
      "file", fmt::format("{} of its {} that use NumPy's C API {} built so", verdict.bad.size(),
                          count_of(verdict.bad.size() + verdict.good, "native file"),
                          verdict.bad.size() == 1 ? "is" : "are")));
  for (size_t i = 0; i < std::min<size_t>(verdict.bad.size(), 3); i++) {
    finding.evidence.push_back(fact("file", verdict.bad[i], verdict.bad[i]));
    finding.libraries.push_back(library_of(distribution, verdict.bad[i]));
  }
  finding.libraries.push_back(library_of(numpy, numpy.metadata));
  finding.broken = verdict.bad;
  if (declared != Declared::kYes)
    finding.evidence.push_back(
        fact("declared", distribution.name + " does not require NumPy: it may go on without"));
  finding.help.push_back(help_for(examined, distribution, version, verdict, against));
  return finding;
}

std::vector<Finding> check(const EnvironmentCase& examined) {
  const Distribution* numpy = examined.distributions.find("numpy");
  return numpy ? numpy_abi(examined, numpy->version, {}) : std::vector<Finding>();
}

}  // namespace

std::vector<Finding> numpy_abi(const EnvironmentCase& examined, const std::string& numpy_version,
                               const std::set<std::string>& left_out) {
  std::vector<Finding> findings;
  const Distribution* numpy = examined.distributions.find("numpy");
  const auto version = PythonVersion::parse(numpy_version);
  if (!numpy || !version) return findings;
  std::vector<Judged> all;
  for (const Distribution& distribution : examined.all()) {
    const std::string name = normal_name(distribution.name);
    if (distribution.is_conda_package || name == "numpy" || left_out.contains(name)) continue;
    if (distribution.native_files.empty()) continue;
    const Declared declared = declares_numpy(examined, distribution);
    all.push_back({&distribution, declared,
                   judge(examined, distribution, declared != Declared::kNo, *version)});
  }
  for (const auto& [distribution, declared, verdict] : all) {
    if (verdict.bad.empty()) continue;
    findings.push_back(describe(examined, *distribution, *numpy, numpy_version, verdict, declared,
                                others_against(all, *distribution, verdict)));
  }
  return findings;
}

const Rule kPy005 = {
    "PY005",
    "numpy-abi",
    Severity::kError,
    "A native module was built for another NumPy than the one that is installed.",
    "  Native files whose own check of NumPy's C API tells that they were built with NumPy 1, "
    "where "
    "NumPy\n"
    "  2 is installed; or that they need a later NumPy than the installed one. A warning where "
    "the\n"
    "  distribution does not require NumPy, or most of its files are fine.",
    "  The import ends with `numpy.core.multiarray failed to import` or `numpy.dtype size "
    "changed`, or "
    "it\n"
    "  succeeds with a printed warning and the first use is a segmentation fault.",
    "  onnxruntime 1.16.3 with NumPy 2.1.3: `import onnxruntime` works, InferenceSession.run "
    "crashes.",
    "  Install `numpy<2`, or a version of the distribution that supports NumPy 2.",
    "  Cython modules that use NumPy's types and none of its functions are told by the sizes that "
    "they\n"
    "  expect (numpy.dtype), on x86-64. pybind11 modules of before 2.12 carry no check.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
