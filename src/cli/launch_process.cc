#include "cli/launch_process.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/paths.h"
#include "base/rows.h"
#include "facts/cuda/builds.h"
#include "findings/fingerprint.h"

namespace cohabit {
namespace {

constexpr const char* kPath = "LD_LIBRARY_PATH";
constexpr const char* kSource = "ld.so(8); the simulation of this environment";
constexpr int kMostRounds = 6;  // each found library may need another
constexpr std::string_view kNotFound = ": cannot open shared object file: No such file";

std::string normal(std::string_view directory) {
  return join_normal("", directory);
}

std::vector<std::string> directories_of(const std::string& path) {
  std::vector<std::string> directories;
  for (const std::string_view part : split(path, ':'))
    if (!part.empty()) directories.emplace_back(part);
  return directories;
}

bool is_llvm_openmp(const std::string& path) {
  const std::string name = last_part(path);
  return name.starts_with("libiomp5") || name.starts_with("libomp.") ||
         name.starts_with("libomp-") || name.starts_with("libomp5");
}

class ProcessNeeds {
 public:
  ProcessNeeds(World& world, const VariableMap& variables) : world_(world), variables_(variables) {}

  NeedsOfProcesses find(bool has_driver) {
    has_driver_ = has_driver;
    for (const Distribution& distribution : world_.distributions.all())
      for (const std::string& path : distribution.native_files)
        installed_.try_emplace(last_part(path), path);
    clean();
    extend();
    openmp();
    return {std::move(needed_), lacks_driver_};
  }

 private:
  report::Report look(const std::vector<std::vector<std::string>>& orders,
                      const std::string& path) const;
  static std::set<std::string> errors_of(const report::Report& report);
  static bool brings_errors(const report::Report& before, const report::Report& after);
  std::vector<std::vector<std::string>> without_own_path() const;
  bool lacks_own_path(const std::string& path) const;
  bool lacks_later_path(const std::string& path, const std::string& cuda) const;
  std::vector<std::vector<std::string>> cuda_modules() const;
  std::string path() const { return variable_of(variables_, kPath); }
  std::string whole_path(const std::vector<std::string>& added) const {
    return fmt::format("{}{}{}", fmt::join(added, ":"), path().empty() ? "" : ":", path());
  }
  void clean();
  void extend();
  void openmp();
  std::set<std::string> directories_of_missing(const report::Report& report) const;
  void add(std::string name, std::string part, Setting setting, std::string reason,
           std::string source);

  World& world_;
  VariableMap variables_;
  std::unordered_map<std::string, std::string> installed_;  // native files by name
  bool has_driver_ = false, lacks_driver_ = false;
  std::vector<NeededVariable> needed_;
};

void ProcessNeeds::add(std::string name, std::string part, Setting setting, std::string reason,
                       std::string source) {
  NeededVariable variable;
  variable.name = std::move(name);
  variable.part = std::move(part);
  variable.setting = setting;
  variable.separator = ":";
  variable.reason = std::move(reason);
  variable.source = std::move(source);
  needed_.push_back(std::move(variable));
}

report::Report ProcessNeeds::look(const std::vector<std::vector<std::string>>& orders,
                                  const std::string& path) const {
  VariableMap variables = variables_;
  if (path.empty())
    variables.erase(kPath);
  else
    variables[kPath] = path;
  report::Report report;
  for (const auto& imports : orders)
    (void)examine_sequence(world_, plan_sequence(world_, imports, variables), report);
  return report;
}

std::set<std::string> ProcessNeeds::errors_of(const report::Report& report) {
  std::set<std::string> causes;
  for (const Finding& finding : report.findings)
    if (finding.severity == Severity::kError) causes.insert(cause_of(finding));
  return causes;
}

bool ProcessNeeds::brings_errors(const report::Report& before, const report::Report& after) {
  const auto known = errors_of(before), now = errors_of(after);
  return !std::includes(known.begin(), known.end(), now.begin(), now.end());
}

// Directories in which a library stands that gets in front of a wheel's.
void ProcessNeeds::clean() {
  const std::vector<std::string> parts = directories_of(path());
  if (parts.empty()) return;
  std::vector<std::vector<std::string>> orders;
  for (const std::string& module : find_frameworks(world_)) orders.push_back({module});
  const report::Report before = look(orders, path());
  std::vector<std::string> kept;
  std::string reason;
  for (const std::string& part : parts) {
    const auto shadow =
        std::find_if(before.findings.begin(), before.findings.end(), [&](const Finding& finding) {
          return finding.code == "LD207" && !finding.libraries.empty() &&
                 directory_of(finding.libraries.front().path) == normal(part);
        });
    if (shadow == before.findings.end())
      kept.push_back(part);
    else if (reason.empty())
      reason = shadow->headline;
  }
  const std::string cleaned = fmt::format("{}", fmt::join(kept, ":"));
  if (reason.empty() || brings_errors(before, look(orders, cleaned))) return;
  add(kPath, cleaned, Setting::kReplace, std::move(reason), kSource);
  variables_[kPath] = cleaned;
}

// A library that needs what another distribution brings, and does not say where that is.
bool ProcessNeeds::lacks_own_path(const std::string& path) const {
  const ImageId id = world_.images.open(path, world_.python->elf_machine).image;
  if (id == kNone) return false;
  const elf::Object& object = world_.images[id].elf;
  if (object.runpath || object.rpath) return false;
  return std::any_of(
      object.dependencies.begin(), object.dependencies.end(), [&](const elf::Dependency& needed) {
        const auto found = installed_.find(std::string(needed.name));
        return found != installed_.end() && directory_of(found->second) != directory_of(path);
      });
}

// The same of what it opens by name once a GPU is used (data/later_opens.tsv): its own search path
// leads to none of the places where that is installed.
bool ProcessNeeds::lacks_later_path(const std::string& path, const std::string& cuda) const {
  python::Opener opener;
  opener.file = last_part(path);
  if (!python::may_open_later(opener.file)) return false;
  const ImageId id = world_.images.open(path, world_.python->elf_machine).image;
  if (id == kNone) return false;
  opener.image = &world_.images[id];
  opener.cuda = cuda;
  const std::string own = directory_of(path);
  opener.directories.push_back(own);
  const elf::Object& object = opener.image->elf;
  for (const std::string_view part :
       split(object.runpath ? *object.runpath : object.rpath.value_or(""), ':'))
    if (const size_t origin = part.find("$ORIGIN"); origin == 0)
      opener.directories.push_back(join_normal(own, "." + std::string(part.substr(7))));
    else if (part.starts_with('/'))
      opener.directories.push_back(normal(std::string(part)));
  for (const python::LaterRow& row : python::later_rows()) {
    if (row.by_path || row.phase == python::Phase::kNever || !python::matches(row, opener))
      continue;
    for (const python::Attempts& attempts : python::opens_of(row, opener, world_.tree)) {
      if (!python::own_file(attempts, opener, world_.tree).empty()) continue;
      if (std::any_of(attempts.begin(), attempts.end(),
                      [&](const std::string& name) { return installed_.contains(name); }))
        return true;
    }
  }
  return false;
}

std::vector<std::vector<std::string>> ProcessNeeds::cuda_modules() const {
  std::vector<std::vector<std::string>> modules;
  for (const cuda::FrameworkBuild& build :
       cuda::read_builds(world_.tree, *world_.python, world_.distributions))
    if (build.cuda) modules.push_back({build.module});
  return modules;
}

std::vector<std::vector<std::string>> ProcessNeeds::without_own_path() const {
  std::vector<std::vector<std::string>> modules;
  for (const cuda::FrameworkBuild& build :
       cuda::read_builds(world_.tree, *world_.python, world_.distributions)) {
    if (!build.cuda || !build.distribution) continue;
    const auto& files = build.distribution->native_files;
    const std::string cuda = fmt::format("cuda{}", build.cuda->major);
    if (std::any_of(files.begin(), files.end(), [&](const std::string& path) {
          return lacks_own_path(path) || lacks_later_path(path, cuda);
        }))
      modules.push_back({build.module});
  }
  return modules;
}

// Where the installed files are whose names ld.so did not find, or found elsewhere.
std::set<std::string> ProcessNeeds::directories_of_missing(const report::Report& report) const {
  std::set<std::string> directories;
  for (const Finding& finding : report.findings) {
    if (finding.code == "LD207")
      for (size_t i = 1; i < finding.libraries.size(); i += 2)
        directories.insert(directory_of(finding.libraries[i].path));
    for (const Evidence& evidence : finding.evidence) {
      const size_t end = evidence.text.find(kNotFound);
      if (end == std::string::npos) continue;
      const size_t space = evidence.text.rfind(' ', end);
      const size_t begin = space == std::string::npos ? 0 : space + 1;
      const auto found = installed_.find(evidence.text.substr(begin, end - begin));
      if (found != installed_.end()) directories.insert(directory_of(found->second));
    }
  }
  return directories;
}

void ProcessNeeds::extend() {
  const auto modules = without_own_path();
  if (modules.empty()) return;
  lacks_driver_ = !has_driver_;
  const report::Report before = look(modules, path());
  report::Report now = before;
  std::vector<std::string> added;
  for (int round = 0; round < kMostRounds; round++) {
    const auto missing = directories_of_missing(now);
    const size_t count = added.size();
    for (const std::string& directory : missing)
      if (std::find(added.begin(), added.end(), directory) == added.end())
        added.push_back(directory);
    if (added.size() == count) break;
    now = look(modules, whole_path(added));
  }
  if (added.empty() || brings_errors(before, now) || now.findings.size() >= before.findings.size())
    return;
  // What helps one must not get in front of another's libraries.
  const auto all = cuda_modules();
  if (brings_errors(look(all, path()), look(all, whole_path(added)))) return;
  const auto cleared =
      std::find_if(before.findings.begin(), before.findings.end(), [&](const Finding& finding) {
        return std::none_of(now.findings.begin(), now.findings.end(), [&](const Finding& left) {
          return cause_of(left) == cause_of(finding);
        });
      });
  if (cleared == before.findings.end()) return;
  add(kPath, fmt::format("{}", fmt::join(added, ":")), Setting::kPrepend, cleared->headline,
      kSource);
}

// Two copies of LLVM's runtime end the process, if they are both loaded.
void ProcessNeeds::openmp() {
  constexpr const char* kName = "KMP_DUPLICATE_LIB_OK";
  std::set<std::string> owners;
  for (const Distribution& distribution : world_.distributions.all())
    for (const std::string& file : distribution.native_files)
      if (is_llvm_openmp(file)) owners.insert(distribution.name);
  if (owners.size() < 2 || variables_.contains(kName)) return;
  const report::Report report = look({find_frameworks(world_)}, path());
  for (const Finding& finding : report.findings)
    if (finding.code == "LD208" &&
        std::all_of(finding.libraries.begin(), finding.libraries.end(),
                    [](const Library& library) { return is_llvm_openmp(library.path); }))
      return add(
          kName, "TRUE", Setting::kSet,
          finding.headline +
              "; the second would end the process (OMP: Error #15). Its makers warn of wrong "
              "results: one copy is better",
          "openmp runtime: the text of OMP Error #15");
}

}  // namespace

Result<NeedsOfProcesses> needs_of_processes(World& world, const VariableMap& variables,
                                            const cuda::GpuHost& host,
                                            const cuda::AskedHost& asked) {
  const bool has_driver = host.has_driver() || asked.asks_gpu();
  if (has_driver)
    if (auto assumed = assume_gpu(world, host.has_driver()); !assumed)
      return tl::unexpected<Error>(assumed.error());
  return ProcessNeeds(world, variables).find(has_driver);
}

}  // namespace cohabit
