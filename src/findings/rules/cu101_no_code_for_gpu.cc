// A fat binary runs on a GPU if it has machine code of the same major architecture and no later
// minor, or PTX of no later architecture, which the driver compiles when it is first used, if it
// knows this version of PTX. Code for one architecture ("sm_90a") runs on that one alone, code for
// a family ("sm_100f") on the later ones of the same major.
//
// A library is judged on the union of its containers: single kernels may be there for some
// architectures only (cuFFT's helpers). Libraries that differ only in the digits of their names are
// alternatives of which one is opened (bitsandbytes has one for each CUDA).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "facts/cuda/device_code.h"
#include "facts/cuda/driver_table.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

enum class Fate : uint8_t { kNothing, kPtxTooNew, kCompiled, kRuns };  // worst first

Fate fate_of(const cuda::DeviceCodes& codes, int sm, const std::string& driver) {
  Fate fate = Fate::kNothing;
  for (const auto& row : codes.rows) {
    if (row.code.kind == cuda::CodeKind::kIntermediate || !cuda::goes_with(row.code, sm)) continue;
    const Fate one = row.code.kind == cuda::CodeKind::kMachineCode ? Fate::kRuns
                     : cuda::driver_compiles(driver, row.code.ptx_major, row.code.ptx_minor)
                         ? Fate::kCompiled
                         : Fate::kPtxTooNew;
    fate = std::max(fate, one);
  }
  return fate;
}

struct CudaLibrary {
  std::string path;
  cuda::DeviceCodes codes;
};

std::vector<CudaLibrary> libraries_of(const Tree& tree, const Distribution& distribution) {
  std::vector<CudaLibrary> libraries;
  std::set<FileId> seen;
  for (const std::string& path : distribution.native_files) {
    const auto status = tree.stat(path);
    if (!status || !seen.insert(status->id).second) continue;
    const Result<MappedFile> file = tree.map(path);
    if (!file) continue;
    cuda::DeviceCodes codes = cuda::read_device_code(file->bytes());
    const bool only_for_linkers =
        std::all_of(codes.rows.begin(), codes.rows.end(),
                    [](const auto& row) { return row.code.kind == cuda::CodeKind::kIntermediate; });
    if (!file->damaged() && !only_for_linkers) libraries.push_back({path, std::move(codes)});
  }
  return libraries;
}

std::string without_digits(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

// The libraries of one distribution on one GPU.
struct Verdict {
  uint64_t bytes = 0;   // of device code
  uint64_t of[4] = {};  // the same by fate
  std::vector<const CudaLibrary*> broken, compiled;
  bool ptx_too_new = false;
};

Verdict judge(const std::vector<CudaLibrary>& libraries, int sm, const std::string& driver) {
  std::map<std::string, std::pair<Fate, std::vector<const CudaLibrary*>>> groups;
  for (const CudaLibrary& library : libraries) {
    auto& [fate, members] = groups[without_digits(library.path)];
    fate = std::max(fate, fate_of(library.codes, sm, driver));
    members.push_back(&library);
  }
  Verdict verdict;
  for (const auto& [name, group] : groups) {
    const auto& [fate, members] = group;
    for (const CudaLibrary* library : members) {
      verdict.bytes += library->codes.bytes();
      verdict.of[static_cast<int>(fate)] += library->codes.bytes();
      if (fate <= Fate::kPtxTooNew) verdict.broken.push_back(library);
      if (fate == Fate::kCompiled) verdict.compiled.push_back(library);
    }
    verdict.ptx_too_new = verdict.ptx_too_new || fate == Fate::kPtxTooNew;
  }
  return verdict;
}

std::string list_code(const cuda::DeviceCodes& codes) {
  std::vector<std::string> names;
  for (const auto& row : codes.rows)
    if (row.code.kind != cuda::CodeKind::kIntermediate) names.push_back(cuda::name_of(row.code));
  return list_some(names, 24);
}

void add_libraries(Finding& finding, const Distribution& distribution,
                   std::vector<const CudaLibrary*> libraries) {
  std::stable_sort(libraries.begin(), libraries.end(), [](const auto* a, const auto* b) {
    return a->codes.bytes() > b->codes.bytes();
  });
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < std::min(libraries.size(), kShown); i++) {
    finding.libraries.push_back(library_of(distribution, libraries[i]->path));
    finding.evidence.push_back(
        fact("file", "code for " + list_code(libraries[i]->codes) + " in", libraries[i]->path));
  }
  if (libraries.size() > kShown)
    finding.evidence.push_back(fact("file", fmt::format("and {} more", libraries.size() - kShown)));
}

std::string gpu_name(int sm) {
  return fmt::format("a GPU of compute capability {}", cuda::sm_text(sm));
}

std::optional<Finding> finding_of(const EnvironmentCase& examined, const Distribution& distribution,
                                  const Verdict& verdict, int sm) {
  Finding finding;
  const std::string& driver = examined.options.gpu.driver();
  const uint64_t broken = verdict.of[0] + verdict.of[1];
  if (!verdict.broken.empty() && broken * 4 >= verdict.bytes) {
    finding.severity = Severity::kError;
    finding.headline =
        verdict.of[1] > verdict.of[0]
            ? fmt::format("{} has only PTX for {}, and driver {} is too old to compile it",
                          label(distribution), gpu_name(sm), driver)
            : fmt::format("{} has no code for {}", label(distribution), gpu_name(sm));
    add_libraries(finding, distribution, verdict.broken);
    finding.help.push_back({verdict.ptx_too_new
                                ? "update the driver, or install a build that has "
                                  "machine code for this GPU"
                                : "install a build that is made for this GPU: often one "
                                  "for another CUDA version",
                            "", Safety::kManual});
    return finding;
  }
  if (!verdict.broken.empty()) {
    finding.headline =
        fmt::format("parts of {} have no code for {}", label(distribution), gpu_name(sm));
    add_libraries(finding, distribution, verdict.broken);
    return finding;
  }
  if (verdict.of[2] * 2 < verdict.bytes || verdict.compiled.empty()) return std::nullopt;
  finding.headline = fmt::format("{} has only PTX for {}: the driver compiles it at first use",
                                 label(distribution), gpu_name(sm));
  add_libraries(finding, distribution, verdict.compiled);
  return finding;
}

// The makers' libraries that frameworks are built on: a framework may do without one of them.
bool is_component(const Distribution& distribution) {
  return distribution.name.starts_with("nvidia-") || distribution.name.starts_with("nvidia_");
}

std::vector<Finding> check(const EnvironmentCase& examined) {
  std::vector<Finding> findings;
  const std::vector<int> sms = examined.options.gpu.sms();
  if (sms.empty()) return findings;
  std::map<int, Finding> components;
  for (const Distribution& distribution : examined.all()) {
    const std::vector<CudaLibrary> libraries = libraries_of(examined.tree, distribution);
    for (const int sm : sms) {
      const Verdict verdict = judge(libraries, sm, examined.options.gpu.driver());
      if (!is_component(distribution)) {
        if (auto finding = finding_of(examined, distribution, verdict, sm))
          findings.push_back(std::move(*finding));
      } else if ((verdict.of[0] + verdict.of[1]) * 2 >= verdict.bytes && !verdict.broken.empty()) {
        add_libraries(components[sm], distribution, verdict.broken);
      }
    }
  }
  for (auto& [sm, finding] : components) {
    std::set<std::string> names;
    for (const Library& library : finding.libraries) names.insert(library.distribution);
    finding.severity = Severity::kWarning;
    finding.headline =
        fmt::format("no code for {} in {}", gpu_name(sm), list_some({names.begin(), names.end()}));
    findings.push_back(std::move(finding));
  }
  for (Finding& finding : findings) finding.certainty = Certainty::kSimulated;
  return findings;
}

}  // namespace

const Rule kCu101 = {
    "CU101",
    "no-code-for-gpu",
    Severity::kError,
    "A distribution's libraries have no code that this GPU can run.",
    "  The architectures in the fat binaries of every library, against the GPU of this machine or "
    "--sm. An\n"
    "  error if a quarter of a distribution's device code cannot run; a warning for NVIDIA's "
    "component "
    "libraries,\n"
    "  which a framework may do without; a note if parts of it cannot, or if the driver has to "
    "compile PTX\n"
    "  at first use.",
    "  The import works. The first kernel ends with `no kernel image is available for execution on "
    "the\n"
    "  device`, or with `the provided PTX was compiled with an unsupported toolchain`.",
    "  torch 2.8.0 built for CUDA 12.8 on a GeForce GTX 1080 (compute capability 6.1): its code "
    "begins with\n"
    "  sm_70.",
    "  Install a build that has code for the GPU, or use an older release; for PTX that is too "
    "new, "
    "update\n"
    "  the driver.",
    "  Runs only where a GPU is there or --sm is given. A library counts as a whole: single "
    "kernels "
    "may\n"
    "  still be missing. Code that is made at run time (Triton, NVRTC) is not seen. Without a "
    "known "
    "driver\n"
    "  every PTX counts as compilable.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
