#include "cli/bundle.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "actions/archive_reader.h"
#include "actions/capture.h"
#include "base/descriptor.h"
#include "base/json_text.h"
#include "base/paths.h"
#include "base/read_file.h"
#include "base/say.h"
#include "base/secrets.h"
#include "findings/environment.h"
#include "version.h"

namespace cohabit {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;
constexpr size_t kMaxManifest = 16 << 20;
constexpr size_t kShownGaps = 3;

std::string bytes_at(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() ? bytes_of(*found).value_or("") : "";
}

int number_at(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_integer() ? found->get<int>() : 0;
}

bool flag_at(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_boolean() && found->get<bool>();
}

std::vector<std::string> list_at(const Json& json, const char* name) {
  std::vector<std::string> result;
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array()) return result;
  for (const Json& item : *found)
    if (auto text = bytes_of(item)) result.push_back(std::move(*text));
  return result;
}

Json object_at(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_object() ? *found : Json::object();
}

Surroundings surroundings_of(const Json& json) {
  Surroundings result;
  const Json variables = object_at(json, "variables"), cpu = object_at(json, "cpu");
  for (const auto& [name, value] : variables.items())
    if (auto text = bytes_of(value)) result.variables[name] = std::move(*text);
  result.cpu.level = std::clamp(number_at(cpu, "level"), 1, 4);
  result.cpu.bmi = flag_at(cpu, "bmi");
  result.cpu.avx512_1 = flag_at(cpu, "avx512_1");
  result.cpu.platform = text_at(cpu, "platform");
  result.cpu.atomics = flag_at(cpu, "atomics");
  result.cpu.is_assumed = flag_at(cpu, "is_assumed");
  result.directory = bytes_at(json, "directory");
  result.configuration_file = bytes_at(json, "configuration_file");
  return result;
}

// Where the user says nothing, the subject is the one that was captured.
void choose_subject(const Json& subject, DoctorOptions& options) {
  const bool asked =
      !options.imports.empty() || !options.module.empty() || !options.words[1].empty();
  options.words[0] = bytes_at(subject, "environment");
  options.assume_gpu = options.assume_gpu || flag_at(subject, "assume_gpu");
  options.verify_hashes = options.verify_hashes || flag_at(subject, "verify_hashes");
  for (const auto& [name, option] :
       {std::pair("driver", &options.host.driver), std::pair("sm", &options.host.sm),
        std::pair("gpu_memory", &options.host.memory)})
    if (option->empty()) *option = text_at(subject, name);
  if (asked) return;
  options.imports = bytes_at(subject, "imports");
  options.module = bytes_at(subject, "module");
  options.words[1] = bytes_at(subject, "program");
  options.arguments = list_at(subject, "arguments");
}

// `change`: of a command's words. An option may stand in the place of a word that was left out.
template <class F>
TargetWords changed(TargetWords given, F change) {
  std::vector<std::string> all(given.words.begin(), given.words.end());
  all.insert(all.end(), given.arguments.begin(), given.arguments.end());
  all = change(std::move(all));
  const auto arguments = all.begin() + static_cast<ptrdiff_t>(given.words.size());
  std::move(all.begin(), arguments, given.words.begin());
  given.arguments.assign(arguments, all.end());
  return given;
}

// The same examination for capture.
std::string question_of(const DoctorOptions& options) {
  const TargetWords target = changed(options, without_secret_arguments);
  std::string text = "cohabit capture";
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) text.append(name).append(shell_word(value));
  };
  add(" ", target.words[0]);
  add(" ", target.words[1]);
  add(" -m ", options.module);
  add(" --imports ", options.imports);
  add(" --driver ", options.host.driver);
  add(" --sm ", options.host.sm);
  add(" --gpu-memory ", options.host.memory);
  if (options.assume_gpu) text += " --assume-gpu";
  if (options.verify_hashes) text += " --verify-hashes";
  text += " --out NAME.tar.zst";
  if (!target.arguments.empty()) text += " --";
  for (const std::string& argument : target.arguments) text += " " + shell_word(argument);
  return text;
}

// Whether the parts of files that are left out can be told from zeros.
bool keeps_holes(const std::string& directory) {
  const std::string path = directory + "/hole";
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  (void)::unlink(path.c_str());
  return file.is_open() && ::ftruncate(file.get(), 1 << 16) == 0 &&
         ::lseek(file.get(), 0, SEEK_HOLE) == 0;
}

// What a manifest has, and of which kind it is.
bool is_text(const Json& value) {
  return bytes_of(value).has_value();
}
bool is_texts(const Json& value) {
  return (value.is_array() || value.is_object()) &&
         std::all_of(value.begin(), value.end(), [](const Json& one) { return is_text(one); });
}
bool is_flag(const Json& value) {
  return value.is_boolean();
}
bool is_number(const Json& value) {
  return value.is_number_integer();
}
struct Field {
  const char* place;
  bool (*is_right)(const Json& value);
  const char* kind;
};
constexpr Field kFields[] = {{"/cohabit", is_text, "text"},
                             {"/subject/environment", is_text, "text"},
                             {"/subject/program", is_text, "text"},
                             {"/subject/arguments", is_texts, "list of texts"},
                             {"/subject/module", is_text, "text"},
                             {"/subject/imports", is_text, "text"},
                             {"/subject/driver", is_text, "text"},
                             {"/subject/sm", is_text, "text"},
                             {"/subject/gpu_memory", is_text, "text"},
                             {"/subject/assume_gpu", is_flag, "true or false"},
                             {"/subject/verify_hashes", is_flag, "true or false"},
                             {"/directory", is_text, "text"},
                             {"/configuration_file", is_text, "text"},
                             {"/variables", is_texts, "object of texts"},
                             {"/cpu/level", is_number, "number"}};

Result<Json> read_manifest(const std::string& path) {
  const auto expected = [](const std::string& found) {
    return fail(fmt::format("expected a bundle of `cohabit capture`, but {}", found));
  };
  const auto text = read_file(path, kMaxManifest);
  if (!text) return expected(fmt::format("it has no {} that can be read", kBundleManifest));
  Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) return expected(fmt::format("its {} is no JSON object", kBundleManifest));
  const int version = number_at(json, "schema_version");
  if (version < 1) return expected(fmt::format("its {} has no schema_version", kBundleManifest));
  if (version > kSchemaVersion)
    return fail(fmt::format(
        "its form is {} (schema_version), made by cohabit {}: this is {}, which reads up to {}",
        version, text_at(json, "cohabit"), COHABIT_VERSION, kSchemaVersion));
  for (const Field& field : kFields) {
    const Json::json_pointer place(field.place);
    if (!json.contains(place) || !field.is_right(json.at(place)))
      return expected(
          fmt::format("its {} has at {} no {}", kBundleManifest, field.place, field.kind));
  }
  return json;
}

}  // namespace

bool is_bundle(const std::string& word) {
  struct stat status{};
  return word.ends_with(".tar.zst") &&
         (::stat(word.c_str(), &status) != 0 || !S_ISDIR(status.st_mode));
}

Result<void> Bundle::open(DoctorOptions& options) {
  if (!options.root.empty() || options.trace || !options.replay.empty())
    return fail(
        fmt::format("{} holds files of another machine: leave --root, --trace and --replay "
                    "out",
                    file_));
  if (scratch_.path().empty())
    return fail("no temporary directory could be made; set TMPDIR to a place that can be written");
  if (auto done = unpack_archive(file_, scratch_.path()); !done) return done;
  const auto manifest = read_manifest(fmt::format("{}/{}", scratch_.path(), kBundleManifest));
  if (!manifest) return fail(fmt::format("{}: {}", file_, manifest.error().message));
  const Json& json = *manifest;
  if (const std::string by = text_at(json, "cohabit"); by != COHABIT_VERSION)
    say("captured by cohabit {}, examined by {}\n", by, COHABIT_VERSION);
  options.root = fmt::format("{}/{}", scratch_.path(), kBundleTree);
  options.surroundings = surroundings_of(json);
  directory_ = options.surroundings->directory;
  if (!directory_.starts_with('/')) directory_ = "/";
  read_known(scratch_.path(), directory_, log_);
  choose_subject(object_at(json, "subject"), options);
  question_ = question_of(options);
  DoctorOptions captured;
  captured.surroundings = options.surroundings;
  choose_subject(object_at(json, "subject"), captured);
  lacks_hashes_ = options.verify_hashes && !captured.verify_hashes;
  if (question_ != question_of(captured) && !keeps_holes(scratch_.path()))
    return fail(fmt::format(
        "{} was made for another question, and the file system of {} does not tell what "
        "a bundle leaves out: set TMPDIR to a place on another one",
        file_, directory_of(scratch_.path())));
  const std::string name = options.surroundings->configuration_file;
  if (!options.configuration.empty()) return {};
  if (name.empty()) {
    options.no_configuration = true;
    return {};
  }
  options.configuration =
      fmt::format("{}/{}/{}", scratch_.path(), kBundleConfiguration, last_part(name));
  options.configuration_named = name;
  return {};
}

void Bundle::prepare(Tree& tree) {
  tree.set_directory(directory_);
  tree.set_log(&log_);
}

void Bundle::add_gaps(report::Report& report) const {
  const BundleGaps gaps = find_gaps(log_, scratch_.path(), directory_);
  std::vector<std::string> lacks;
  if (lacks_hashes_)
    lacks.push_back("holds no hashes of installed files, so that none is compared");
  if (!gaps.contents.empty())
    lacks.push_back(fmt::format("does not hold the content of {} ({})",
                                count_of(gaps.contents.size(), "file"),
                                list_some(gaps.contents, kShownGaps)));
  if (!gaps.paths.empty())
    lacks.push_back(fmt::format("does not know what is at {} ({})",
                                count_of(gaps.paths.size(), "path"),
                                list_some(gaps.paths, kShownGaps)));
  if (lacks.empty()) return;
  const std::string text = fmt::format(
      "the bundle was made for another examination: it {}; what follows from that is unknown; "
      "capture it again with this question: `{}`",
      fmt::join(lacks, ", and "), question_);
  report.unknowns.insert(report.unknowns.begin(), text);
  say("cohabit: {}\n", text);
  for (report::Order& order : report.orders)
    if (order.verdict == "sound") order.verdict = "unknown";
}

Error Bundle::explained(Error error) const {
  BundleGaps gaps = find_gaps(log_, scratch_.path(), directory_);
  gaps.contents.insert(gaps.contents.end(), gaps.paths.begin(), gaps.paths.end());
  if (!gaps.contents.empty())
    error.message +=
        fmt::format(" (the bundle was made for another examination: it does not hold {})",
                    list_some(gaps.contents, kShownGaps));
  return error;
}

std::string format_manifest(const DoctorOptions& options, const Surroundings& used,
                            const Redaction& redaction) {
  TargetWords target = changed(options, with_stand_ins);
  for (std::string& argument : target.arguments) redaction.apply(argument);
  const auto shown = [&](std::string text) { return json_of(redaction.applied(std::move(text))); };
  const Json subject = {{"environment", shown(target.words[0])},
                        {"program", shown(target.words[1])},
                        {"arguments", json_of(target.arguments)},
                        {"module", shown(options.module)},
                        {"imports", shown(options.imports)},
                        {"driver", options.host.driver},
                        {"sm", options.host.sm},
                        {"gpu_memory", options.host.memory},
                        {"assume_gpu", options.assume_gpu},
                        {"verify_hashes", options.verify_hashes}};
  const Json cpu = {{"level", used.cpu.level},       {"bmi", used.cpu.bmi},
                    {"avx512_1", used.cpu.avx512_1}, {"platform", used.cpu.platform},
                    {"atomics", used.cpu.atomics},   {"is_assumed", used.cpu.is_assumed}};
  Json variables = Json::object();
  for (const auto& [name, value] : used.variables) variables[name] = json_of(value);
  const Json json = {{"schema_version", kSchemaVersion},
                     {"cohabit", COHABIT_VERSION},
                     {"subject", subject},
                     {"directory", shown(used.directory)},
                     {"configuration_file", shown(used.configuration_file)},
                     {"variables", variables},
                     {"cpu", cpu}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cohabit
