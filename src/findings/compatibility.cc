#include "findings/compatibility.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/rows.h"
#include "facts/cuda/gpu_host.h"
#include "facts/python/version.h"
#include "findings/rule.h"

namespace cohabit {
namespace {

constexpr std::string_view kExpected =
    "expected facts separated by commas: here, driver 535.104, sm_75 (a GPU by its compute "
    "capability), no GPU, python 3.10, glibc 2.31, cuda 12.6, x86_64 or aarch64";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

bool is_number_with_points(std::string_view text) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9' && text.back() != '.' &&
         text.find_first_not_of("0123456789.") == text.npos && text.find("..") == text.npos;
}

tl::unexpected<Error> not_a_fact(std::string_view fact, const std::string& why) {
  return fail(fmt::format("--for: '{}' {}; {}", fact, why, kExpected));
}

Result<void> read_fact(std::string_view fact, WantedMachine& wanted) {
  if (fact == "x86_64" || fact == "aarch64") {
    if (!wanted.platform.empty() && wanted.platform != fact)
      return not_a_fact(fact,
                        fmt::format("is the second processor: the first is {}", wanted.platform));
    wanted.platform = fact;
    return {};
  }
  // "sm_75" and "python3.10" are one word, "driver 535" and "sm 7.5" two.
  size_t end = fact.find_first_of(" =0123456789");
  if (end == fact.npos) end = fact.size();
  std::string name(fact.substr(0, end));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name.ends_with('_')) name.pop_back();
  std::string_view value = fact.substr(end);
  value.remove_prefix(std::min(value.find_first_not_of(" ="), value.size()));
  if (name == "no" && (value == "GPU" || value == "gpu")) {
    wanted.has_no_gpu = true;
  } else if (name == "sm" || name == "compute") {
    const int sm = cuda::parse_sm(value);
    if (!sm) return not_a_fact(fact, "is no compute capability (sm_75, sm 7.5)");
    wanted.sms.push_back(sm);
  } else if (name == "python") {
    const auto python = cuda::parse_python(value);
    if (!python) return not_a_fact(fact, "is no version of Python 3 (python 3.10)");
    if (wanted.python && wanted.python != python)
      return not_a_fact(fact, "is the second Python: say one");
    wanted.python = python;
  } else if (name == "driver" || name == "glibc" || name == "cuda") {
    if (!is_number_with_points(value)) return not_a_fact(fact, "has no version behind its name");
    constexpr size_t kLongestNumber = 6;  // of a part: more is a slip of the keyboard
    for (const std::string_view part : split(value, '.'))
      if (part.size() > kLongestNumber) return not_a_fact(fact, "is no version that there is");
    if (name == "glibc" && value.find('.') == value.npos)
      return not_a_fact(fact, "is no version of glibc (glibc 2.31)");
    std::string& known = name == "driver"  ? wanted.driver
                         : name == "glibc" ? wanted.glibc
                                           : wanted.cuda;
    if (!known.empty() && known != value)
      return not_a_fact(fact, fmt::format("is the second {}: the first is {}", name, known));
    known = value;
  } else {
    const auto near = nearest_name(name, {"driver", "sm", "python", "glibc", "cuda", "here"});
    return not_a_fact(fact, near ? fmt::format("is no fact (did you mean {}?)", *near)
                                 : std::string("is no fact"));
  }
  if (wanted.has_no_gpu && (!wanted.driver.empty() || !wanted.sms.empty()))
    return not_a_fact(fact,
                      "and another fact are against each other: one says that there is a GPU");
  return {};
}

// A version that cannot be read is the oldest.
bool is_older(std::string_view a, std::string_view b) {
  if (a.ends_with('.')) a.remove_suffix(1);
  if (b.ends_with('.')) b.remove_suffix(1);
  const auto one = PythonVersion::parse(a), other = PythonVersion::parse(b);
  return one && other ? *one < *other : !one && other;
}

void add(Judged& judged, Fit fit, std::string reason) {
  if (fit > judged.fit)
    judged.reasons.insert(judged.reasons.begin(), std::move(reason));
  else
    judged.reasons.push_back(std::move(reason));
  judged.fit = std::max(judged.fit, fit);
}

// What is built where it is installed fits there, if it can be built.
void judge_glibc(const WantedMachine& wanted, Judged& judged) {
  const cuda::Build& build = *judged.build;
  if (wanted.glibc.empty() || build.platform == "source") return;
  if (build.glibc.empty())
    add(judged, Fit::kUnknown, "its wheels' glibc is unknown");
  else if (is_older(wanted.glibc, build.glibc))
    add(judged, Fit::kNot, fmt::format("its wheels need glibc {}", build.glibc));
}

void judge_place(const WantedMachine& wanted, Judged& judged) {
  const cuda::Build& build = *judged.build;
  if (build.platform == "source")
    add(judged, Fit::kUnknown, "it has no wheels: it is built where it is installed");
  else if (!wanted.platform.empty() && build.platform != wanted.platform)
    add(judged, Fit::kNot, fmt::format("it is for {}", build.platform));
  if (wanted.python && !build.takes_python(wanted.python))
    add(judged, build.pythons.empty() ? Fit::kUnknown : Fit::kNot,
        build.pythons.empty()
            ? std::string("its Pythons are unknown")
            : fmt::format("it has no wheel for Python {}", cuda::python_text(wanted.python)));
  judge_glibc(wanted, judged);
}

void judge_driver(const WantedMachine& wanted, Judged& judged) {
  const cuda::BuiltFor& built = judged.build->cuda;
  if (!built.version) {
    if (wanted.asks_gpu()) add(judged, Fit::kUnknown, "its CUDA is unknown");
    return;
  }
  if (!wanted.cuda.empty()) {
    const auto asked = cuda::parse_cuda_version(wanted.cuda);
    const bool same_major = asked && asked->major == built.version->major;
    const bool any_minor =
        wanted.cuda.find('.') == wanted.cuda.npos || built.version->minor == cuda::kAnyMinor;
    if (!same_major || (!any_minor && asked->minor != built.version->minor))
      return add(judged, Fit::kNot,
                 fmt::format("it is built for CUDA {}", judged.build->cuda_text));
  }
  if (wanted.driver.empty()) return;
  const std::string_view oldest = cuda::oldest_driver_for(*built.version);
  if (oldest.empty())
    return add(judged, Fit::kUnknown,
               fmt::format("no driver is known for CUDA {}", judged.build->cuda_text));
  if (!cuda::is_driver_at_least(wanted.driver, oldest))
    return add(judged, Fit::kNot,
               fmt::format("CUDA {} needs driver {} or later", judged.build->cuda_text, oldest));
  const std::string_view full = cuda::full_driver_for(*built.version);
  if (!full.empty() && !cuda::is_driver_at_least(wanted.driver, full))
    judged.reasons.push_back(fmt::format(
        "by minor-version compatibility: what it compiles for itself may need driver {}", full));
}

// The newest patch of the same minor, built for the same CUDA, whose code is known: makers seldom
// change the list of GPUs between two.
const cuda::Build* scanned_patch_of(const cuda::Build& build) {
  const cuda::Build* best = nullptr;
  if (!build.cuda.version) return best;
  for (const cuda::Build& other : cuda::known_builds())
    if (other.is_scanned && other.distribution == build.distribution &&
        other.platform == build.platform && other.backend == build.backend &&
        other.cuda_text == build.cuda_text && minor_of(other) == minor_of(build) &&
        (!best || is_older(best->version, other.version)))
      best = &other;
  return best;
}

// Of code that nobody has looked at, its toolkit tells what it cannot be.
void judge_by_toolkit(const WantedMachine& wanted, Judged& judged) {
  const auto& cuda = judged.build->cuda.version;
  const int oldest = cuda ? cuda::oldest_target_of(*cuda) : 0;
  for (const int sm : wanted.sms)
    if (sm < oldest)
      return add(judged, Fit::kNot,
                 fmt::format("CUDA {} makes no code for compute capability {}", cuda->major,
                             cuda::sm_text(sm)));
  add(judged, Fit::kUnknown, "its code was not scanned");
}

void judge_code(const WantedMachine& wanted, Judged& judged) {
  if (wanted.sms.empty()) return;
  const cuda::Build* scanned =
      judged.build->is_scanned ? judged.build : scanned_patch_of(*judged.build);
  if (!scanned) return judge_by_toolkit(wanted, judged);
  const cuda::Build& build = *scanned;
  for (const int sm : wanted.sms) {
    bool runs = false, compiled = false, unknown = false;
    const cuda::DeviceCode* too_new = nullptr;
    for (const cuda::DeviceCode& code : build.code) {
      if (!cuda::goes_with(code, sm)) continue;
      if (code.kind == cuda::CodeKind::kMachineCode)
        runs = true;
      else if (!wanted.driver.empty() && !cuda::cuda_of_ptx(code.ptx_major, code.ptx_minor))
        unknown = true;
      else if (cuda::driver_compiles(wanted.driver, code.ptx_major, code.ptx_minor))
        compiled = true;
      else
        too_new = &code;
    }
    const std::string gpu = fmt::format("compute capability {}", cuda::sm_text(sm));
    if (runs) continue;
    if (compiled)
      add(judged, Fit::kCompiled, fmt::format("PTX only for {}", gpu));
    else if (unknown)
      add(judged, Fit::kUnknown,
          fmt::format("PTX only for {}, and no driver is known for it", gpu));
    else if (too_new)
      add(judged, Fit::kNot,
          fmt::format("PTX {}.{} only for {}, which driver {} does not compile", too_new->ptx_major,
                      too_new->ptx_minor, gpu, wanted.driver));
    else
      add(judged, Fit::kNot, fmt::format("it has no code for {}", gpu));
  }
  if (scanned != judged.build)
    judged.reasons.push_back(
        fmt::format("by the code of {}: its own was not scanned", scanned->version));
}

// One of the index and one of other indexes.
void keep_first(std::vector<Judged>& chosen, const Judged& judged) {
  const bool known = std::any_of(chosen.begin(), chosen.end(), [&](const Judged& one) {
    return one.build->backend.empty() == judged.build->backend.empty();
  });
  if (!known) chosen.push_back(judged);
}

std::vector<const cuda::Build*> by_release(const AskedFramework& asked) {
  std::vector<const cuda::Build*> builds = builds_of(asked);
  std::stable_sort(builds.begin(), builds.end(),
                   [](const auto* a, const auto* b) { return is_older(b->version, a->version); });
  return builds;
}

}  // namespace

Result<void> read_wanted(std::string_view text, WantedMachine& wanted, bool& here) {
  for (const std::string_view one : split(text, ',')) {
    const std::string_view fact = trimmed(one);
    if (fact.empty()) return not_a_fact(text, "has an empty fact");
    if (fact == "here") {
      here = true;
      continue;
    }
    if (auto done = read_fact(fact, wanted); !done) return done;
  }
  return {};
}

std::string_view fit_name(Fit fit) {
  switch (fit) {
    case Fit::kRuns:
      return "runs";
    case Fit::kCompiled:
      return "compiled";
    case Fit::kUnknown:
      return "unknown";
    case Fit::kCpuOnly:
      return "cpu-only";
    default:
      return "not";
  }
}

Judged judge(const cuda::Build& build, const WantedMachine& wanted) {
  Judged judged{&build, Fit::kRuns, {}};
  judge_place(wanted, judged);
  if (judged.fit == Fit::kNot) return judged;
  if (build.cuda.is_cpu_only) {
    if (!wanted.cuda.empty())
      add(judged, Fit::kNot, "it is built for the CPU");
    else if (wanted.asks_gpu())
      add(judged, Fit::kCpuOnly, "it is built for the CPU");
    return judged;
  }
  if (wanted.has_no_gpu) {
    add(judged, Fit::kCpuOnly,
        build.cuda.version ? "it is built for CUDA" : "what it is built for is unknown");
    return judged;
  }
  judge_driver(wanted, judged);
  if (judged.fit != Fit::kNot) judge_code(wanted, judged);
  return judged;
}

bool AskedFramework::takes(const cuda::Build& build) const {
  if (build.framework != name && build.distribution != name) return false;
  return version.empty() || build.version == version || build.version.starts_with(version + ".");
}

Result<AskedFramework> read_framework(const std::string& text) {
  const size_t equals = text.find("==");
  AskedFramework asked{text.substr(0, equals), ""};
  if (equals != text.npos) asked.version = text.substr(equals + 2);
  if (asked.version.ends_with(".*")) asked.version.resize(asked.version.size() - 2);
  std::vector<std::string> names;
  bool has_name = false;
  for (const cuda::Build& build : cuda::known_builds()) {
    if (asked.takes(build)) return asked;
    has_name = has_name || build.framework == asked.name || build.distribution == asked.name;
    for (const std::string& name : {build.framework, build.distribution})
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (has_name)
    return fail(fmt::format("the tables have no release {} of {}", asked.version, asked.name));
  const auto near = nearest_name(asked.name, names);
  return fail(fmt::format("{} is not in the tables{}; they have {}", asked.name,
                          near ? fmt::format(" (did you mean {}?)", *near) : "",
                          fmt::join(names, ", ")));
}

std::vector<const cuda::Build*> builds_of(const AskedFramework& asked) {
  std::vector<const cuda::Build*> builds;
  std::map<std::string, size_t> place;  // of a distribution: as the tables name them
  for (const cuda::Build& build : cuda::known_builds()) {
    if (!asked.takes(build)) continue;
    place.emplace(build.distribution, place.size());
    builds.push_back(&build);
  }
  std::stable_sort(builds.begin(), builds.end(), [&](const auto* a, const auto* b) {
    if (a->distribution != b->distribution) return place[a->distribution] < place[b->distribution];
    return is_older(minor_of(*b), minor_of(*a));
  });
  return builds;
}

const cuda::Build* build_of_pin(std::string_view pin) {
  for (const cuda::Build& build : cuda::known_builds())
    if (build.install == pin && build.platform == "x86_64") return &build;
  return nullptr;
}

std::vector<Judged> best_builds(const AskedFramework& asked, const WantedMachine& wanted) {
  std::map<Fit, std::vector<Judged>> by_fit;
  for (const cuda::Build* build : by_release(asked)) {
    if (!build->backend.empty() && !wanted.asks_gpu()) continue;  // made for other drivers
    const Judged judged = judge(*build, wanted);
    if (judged.fit != Fit::kNot) keep_first(by_fit[judged.fit], judged);
  }
  std::vector<Judged> chosen;
  // Machine code before PTX before what is uncertain before what leaves the GPU alone.
  for (const auto& [fit, ones] : by_fit) {
    if (!chosen.empty() && fit != Fit::kCompiled) break;
    for (const Judged& one : ones) keep_first(chosen, one);
  }
  return chosen;
}

Judged nearest_miss(const AskedFramework& asked, const WantedMachine& wanted) {
  for (const bool any : {false, true})  // builds for the CPU only where there is no other
    for (const cuda::Build* build : by_release(asked)) {
      if (!any && (!build->backend.empty() || build->cuda.is_cpu_only)) continue;
      if (!any && !wanted.platform.empty() && build->platform != wanted.platform) continue;
      return judge(*build, wanted);
    }
  return {};
}

std::string minor_of(const cuda::Build& build) {
  const auto version = PythonVersion::parse(build.version);
  std::string text;
  for (size_t i = 0; version && i < std::min<size_t>(2, version->release().size()); i++)
    text += fmt::format("{}.", version->release()[i]);
  return text;
}

std::vector<const cuda::Build*> newest_patches(const std::vector<const cuda::Build*>& builds) {
  std::map<std::string, const cuda::Build*> newest;
  std::vector<const cuda::Build*> kept;
  const auto line = [](const cuda::Build& build) {
    return fmt::format("{} {} {} {}", build.distribution, build.platform, build.backend,
                       minor_of(build));
  };
  for (const cuda::Build* build : builds) {
    auto& best = newest[line(*build)];
    if (!best || is_older(best->version, build->version)) best = build;
  }
  for (const cuda::Build* build : builds)
    if (newest[line(*build)] == build) kept.push_back(build);
  return kept;
}

}  // namespace cohabit
