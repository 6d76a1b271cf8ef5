#include "cli/configuration.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include "base/addresses.h"
#include "base/read_file.h"
#include "base/source_secrets.h"
#include "findings/rule.h"

namespace cohabit {
namespace {

constexpr size_t kMaxFile = 4 << 20;
constexpr const char* kOwnFile = "cohabit.toml";
constexpr const char* kProjectFile = "pyproject.toml";

const std::vector<std::string> kKeys = {"severity", "ignore", "fail-on", "index-for"};
const std::vector<std::string> kIgnoreKeys = {"code", "library", "distribution", "imports",
                                              "reason"};
const std::vector<std::string> kSeverities = {"error", "warning", "note", "off"};
const std::vector<std::string> kFailOn = {"error", "warning", "note", "never"};

std::string meant(const std::string& wrong, const std::vector<std::string>& candidates) {
  const auto near = nearest_name(wrong, candidates);
  return near ? fmt::format("; did you mean {}?", *near) : "";
}

class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  Result<Configuration> read(const toml::table& table) {
    Configuration result;
    result.file = file_;
    if (auto good = check_keys(table, kKeys, ""); !good) return unexpected(good);
    if (const toml::node* node = table.get("fail-on")) {
      auto value = choice(*node, "fail-on", kFailOn);
      if (!value) return tl::unexpected<Error>(value.error());
      result.fail_on = *value;
    }
    if (auto good = read_severities(table, result.policy); !good) return unexpected(good);
    if (auto good = read_ignores(table, result.policy); !good) return unexpected(good);
    if (auto good = read_indexes(table, result.index_for); !good) return unexpected(good);
    return result;
  }

 private:
  static tl::unexpected<Error> unexpected(const Result<void>& result) {
    return tl::unexpected<Error>(result.error());
  }

  tl::unexpected<Error> wrong(const std::string& where, const std::string& what) const {
    return fail(fmt::format("{}: {}{}{}", file_, where, where.empty() ? "" : ": ", what));
  }

  Result<void> check_keys(const toml::table& table, const std::vector<std::string>& known,
                          const std::string& where) const {
    for (const auto& [key, value] : table) {
      const std::string name(key.str());
      if (std::find(known.begin(), known.end(), name) == known.end())
        return wrong(where, fmt::format("there is no key {}{}", name, meant(name, known)));
    }
    return {};
  }

  Result<std::string> text(const toml::node& node, const std::string& where) const {
    const auto value = node.value<std::string>();
    if (!value || value->empty()) return wrong(where, "expected a text in quotes");
    return *value;
  }

  Result<std::string> choice(const toml::node& node, const std::string& where,
                             const std::vector<std::string>& choices) const {
    auto value = text(node, where);
    if (value && std::find(choices.begin(), choices.end(), *value) == choices.end())
      return wrong(where, fmt::format("{} is not one of {}{}", *value, fmt::join(choices, ", "),
                                      meant(*value, choices)));
    return value;
  }

  Result<std::string> code(const std::string& name, const std::string& where) const {
    if (const Rule* rule = find_rule_by_code(name)) return std::string(rule->code);
    std::vector<std::string> known;
    for (const Rule* rule : all_rules()) known.emplace_back(rule->code);
    for (const Rule* rule : all_rules()) known.emplace_back(rule->slug);
    return wrong(where, fmt::format("there is no rule {}{} (`cohabit rules` lists them)", name,
                                    meant(name, known)));
  }

  Result<void> read_severities(const toml::table& table, Policy& policy) const {
    const toml::node* node = table.get("severity");
    if (!node) return {};
    if (!node->is_table()) return wrong("severity", "expected a table: CODE = \"warning\"");
    for (const auto& [key, value] : *node->as_table()) {
      const std::string name(key.str());
      const auto rule = code(name, "severity");
      if (!rule) return tl::unexpected<Error>(rule.error());
      const auto level = choice(value, "severity." + name, kSeverities);
      if (!level) return tl::unexpected<Error>(level.error());
      policy.severities[*rule] = *level == "off"       ? std::optional<Severity>()
                                 : *level == "error"   ? Severity::kError
                                 : *level == "warning" ? Severity::kWarning
                                                       : Severity::kNote;
    }
    return {};
  }

  Result<void> read_indexes(const toml::table& table,
                            std::map<std::string, std::string>& indexes) const {
    const toml::node* node = table.get("index-for");
    if (!node) return {};
    if (!node->is_table()) return wrong("index-for", "expected a table: cu126 = \"URL\"");
    for (const auto& [key, value] : *node->as_table()) {
      const std::string name(key.str());
      auto address = text(value, "index-for." + name);
      if (!address) return tl::unexpected<Error>(address.error());
      indexes[name] = std::move(*address);
    }
    return {};
  }

  Result<void> read_ignores(const toml::table& table, Policy& policy) const {
    const toml::node* node = table.get("ignore");
    if (!node) return {};
    const toml::array* list = node->as_array();
    if (!list) return wrong("ignore", "expected tables: [[ignore]]");
    for (size_t i = 0; i < list->size(); i++) {
      const std::string where = fmt::format("ignore {}", i + 1);
      const toml::table* one = (*list)[i].as_table();
      if (!one) return wrong(where, "expected a table: [[ignore]]");
      auto ignore = read_ignore(*one, where);
      if (!ignore) return tl::unexpected<Error>(ignore.error());
      policy.ignores.push_back(std::move(*ignore));
    }
    return {};
  }

  Result<Ignore> read_ignore(const toml::table& table, const std::string& where) const {
    if (auto good = check_keys(table, kIgnoreKeys, where); !good) return unexpected(good);
    Ignore ignore;
    ignore.place = file_.substr(file_.rfind('/') + 1) + ", " + where;
    std::error_code ignored;
    ignore.source = {std::filesystem::absolute(file_, ignored).lexically_normal(),
                     std::max(1U, table.source().begin.line)};
    for (const auto& [key, place] :
         {std::pair("code", &ignore.code), std::pair("reason", &ignore.reason),
          std::pair("library", &ignore.library), std::pair("distribution", &ignore.distribution)}) {
      const toml::node* node = table.get(key);
      if (!node) continue;
      auto value = text(*node, fmt::format("{}, {}", where, key));
      if (!value) return tl::unexpected<Error>(value.error());
      *place = std::move(*value);
    }
    if (ignore.code.empty()) return wrong(where, "it needs a code: code = \"CB105\"");
    if (ignore.reason.empty())
      return wrong(where, "it needs a reason, for whoever reads it later: reason = \"...\"");
    ignore.reason = without_credentials(std::move(ignore.reason));  // reports show it
    auto rule = code(ignore.code, where);
    if (!rule) return tl::unexpected<Error>(rule.error());
    ignore.code = std::move(*rule);
    if (const toml::node* imports = table.get("imports"))
      if (auto good = read_imports(*imports, where, ignore); !good) return unexpected(good);
    return ignore;
  }

  Result<void> read_imports(const toml::node& node, const std::string& where,
                            Ignore& ignore) const {
    const toml::array* list = node.as_array();
    if (!list) return wrong(where + ", imports", "expected a list: imports = [\"a\", \"b\"]");
    for (const toml::node& item : *list) {
      auto name = text(item, where + ", imports");
      if (!name) return tl::unexpected<Error>(name.error());
      ignore.imports.push_back(std::move(*name));
    }
    return {};
  }

  std::string file_;
};

// Nothing: a pyproject.toml that does not speak of us. `must_speak`: it was named.
// `named`: as what it is told of.
Result<std::optional<Configuration>> read_one(const std::string& file, const std::string& named,
                                              bool must_speak) {
  auto text = read_file(file, kMaxFile);
  if (!text) return tl::unexpected<Error>(text.error());
  hide_told_secrets(*text);  // reports show reasons
  const toml::parse_result parsed = toml::parse(std::string_view(*text));
  const bool own = !file.ends_with(kProjectFile);
  if (!parsed) {
    // Somebody else's pyproject.toml may be broken: that is not for us to say.
    if (!own && !must_speak && text->find("tool.cohabit") == text->npos)
      return std::optional<Configuration>();
    return fail(fmt::format("{}, line {}: {}", named, parsed.error().source().begin.line,
                            parsed.error().description()));
  }
  const toml::table* table = &parsed.table();
  if (!own) {
    const toml::node* section = table->at_path("tool.cohabit").node();
    if (!section) return std::optional<Configuration>();
    table = section->as_table();
    if (!table) return fail(named + ": expected a table [tool.cohabit]");
  }
  auto result = Reader(named).read(*table);
  if (!result) return tl::unexpected<Error>(result.error());
  return std::optional(std::move(*result));
}

// A file of this name may be read. Of our own name something else is an error: somebody meant it.
Result<bool> is_file(const std::filesystem::path& path) {
  struct stat status{}, link{};
  const int failed = ::stat(path.c_str(), &status) == 0 ? 0 : errno;
  if (!failed && S_ISREG(status.st_mode)) return true;
  if (path.filename() != kOwnFile || ::lstat(path.c_str(), &link) != 0) return false;
  return fail(fmt::format("{}: expected a file, but: {}", path.string(),
                          failed ? std::strerror(failed) : "it is no regular file"));
}

}  // namespace

Result<Configuration> read_configuration(const std::string& file, const std::string& named) {
  if (!file.empty()) {
    auto result = read_one(file, named.empty() ? file : named, true);
    if (!result) return tl::unexpected<Error>(result.error());
    if (!*result) return fail(file + ": expected a table [tool.cohabit]");
    return std::move(**result);
  }
  std::error_code ignored;
  std::filesystem::path at = std::filesystem::current_path(ignored);
  while (!at.empty()) {
    for (const char* name : {kOwnFile, kProjectFile}) {
      const auto found = is_file(at / name);
      if (!found) return tl::unexpected<Error>(found.error());
      if (!*found) continue;
      const std::string path = (at / name).string();
      auto result = read_one(path, path, false);
      if (!result) return tl::unexpected<Error>(result.error());
      if (*result) return std::move(**result);
    }
    if (at == at.parent_path()) break;
    at = at.parent_path();
  }
  return Configuration();
}

}  // namespace cohabit
