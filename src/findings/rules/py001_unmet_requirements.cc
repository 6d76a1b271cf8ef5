// What `pip check` would say, without pip: requirements of what is installed, with their markers
// for this interpreter, and extras where another requirement asks for them. Environments that break
// a requirement often work (installers are asked to every day), so this is a warning, unless the
// requirer says in its own __init__.py that it will not: numba raises "Numba needs NumPy 1.26 or
// less".
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "facts/python/requirement.h"
#include "findings/expected.h"
#include "findings/rules/rules.h"
#include "findings/spelling.h"

namespace cohabit::rules {
namespace {

constexpr uint64_t kMaxModule = 1 << 20;

struct Complaint {
  const Distribution* requirer;
  std::string wanted;  // ">=1.22,<1.27"
  bool too_high = false;
  std::string extra{};  // of the requirer, that nobody is known to have asked for
  std::string who() const {
    return fmt::format("{}{} ({})", label(*requirer), extra.empty() ? "" : ", extra " + extra,
                       wanted);
  }
};

// Extras for those who work on the package itself: that their tools are there says nothing.
bool is_for_developers(const std::string& extra) {
  static const std::set<std::string, std::less<>> kNames = {
      "build", "ci",   "dev", "devel", "develop", "development", "doc",
      "docs",  "lint", "qa",  "test",  "testing", "tests",       "typing"};
  return kNames.contains(extra);
}

// What is asked of one distribution, by normal name.
struct Target {
  std::string name;
  VersionSpecifiers all;  // of those too that are content today
  const Distribution* installed = nullptr;
  std::vector<Complaint> complaints;
};

// The texts that a marker compares with, as names of extras. Nothing: an extra that equals none of
// them may still make a difference.
std::optional<std::set<std::string>> compared_with(std::string_view marker) {
  std::set<std::string> result;
  while (!marker.empty()) {
    const size_t quote = std::min(marker.find_first_of("'\""), marker.size());
    if (contains_word(marker.substr(0, quote), "in")) return std::nullopt;
    if (quote == marker.size()) break;
    const size_t end = marker.find(marker[quote], quote + 1);
    if (end == marker.npos || end == quote + 1) return std::nullopt;
    result.insert(normal_name(marker.substr(quote + 1, end - quote - 1)));
    marker.remove_prefix(end + 1);
  }
  return result;
}

// A requirement of a distribution, here. One of TensorFlow's or of JAX's extras is asked about each
// of hundreds of requirements, and named by few.
class Wanted {
 public:
  Wanted(PackageRequirement what, const MarkerEnvironment& environment)
      : what_(std::move(what)),
        always_(what_.applies(environment, "")),
        names_(compared_with(what_.marker)) {}

  const PackageRequirement& what() const { return what_; }
  bool applies() const { return always_; }
  bool applies(const MarkerEnvironment& environment, const std::string& extra) const {
    return names_ && !names_->contains(extra) ? always_ : what_.applies(environment, extra);
  }

 private:
  PackageRequirement what_;
  bool always_;
  std::optional<std::set<std::string>> names_;  // of extras that make a difference
};

class Requirements {
 public:
  explicit Requirements(const EnvironmentCase& examined)
      : examined_(examined), environment_(MarkerEnvironment::of(examined.interpreter)) {
    for (const Distribution& distribution : examined.all())
      if (examined.distributions.find(distribution.name) == &distribution)  // not a shadowed one
        for (const Wanted& one : wanted_by(distribution))
          if (one.applies()) look_at(distribution, one.what());
    while (!waiting_.empty()) {
      const auto [distribution, extra] = waiting_.back();
      waiting_.pop_back();
      visit(*distribution, extra);
    }
    for (const Distribution& distribution : examined.all())
      if (examined.distributions.find(distribution.name) == &distribution)
        visit_unasked(distribution);
    for (auto& [name, target] : unmet_) {
      target.all = asked_[name];
      for (const Complaint& complaint : target.complaints)
        if (const auto wanted = VersionSpecifiers::parse(complaint.wanted)) target.all.add(*wanted);
    }
  }

  const std::map<std::string, Target>& unmet() const { return unmet_; }

 private:
  const std::vector<Wanted>& wanted_by(const Distribution& distribution) {
    const auto [known, fresh] = wanted_.try_emplace(&distribution);
    if (fresh)
      for (const std::string& text : distribution.requires_dist)
        if (auto requirement = PackageRequirement::parse(text))
          known->second.emplace_back(std::move(*requirement), environment_);
    return known->second;
  }

  // What holds without the extra was looked at before.
  void visit(const Distribution& distribution, const std::string& extra) {
    for (const Wanted& one : wanted_by(distribution))
      if (one.applies(environment_, extra) && !one.applies()) look_at(distribution, one.what());
  }

  // pip writes down nowhere which extras were asked for. One of which all is installed is taken for
  // one of them; where the distribution requires something in any case, that bound counts alone
  // (jax has an extra for the oldest jaxlib that it can do with).
  void visit_unasked(const Distribution& distribution) {
    const std::vector<Wanted>& all = wanted_by(distribution);
    std::set<std::string> required;
    for (const Wanted& one : all)
      if (one.applies()) required.insert(normal_name(one.what().name));
    for (const std::string& name : distribution.provides_extra) {
      const std::string extra = normal_name(name);
      if (is_for_developers(extra) || seen_.contains({&distribution, extra})) continue;
      std::vector<const PackageRequirement*> wanted;
      for (const Wanted& one : all)
        if (!one.applies() && one.applies(environment_, extra)) wanted.push_back(&one.what());
      if (std::all_of(wanted.begin(), wanted.end(), [&](const PackageRequirement* one) {
            return examined_.distributions.find(one->name) != nullptr;
          }))
        for (const PackageRequirement* one : wanted)
          if (!required.contains(normal_name(one->name))) look_at(distribution, *one, extra);
    }
  }

  void look_at(const Distribution& requirer, const PackageRequirement& requirement,
               const std::string& extra = "") {
    const Distribution* installed = examined_.distributions.find(requirement.name);
    if (installed && extra.empty())
      for (const std::string& asked : requirement.extras)
        if (seen_.insert({installed, asked}).second) waiting_.emplace_back(installed, asked);
    const auto version = installed ? PythonVersion::parse(installed->version) : std::nullopt;
    // What may not have been asked for bounds nothing.
    if (extra.empty()) asked_[normal_name(requirement.name)].add(requirement.specifiers);
    if (installed && (!version || requirement.specifiers.contains(*version))) return;
    Target& target = unmet_[normal_name(requirement.name)];
    target.name = requirement.name;
    target.installed = installed;
    const auto& clauses = requirement.specifiers.clauses();
    const bool too_high =
        version && std::any_of(clauses.begin(), clauses.end(),
                               [&](const auto& c) { return c.excludes_from_above(*version); });
    target.complaints.push_back({&requirer, requirement.specifiers.text(), too_high, extra});
  }

  const EnvironmentCase& examined_;
  MarkerEnvironment environment_;
  std::map<const Distribution*, std::vector<Wanted>> wanted_;
  std::map<std::string, Target> unmet_;
  std::map<std::string, VersionSpecifiers> asked_;  // by normal name, by all that require it
  std::set<std::pair<const Distribution*, std::string>> seen_;
  std::vector<std::pair<const Distribution*, std::string>> waiting_;
};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return result;
}

bool has_one_of(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != text.npos; });
}

// A line such as `msg = (f"Numba needs NumPy 1.26 or less. Got NumPy "` in a module that raises
// ImportError: names the other, a version, and the side on which the installed one is.
std::string refusing_line(const std::string& module, const std::string& name, bool too_high) {
  if (module.find("raise ImportError") == module.npos) return "";
  for (size_t begin = 0; begin < module.size();) {
    const size_t end = std::min(module.find('\n', begin), module.size());
    const std::string line = lower(std::string_view(module).substr(begin, end - begin));
    begin = end + 1;
    const size_t comment = line.find_first_not_of(" \t");
    if (comment == line.npos || line[comment] == '#') continue;
    if (line.find(name) == line.npos || line.find_first_of("'\"") == line.npos) continue;
    if (line.find_first_of("0123456789{") == line.npos) continue;
    const bool fits =
        too_high
            ? has_one_of(line, {"or less", "less than", "or earlier", "or older", "earlier than",
                                "older than", "below", "at most", "up to"})
            : has_one_of(line, {"or greater", "greater than", "or later", "or newer", "or above",
                                "newer than", "later than", "at least", "or higher"});
    if (fits) return line.substr(comment, 120);
  }
  return "";
}

// In which of its packages the requirer refuses the installed version, and with which words.
std::pair<std::string, std::string> own_refusal(const EnvironmentCase& examined,
                                                const Complaint& complaint,
                                                const std::string& name) {
  const auto index = static_cast<uint32_t>(complaint.requirer - examined.all().data());
  const auto [begin, end] = examined.files.rows_of(index);
  for (size_t i = begin; i < end; i++) {
    const InstalledFiles::Row& row = examined.files.rows()[i];
    const size_t slash = row.record.path.find('/');
    if (slash == row.record.path.npos || row.record.path.substr(slash + 1) != "__init__.py")
      continue;
    const std::string path = examined.files.path_of(row);
    const auto module = examined.tree.read_text(path, kMaxModule);
    if (!module) continue;
    const std::string line = refusing_line(*module, name, complaint.too_high);
    if (!line.empty()) return {path, line};
  }
  return {};
}

// Who requires several things is one party.
void add_party(Finding& finding, const Distribution& distribution) {
  const auto& known = finding.libraries;
  if (std::none_of(known.begin(), known.end(),
                   [&](const Library& library) { return library.path == distribution.metadata; }))
    finding.libraries.push_back(library_of(distribution, distribution.metadata));
}

Finding wrong_version(const EnvironmentCase& examined, const std::string& name,
                      const Target& target) {
  Finding finding;
  // The packages of an extra may be there for other reasons (rich, beside httpx's extra for its
  // command).
  const bool is_guessed =
      std::all_of(target.complaints.begin(), target.complaints.end(),
                  [](const Complaint& complaint) { return !complaint.extra.empty(); });
  finding.severity = is_guessed ? Severity::kNote : Severity::kWarning;
  finding.certainty = Certainty::kDeclared;
  std::vector<std::string> who;
  for (const Complaint& complaint : target.complaints) who.push_back(complaint.who());
  finding.headline =
      fmt::format("{} is not what is required by {}", label(*target.installed), list_some(who));
  finding.libraries.push_back(library_of(*target.installed, target.installed->metadata));
  for (const Complaint& complaint : target.complaints) {
    const Distribution& requirer = *complaint.requirer;
    add_party(finding, requirer);
    const auto [path, line] = own_refusal(examined, complaint, name);
    if (path.empty()) continue;
    finding.severity = Severity::kError;
    finding.broken.push_back(path);
    finding.headline = fmt::format("{} refuses {}: it requires {}", label(requirer),
                                   label(*target.installed), complaint.wanted);
    finding.evidence.push_back(fact("file", fmt::format("{} says: {}", path, line), path));
  }
  for (size_t i = 0; i < std::min<size_t>(who.size(), 8); i++)
    finding.evidence.push_back(fact("declared", "required by " + who[i]));
  if (target.all.takes_nothing())
    finding.help.push_back(
        {fmt::format("no version of {} is taken by all who require it ({}): install other versions "
                     "of these, or use separate environments",
                     target.name, target.all.text()),
         "", Safety::kManual});
  else
    finding.help.push_back(
        {fmt::format("install a version that all who require {} take", target.name),
         installer_command(examined, "install", {target.name + target.all.text()}),
         Safety::kUnsafe});
  return finding;
}

Finding not_installed(const EnvironmentCase& examined, const std::vector<const Target*>& targets) {
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kDeclared;
  std::vector<std::string> names, arguments;
  for (const Target* target : targets) {
    const Complaint& first = target->complaints.front();
    names.push_back(fmt::format("{} (by {})", target->name, first.requirer->name));
    arguments.push_back(target->name +
                        (target->all.takes_nothing() ? first.wanted : target->all.text()));
    finding.evidence.push_back(fact("declared", fmt::format("{}{} is required by {}", target->name,
                                                            first.wanted, label(*first.requirer))));
    add_party(finding, *first.requirer);
  }
  if (finding.libraries.size() > 10) finding.libraries.resize(10);
  finding.headline = fmt::format("required and not installed: {}", list_some(names));
  finding.help.push_back({"install what is missing",
                          installer_command(examined, "install", arguments), Safety::kSafe});
  return finding;
}

// The interpreter is required too.
std::optional<Finding> wrong_python(const EnvironmentCase& examined) {
  const MarkerEnvironment environment = MarkerEnvironment::of(examined.interpreter);
  const auto python = PythonVersion::parse(environment.python_full_version);
  std::vector<std::string> who;
  Finding finding;
  for (const Distribution& distribution : examined.all()) {
    const auto specifiers = VersionSpecifiers::parse(distribution.requires_python);
    if (!specifiers || !python || specifiers->contains(*python)) continue;
    who.push_back(fmt::format("{} ({})", label(distribution), specifiers->text()));
    finding.libraries.push_back(library_of(distribution, distribution.metadata));
  }
  if (who.empty()) return std::nullopt;
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kDeclared;
  finding.headline = fmt::format("Python {} is not what is required by {}",
                                 examined.interpreter.version, list_some(who));
  finding.help.push_back({"install versions that are made for this Python, or use another Python",
                          "", Safety::kManual});
  return finding;
}

using Unmet = std::map<std::string, Target>;

std::vector<Finding> findings_of(const EnvironmentCase& examined, const Unmet& unmet) {
  std::vector<Finding> findings;
  std::vector<const Target*> missing;
  for (const auto& [name, target] : unmet) {
    if (target.installed)
      findings.push_back(wrong_version(examined, name, target));
    else
      missing.push_back(&target);
  }
  if (!missing.empty()) findings.push_back(not_installed(examined, missing));
  return findings;
}

std::vector<Finding> check(const EnvironmentCase& examined) {
  std::vector<Finding> findings = findings_of(examined, Requirements(examined).unmet());
  if (auto finding = wrong_python(examined)) findings.push_back(std::move(*finding));
  return findings;
}

// What makes a complaint the same one after an install: not the version that does not fit.
std::string key_of(const std::string& name, const Target& target, const Complaint& complaint) {
  return fmt::format("{} {} {} {} {}", name, target.installed != nullptr,
                     normal_name(complaint.requirer->name), complaint.wanted, complaint.extra);
}

}  // namespace

std::vector<Finding> expect_unmet(const EnvironmentCase& before, const EnvironmentCase& after) {
  std::set<std::string> known;
  const Requirements today(before), then(after);
  for (const auto& [name, target] : today.unmet())
    for (const Complaint& complaint : target.complaints)
      known.insert(key_of(name, target, complaint));
  Unmet unmet;
  for (const auto& [name, target] : then.unmet()) {
    Target left = target;
    std::erase_if(left.complaints, [&](const Complaint& complaint) {
      return known.contains(key_of(name, target, complaint));
    });
    if (!left.complaints.empty()) unmet.emplace(name, std::move(left));
  }
  std::vector<Finding> findings = findings_of(after, unmet);
  if (auto finding = wrong_python(after)) findings.push_back(std::move(*finding));
  return findings;
}

std::set<std::string> wanting_other_versions(const EnvironmentCase& examined) {
  std::set<std::string> names;
  const Requirements requirements(examined);
  for (const auto& [name, target] : requirements.unmet())
    for (const Complaint& complaint : target.complaints)
      if (target.installed) names.insert(normal_name(complaint.requirer->name));
  return names;
}

const Rule kPy001 = {
    "PY001",
    "unmet-requirement",
    Severity::kWarning,
    "An installed distribution requires another that is missing or has another version.",
    "  Requires-Dist and Requires-Python of all installed distributions, with markers for this "
    "interpreter\n"
    "  and with the extras that other requirements ask for. One finding for each distribution of "
    "which\n"
    "  another version is wanted, one for all that are missing. An error if the requirer's own "
    "__init__.py\n"
    "  holds an ImportError for this case.",
    "  Nobody has tried this combination. It may work: version bounds are often narrower than need "
    "be.",
    "  numba 0.59.1 requires numpy<1.27,>=1.22; NumPy 2.1.3 is installed.",
    "  Install a version that all requirers take; where there is none, use separate environments.",
    "  Extras that were asked for on a command line are not known: one of which all is installed "
    "is a note,\n"
    "  but for those of developers (tests, docs). A version that is no version (PEP 440) counts as "
    "the\n"
    "  right one.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
