#include "cli/verify_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "actions/verify.h"
#include "base/paths.h"
#include "base/read_file.h"
#include "base/rows.h"
#include "base/say.h"
#include "base/sha256.h"
#include "base/variables.h"
#include "base/write_file.h"
#include "cli/arguments.h"
#include "facts/cuda/gpu_host.h"
#include "version.h"

namespace cohabit {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 2;
constexpr size_t kMostRuns = 1000;
constexpr size_t kLargestFile = size_t{4} << 20;

std::string digest(const std::string& text) {
  return hexadecimal(sha256(Bytes(std::string_view(text))));
}

// Size and time, to the nanosecond.
std::string stamp(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return "none";
  return fmt::format("{} {}.{}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

bool decides(std::string_view name) {
  static constexpr std::string_view kPrefixes[] = {
      "LD_",    "GLIBC_", "PYTHON", "CUDA", "NVIDIA",    "NCCL",
      "CUDNN",  "TF_",    "XLA_",   "JAX",  "TORCH",     "PYTORCH",
      "FLAGS_", "OMP_",   "KMP_",   "MKL_", "OPENBLAS_", "COHABIT_PRELOAD",
      "KERAS_"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// Beside it in an egg-info or conda's file: the list of files, or what is there instead.
std::string record_of(const Tree& tree, const Distribution& distribution) {
  constexpr uint64_t kLargestRecord = uint64_t{64} << 20;
  for (const char* name : {"/RECORD", "/installed-files.txt", ""})
    if (auto text = tree.read_text(distribution.metadata + name, kLargestRecord)) return *text;
  return "";
}

// The top-level names in a RECORD: the first part of each path, without what makes it a file.
void add_names(const std::string& record, std::unordered_set<std::string>& names) {
  for (std::string_view line : split(record, '\n')) {
    line = line.substr(0, line.find(','));
    const std::string_view first = line.substr(0, line.find('/'));
    names.emplace(first.substr(0, first.find('.')));
  }
}

std::string machine_text(const World& world) {
  const Interpreter& python = *world.python;
  const VariableMap variables = own_variables("");
  std::string text = fmt::format(
      "cohabit {} {}\npython {} {} {}\nglibc {} {}\ncache {}\ndriver {}\n", COHABIT_VERSION,
      digest(kVerifyProgram), python.executable, python.version, stamp(python.real_path),
      world.machine.libc_path, stamp(world.machine.libc_path), stamp("/etc/ld.so.cache"),
      cuda::read_gpu_host(world.tree, world.machine, variable_of(variables, "LD_LIBRARY_PATH"))
          .driver());
  for (const auto& [name, value] : variables)
    if (decides(name)) text += fmt::format("{}={}\n", name, value);
  return text;
}

// ~/.cache, or XDG_CACHE_HOME if it is absolute, as the base directory specification has it.
std::string cache_file(const std::string& prefix) {
  const VariableMap variables = own_variables("");
  std::string base = variable_of(variables, "XDG_CACHE_HOME");
  if (!base.starts_with('/')) {
    base = variable_of(variables, "HOME");
    if (base.empty()) return "";
    base += "/.cache";
  }
  return fmt::format("{}/cohabit/verify/{}.json", base, digest(prefix));
}

Json run_json(const VerifiedRow& row) {
  return {{"predicted", row.predicted}, {"seconds", row.run.seconds}, {"told", row.run.told}};
}

// Whether it is one that run_json has made.
bool read_run(const Json& json, VerifiedRow& row) {
  if (!json.is_object() || !json.contains("predicted") || !json["predicted"].is_string() ||
      !json.contains("seconds") || !json["seconds"].is_number() || !json.contains("told") ||
      !json["told"].is_array())
    return false;
  VerifiedRun run;
  run.seconds = json["seconds"].get<double>();
  for (const Json& line : json["told"]) {
    if (!line.is_string()) return false;
    take_told(line.get<std::string>(), run);
  }
  row.predicted = json["predicted"].get<std::string>();
  row.run = std::move(run);
  row.cached = true;
  return true;
}

}  // namespace

VerifyCache::VerifyCache(const World& world, const Repair& repair)
    : file_(cache_file(world.python->prefix)) {
  std::string text = machine_text(world) + format_rules(repair, '\n');
  for (const Distribution& distribution : world.distributions.all()) {
    const std::string record = record_of(world.tree, distribution);
    if (distribution.editable.empty()) add_names(record, brought_);
    text += fmt::format("{} {} {} {}\n", distribution.name, distribution.version,
                        distribution.metadata, digest(record));
    for (const std::string& file : distribution.native_files)
      text += fmt::format("{} {}\n", file, stamp(file));
  }
  state_ = digest(text);
  const auto kept = read_file(file_, kLargestFile);
  const Json json = Json::parse(kept ? *kept : "", nullptr, false);
  if (!json.is_object() || json.value("version", Json()) != kVersion || !json.contains("runs") ||
      !json["runs"].is_object())
    return;
  for (const auto& [key, run] : json["runs"].items()) runs_[key] = run.dump();
}

std::string VerifyCache::key_of(const std::vector<std::string>& imports) const {
  return digest(fmt::format("{} {}", state_, fmt::join(imports, ",")));
}

bool VerifyCache::is_known(const std::vector<std::string>& imports) const {
  return std::all_of(imports.begin(), imports.end(), [&](const std::string& name) {
    return brought_.contains(name.substr(0, name.find('.')));
  });
}

bool VerifyCache::find(VerifiedRow& row) const {
  const auto kept = runs_.find(key_of(row.imports));
  if (kept == runs_.end() || !is_known(row.imports)) return false;
  return read_run(Json::parse(kept->second, nullptr, false), row);
}

void VerifyCache::keep(const std::vector<VerifiedRow>& rows) const {
  Json runs = Json::object();
  for (const VerifiedRow& row : rows)
    if (row.run.outcome == Outcome::kOk && is_known(row.imports))
      runs[key_of(row.imports)] = run_json(row);
  for (const auto& [key, run] : runs_) {
    if (runs.size() >= kMostRuns) break;
    if (!runs.contains(key)) runs[key] = Json::parse(run, nullptr, false);
  }
  for (const VerifiedRow& row : rows)
    if (row.run.outcome != Outcome::kOk) runs.erase(key_of(row.imports));
  const Json json = {{"version", kVersion}, {"runs", runs}};
  const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::error_code error;
  if (!file_.empty()) std::filesystem::create_directories(directory_of(file_), error);
  const Result<void> done = file_.empty() ? fail("HOME is not set") : write_file(file_, text);
  if (!done) say("nothing is kept for the next run: {}\n", done.error().message);
}

}  // namespace cohabit
