// protoc writes Python modules (*_pb2.py) that fit the protobuf runtime of their time:
//   before 3.20       they build descriptors themselves; the C runtimes since 4.21 refuse that
//   3.20 to 5.25      they import google.protobuf.internal.builder, which runtimes before 3.20 lack
//   from 5.26 on      they name their version, and a runtime that is older refuses
// What is imported is looked for among the installed files, so that the next such change is found
// too.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <set>

#include "facts/python/requirement.h"
#include "findings/expected.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

constexpr uint64_t kMaxModule = 4 << 20;

struct Runtime {
  const Distribution* distribution = nullptr;
  PythonVersion version;
  bool is_native = false;                       // has the C implementation, and uses it
  bool in_python = false;                       // a variable asks for that in Python
  std::function<bool(const std::string&)> has;  // "google/protobuf/internal/builder": a module?
};

std::optional<Runtime> find_runtime(const Tree& tree, const Distributions& distributions) {
  Runtime runtime;
  runtime.distribution = distributions.find("protobuf");
  if (!runtime.distribution) return std::nullopt;
  const auto version = PythonVersion::parse(runtime.distribution->version);
  if (!version) return std::nullopt;
  runtime.version = *version;
  runtime.is_native = !runtime.distribution->native_files.empty();
  runtime.has = [&tree, site = runtime.distribution->site + "/"](const std::string& path) {
    return tree.stat(site + path + ".py") || tree.stat(site + path);
  };
  return runtime;
}

std::optional<Runtime> find_runtime(const EnvironmentCase& examined) {
  std::optional<Runtime> runtime = find_runtime(examined.tree, examined.distributions);
  if (!runtime) return runtime;
  const auto& variables = examined.options.variables;
  const auto asked = variables.find("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION");
  runtime->in_python = asked != variables.end() && asked->second == "python";
  runtime->is_native &= !runtime->in_python;
  return runtime;
}

// One that is to be installed: of its files the names are known, if that.
std::optional<Runtime> find_expected_runtime(const EnvironmentCase& expected) {
  std::optional<Runtime> runtime = find_runtime(expected);
  if (!runtime) return runtime;
  std::set<std::string> names;
  for (const InstalledFiles::Row& row : expected.files.rows())
    if (&expected.owner(row) == runtime->distribution) names.insert(std::string(row.record.path));
  runtime->has = [names = std::move(names)](const std::string& path) {
    return names.empty() || names.contains(path + ".py") || names.contains(path + "/__init__.py");
  };
  return runtime;
}

// "from google.protobuf.internal import builder as _builder" -> the module that is not there.
std::string missing_import(const Runtime& runtime, std::string_view line) {
  static constexpr std::string_view kFrom = "from google.protobuf";
  if (!line.starts_with(kFrom)) return "";
  const size_t import = line.find(" import ");
  if (import == line.npos) return "";
  std::string package(line.substr(5, import - 5));
  std::string_view name = line.substr(import + 8);
  name = name.substr(0, name.find_first_of(" \r,"));
  if (package != "google.protobuf" && package != "google.protobuf.internal") return "";
  const std::string module = package + "." + std::string(name);
  std::string path = module;
  std::replace(path.begin(), path.end(), '.', '/');
  if (name.empty() || name == "(" || name == "*") return "";
  return runtime.has(path) ? "" : module;
}

// The three numbers behind "ValidateProtobufRuntimeVersion(_runtime_version.Domain.PUBLIC,".
std::optional<PythonVersion> generated_by(std::string_view text) {
  size_t at = text.find("ValidateProtobufRuntimeVersion(");
  at = at == text.npos ? at : text.find("Domain.PUBLIC", at);
  if (at == text.npos) return std::nullopt;
  std::string version;
  text = text.substr(at, 200);
  for (int i = 0; i < 3; i++) {
    const size_t digit = text.find_first_of("0123456789");
    if (digit == text.npos) return std::nullopt;
    const size_t end = std::min(text.find_first_not_of("0123456789", digit), text.size());
    version += (i ? "." : "") + std::string(text.substr(digit, end - digit));
    text.remove_prefix(end);
  }
  return PythonVersion::parse(version);
}

// The protobufs that generated code takes.
struct Range {
  std::optional<PythonVersion> least;
  bool is_above = false;    // that one itself does not do
  bool below_four = false;  // the C runtimes since 4.21 refuse it
  bool is_empty() const { return below_four && least && least->release().front() >= 4; }
  void add(const Range& other) {
    below_four |= other.below_four;
    if (!other.least || (least && *other.least < *least)) return;
    is_above = other.is_above || (is_above && least && *least == *other.least);
    least = other.least;
  }
  bool contains(const PythonVersion& version) const {
    if (below_four && version.release().front() >= 4) return false;
    return !least || *least < version || (!is_above && *least == version);
  }
  VersionSpecifiers specifiers() const {
    std::string text;
    if (least) text += (is_above ? ">" : ">=") + least->text();
    if (below_four) text += least ? ",<4" : "<4";
    return VersionSpecifiers::parse(text).value_or(VersionSpecifiers());
  }
  std::string text() const { return "protobuf" + specifiers().text(); }
};

// The release that a module of the runtime came with; nothing: not known.
std::optional<PythonVersion> came_with(std::string_view module) {
  if (module == "google.protobuf.internal.builder") return PythonVersion::parse("3.20");
  if (module == "google.protobuf.runtime_version") return PythonVersion::parse("5.26");
  return std::nullopt;
}

std::string is_for(const PythonVersion& version) {
  return fmt::format("is for {} or later", version.text());
}

// What one generated module takes, and why the runtime refuses it; empty: it does not.
struct Module {
  Range range;
  std::string refusal;
};

Module read_module(const Runtime& runtime, std::string_view text) {
  Module module;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (!runtime.in_python)
      module.range.below_four |= line.find("_descriptor.FieldDescriptor(") != line.npos ||
                                 line.find("_descriptor.EnumValueDescriptor(") != line.npos;
    if (line.starts_with("from google.protobuf.internal import builder"))
      module.range.add({came_with("google.protobuf.internal.builder"), false, false});
    const std::string missing = missing_import(runtime, line);
    if (missing.empty()) continue;
    const auto release = came_with(missing);
    module.range.add({release ? release : runtime.version, !release, false});
    if (module.refusal.empty())
      module.refusal = fmt::format("imports {}, which is not there", missing);
  }
  const auto version = generated_by(text);
  module.range.add({version, false, false});
  if (!module.refusal.empty()) return module;
  if (version && runtime.version < *version)
    module.refusal = is_for(*version);
  else if (module.range.below_four && runtime.is_native && runtime.version.release().front() >= 4)
    module.refusal = "creates descriptors directly, which this runtime refuses";
  return module;
}

struct Verdict {
  size_t modules = 0;
  std::vector<std::pair<std::string, std::string>> refused;  // path, why
  std::vector<Range> ranges;                                 // of the modules
  // What most of them take: some bring old code and new, to choose from.
  Range range() const {
    Range all;
    for (const Range& one : ranges) {
      const auto agree =
          static_cast<size_t>(std::count_if(ranges.begin(), ranges.end(), [&](const Range& other) {
            return other.below_four == one.below_four && !other.least == !one.least;
          }));
      if (agree * 2 > modules || agree == modules) all.add(one);
    }
    return all;
  }
};

// Whether the distribution brings the same module for this runtime too, under a longer name beside
// it, to choose from (transformers' sentencepiece_model_pb2_new.py). Those of gRPC are other code.
bool has_other_version(const EnvironmentCase& examined, const Runtime& runtime, uint32_t index,
                       std::string_view path) {
  const std::string_view stem = path.substr(0, path.size() - std::string_view(".py").size());
  const auto [begin, end] = examined.files.rows_of(index);
  for (size_t i = begin; i < end; i++) {
    const InstalledFiles::Row& row = examined.files.rows()[i];
    const std::string_view other = row.record.path;
    if (!other.starts_with(stem) || !other.ends_with(".py") || other.size() <= path.size() ||
        other[stem.size()] != '_' || other.find('/', stem.size()) != other.npos)
      continue;
    const auto text = examined.tree.read_text(examined.files.path_of(row), kMaxModule);
    if (text && text->find("AddSerializedFile(") != text->npos &&
        read_module(runtime, *text).refusal.empty())
      return true;
  }
  return false;
}

Verdict judge(const EnvironmentCase& examined, const Runtime& runtime, uint32_t index) {
  Verdict verdict;
  const auto [begin, end] = examined.files.rows_of(index);
  for (size_t i = begin; i < end; i++) {
    const InstalledFiles::Row& row = examined.files.rows()[i];
    if (!row.record.path.ends_with("_pb2.py") || is_by_the_way(row.record.path)) continue;
    const std::string path = examined.files.path_of(row);
    const auto text = examined.tree.read_text(path, kMaxModule);
    if (!text) continue;
    Module module = read_module(runtime, *text);
    if (!module.refusal.empty() && has_other_version(examined, runtime, index, row.record.path))
      continue;
    verdict.modules++;
    verdict.ranges.push_back(std::move(module.range));
    if (!module.refusal.empty()) verdict.refused.emplace_back(path, std::move(module.refusal));
  }
  return verdict;
}

// What it says of protobuf, each text once. "for an extra": it is imported without protobuf too,
// and may bring generated code for several protobufs to choose from.
struct Wishes {
  std::vector<std::string> texts;
  bool all_for_extras = false;
};
Wishes wishes_of(const Distribution& distribution) {
  Wishes wishes;
  bool unconditional = false;
  for (const std::string& text : distribution.requires_dist) {
    const auto requirement = PackageRequirement::parse(text);
    if (!requirement || normal_name(requirement->name) != "protobuf") continue;
    if (requirement->marker.find("extra") == std::string::npos) unconditional = true;
    if (std::find(wishes.texts.begin(), wishes.texts.end(), text) == wishes.texts.end())
      wishes.texts.push_back(text);
  }
  wishes.all_for_extras = !wishes.texts.empty() && !unconditional;
  return wishes;
}

// Whether a requirement leaves no release of the range. Of protobuf's numbers the shape is known.
bool excludes(const PackageRequirement& requirement, const Range& range) {
  struct Series {
    int major, first, last;
  };
  std::vector<PythonVersion> releases;
  if (range.least) releases.push_back(*range.least);
  for (const Series& series :
       {Series{3, 0, 20}, {4, 21, 25}, {5, 26, 29}, {6, 30, 33}, {7, 34, 60}})
    for (int minor = series.first; minor <= series.last; minor++)
      for (int patch = 0; patch < 10; patch++)
        if (series.major > 3 || minor < 20 || patch < 4)  // 3.20.3 is the last of them
          releases.push_back(
              *PythonVersion::parse(fmt::format("{}.{}.{}", series.major, minor, patch)));
  return std::none_of(releases.begin(), releases.end(), [&](const PythonVersion& release) {
    return range.contains(release) && requirement.specifiers.contains(release);
  });
}

// What all generated code here takes, and who has a say in it.
struct Common {
  Range range;
  std::vector<std::string> wanting;   // "paddlepaddle 2.6.2 takes protobuf>=3.20", distinct ranges
  std::vector<std::string> excluded;  // requirements against the range
  VersionSpecifiers declared;         // what all others that are installed require
};

Common common_range(const EnvironmentCase& examined, const std::vector<Verdict>& verdicts) {
  Common common;
  std::set<std::string> ranges;
  const auto counts = [&](size_t i) {
    return !verdicts[i].ranges.empty() && !wishes_of(examined.all()[i]).all_for_extras;
  };
  for (size_t i = 0; i < verdicts.size(); i++) {
    if (!counts(i)) continue;
    const Range range = verdicts[i].range();
    common.range.add(range);
    if ((range.least || range.below_four) && ranges.insert(range.text()).second)
      common.wanting.push_back(
          fmt::format("the generated code of {} takes {}", label(examined.all()[i]), range.text()));
  }
  const MarkerEnvironment markers = MarkerEnvironment::of(examined.interpreter);
  for (size_t i = 0; i < verdicts.size() && !common.range.is_empty(); i++) {
    for (const std::string& text : wishes_of(examined.all()[i]).texts) {
      const auto requirement = PackageRequirement::parse(text);
      if (!requirement->applies(markers, "")) continue;
      if (!excludes(*requirement, common.range))
        common.declared.add(requirement->specifiers);
      else if (counts(i))
        common.excluded.push_back(
            fmt::format("{} requires {}, which excludes {}; its code does not",
                        label(examined.all()[i]), text, common.range.text()));
    }
  }
  return common;
}

Help help_with(const EnvironmentCase& examined, const Distribution& distribution,
               const Common& common, const Range& own) {
  Range range = common.range;
  range.add(own);  // of one that requires protobuf for extras only
  if (range.is_empty())
    return {fmt::format("no protobuf goes with all generated code here: install another version of "
                        "{} or of the others, or keep them in environments of their own",
                        distribution.name),
            "", Safety::kManual};
  VersionSpecifiers wanted = range.specifiers();
  wanted.add(common.declared);
  if (wanted.takes_nothing()) wanted = range.specifiers();
  return {"install a protobuf that all generated code here takes",
          installer_command(examined, "install", {"protobuf" + wanted.text()}), Safety::kUnsafe};
}

Finding describe(const EnvironmentCase& examined, const Runtime& runtime,
                 const Distribution& distribution, const Verdict& verdict, const Common& common) {
  Finding finding;
  const bool most = verdict.refused.size() * 2 >= verdict.modules;
  const Wishes wishes = wishes_of(distribution);
  finding.severity = most && !wishes.all_for_extras ? Severity::kError : Severity::kWarning;
  finding.headline =
      fmt::format("{} does not go with protobuf {}: its generated code {}", label(distribution),
                  runtime.distribution->version, verdict.refused.front().second);
  for (const auto& [path, why] : verdict.refused) finding.broken.push_back(path);
  finding.evidence.push_back(fact("file", fmt::format("{} of {} refused", verdict.refused.size(),
                                                      count_of(verdict.modules, "module"))));
  for (size_t i = 0; i < std::min<size_t>(verdict.refused.size(), 3); i++) {
    const auto& [path, refused] = verdict.refused[i];
    finding.evidence.push_back(fact("file", fmt::format("{} {}", path, refused), path));
    finding.libraries.push_back(library_of(distribution, path));
  }
  finding.libraries.push_back(
      library_of(*runtime.distribution, runtime.distribution->site + "/google/protobuf"));
  constexpr size_t kShownWishes = 3;
  for (size_t i = 0; i < std::min(wishes.texts.size(), kShownWishes); i++)
    finding.evidence.push_back(fact("declared", fmt::format("it requires {}", wishes.texts[i])));
  if (common.wanting.size() > 1)
    for (const std::string& wanting : common.wanting)
      finding.evidence.push_back(fact("file", wanting));
  for (const std::string& excluded : common.excluded)
    finding.evidence.push_back(fact("declared", excluded));
  finding.help.push_back(help_with(examined, distribution, common, verdict.range()));
  return finding;
}

std::vector<Finding> judge_all(const EnvironmentCase& examined,
                               const std::optional<Runtime>& runtime,
                               const std::set<std::string>& besides) {
  std::vector<Finding> findings;
  if (!runtime) return findings;
  std::vector<Verdict> verdicts(examined.all().size());
  bool any = false;
  for (uint32_t i = 0; i < verdicts.size(); i++) {
    const std::string name = normal_name(examined.all()[i].name);
    if (name == "protobuf" || besides.contains(name)) continue;
    verdicts[i] = judge(examined, *runtime, i);
    any |= !verdicts[i].refused.empty();
  }
  if (!any) return findings;
  const Common common = common_range(examined, verdicts);
  for (uint32_t i = 0; i < verdicts.size(); i++)
    if (!verdicts[i].refused.empty())
      findings.push_back(describe(examined, *runtime, examined.all()[i], verdicts[i], common));
  return findings;
}

std::vector<Finding> check_environment(const EnvironmentCase& examined) {
  return judge_all(examined, find_runtime(examined), {});
}

// The line of the check of versions, which is what raises.
uint32_t line_of_check(std::string_view text) {
  const size_t at = text.find("ValidateProtobufRuntimeVersion(");
  if (at == text.npos) return 0;
  return 1 + static_cast<uint32_t>(std::count(text.begin(), text.begin() + at, '\n'));
}

// Whether the runtime has refused what this process imports, and nobody expects it to.
bool is_refused(const python::Plan& plan) {
  return std::any_of(plan.raises.begin(), plan.raises.end(), [](const python::Undecided& raised) {
    return raised.file.ends_with("/google/protobuf/runtime_version.py") &&
           raised.what.starts_with("VersionError");
  });
}

// The requirement for a protobuf of this range that nobody here excludes; empty: somebody does.
std::string requirement_of(const Distributions& distributions, const Range& range) {
  if (range.is_empty()) return "";
  VersionSpecifiers wanted = range.specifiers();
  for (const Distribution& one : distributions.all())
    for (const std::string& text : wishes_of(one).texts) {
      const auto requirement = PackageRequirement::parse(text);
      if (!requirement->marker.empty()) continue;  // it may be of another machine
      if (excludes(*requirement, range)) return "";
      wanted.add(requirement->specifiers);
    }
  return wanted.takes_nothing() ? "" : "protobuf" + wanted.text();
}

// The code of the program itself, which no distribution brings, as far as this process imports it.
// Other refusals are errors of the plan (PY302).
std::vector<Finding> check_own_code(const Case& examined) {
  if (!examined.plan || !examined.distributions || !is_refused(*examined.plan)) return {};
  const Tree& tree = examined.process.simulation().images().tree();
  const std::optional<Runtime> runtime = find_runtime(tree, *examined.distributions);
  if (!runtime) return {};
  std::vector<std::pair<std::string, PythonVersion>> refused;
  Finding finding;
  for (const python::PlannedModule& module : examined.plan->modules) {
    if (!module.path.ends_with("_pb2.py") || is_below(module.path, runtime->distribution->site) ||
        !examined.distributions->owners(module.path).empty())
      continue;
    const std::string text = tree.read_text(module.path, kMaxModule).value_or("");
    const auto version = generated_by(text);
    if (!version || !(runtime->version < *version)) continue;
    if (refused.empty()) finding.place = {module.path, line_of_check(text)};
    refused.emplace_back(module.path, *version);
  }
  if (refused.empty()) return {};
  Range range;
  finding.severity = Severity::kError;
  finding.headline = fmt::format("{} does not go with {}: this generated code {}",
                                 last_part(refused.front().first), label(*runtime->distribution),
                                 is_for(refused.front().second));
  constexpr size_t kShown = 5;
  for (const auto& [path, version] : refused) {
    range.add({version, false, false});
    if (finding.libraries.size() == kShown) continue;
    finding.libraries.push_back({path, "", ""});
    finding.evidence.push_back(fact("file", fmt::format("{} {}", path, is_for(version)), path));
  }
  finding.libraries.push_back(
      library_of(*runtime->distribution, runtime->distribution->site + "/google/protobuf"));
  const std::string wanted = requirement_of(*examined.distributions, range);
  if (!wanted.empty())
    finding.help.push_back({"install a protobuf that it takes",
                            installer_command(examined.trace.start.program, *examined.distributions,
                                              "install", {wanted}),
                            Safety::kUnsafe});
  finding.help.push_back({fmt::format("{}generate it again, with the protoc of {}",
                                      wanted.empty() ? "" : "or ", label(*runtime->distribution)),
                          "", Safety::kManual});
  return {std::move(finding)};
}

}  // namespace

std::vector<Finding> protobuf_gencode(const EnvironmentCase& before,
                                      const EnvironmentCase& expected,
                                      const std::set<std::string>& left_out) {
  return judge_all(before, find_expected_runtime(expected), left_out);
}

const Rule kPy006 = {
    "PY006",
    "protobuf-gencode",
    Severity::kError,
    "Generated protobuf code does not go with the installed protobuf.",
    "  Modules *_pb2.py that import what the installed runtime lacks, that name a later version "
    "than "
    "it,\n"
    "  or that create descriptors in the way the C runtimes since 4.21 refuse: of distributions, "
    "and "
    "of\n"
    "  the program itself those that it imports. A warning if these are less than half of a\n"
    "  distribution's modules, or if it requires protobuf for extras only.",
    "  The import ends with `cannot import name 'builder'`, `Descriptors cannot be created "
    "directly` "
    "or\n"
    "  `Detected incompatible Protobuf Gencode/Runtime versions`.",
    "  paddlepaddle 2.6.2 with protobuf 3.19.6, which has no google.protobuf.internal.builder.",
    "  Install a protobuf that all generated code of the environment takes (it is named, with who "
    "requires otherwise), or newer distributions.",
    "  Without known imports a module that nothing imports counts as any other. With\n"
    "  PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python nothing refuses descriptors that are created "
    "directly.",
    check_own_code,
    check_environment,
};

}  // namespace cohabit::rules
