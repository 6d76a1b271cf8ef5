// Data that programs read on import: text files, JSON, and the metadata of distributions.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "facts/python/requirement.h"
#include "facts/python/version.h"
#include "imports/missing_files.h"
#include "imports/models.h"

namespace cohabit::python {
namespace {

using I = Interpreter;
using A = Arguments;
using Json = nlohmann::json;

constexpr uint64_t kMostText = 1 << 20;
constexpr int kDeepestJson = 64;

Ref from_json(I& in, const Json& json, int depth) {
  if (depth > kDeepestJson) return in.opaque();
  if (json.is_null()) return in.none();
  if (json.is_boolean()) return in.boolean(json.get<bool>());
  if (json.is_number_integer()) return in.integer(json.get<int64_t>());
  if (json.is_string()) return in.string(json.get<std::string>());
  if (json.is_array()) {
    auto* list = in.list({});
    for (const Json& item : json) list->items.push_back(from_json(in, item, depth + 1));
    return list;
  }
  if (!json.is_object()) return in.opaque();
  auto* dict = in.make<Dict>();
  for (const auto& [key, value] : json.items())
    in.dict_set(dict, key, from_json(in, value, depth + 1));
  return dict;
}

Ref json_loads(I& in, Ref, const A& a) {
  const std::string_view* text = text_of(a.get(0));
  if (!text || !a.keywords.empty()) return in.opaque();
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_discarded()) return from_json(in, json, 0);
  for (const char* error : {"ValueError", "JSONDecodeError"}) in.may_raise(error);
  return in.opaque();
}

std::optional<std::string> text_at(I& in, std::string_view path) {
  return path.starts_with("/") ? text_for_program(in, path, kMostText) : std::nullopt;
}

Ref json_load(I& in, Ref, const A& a) {
  Instance* file = as<Instance>(a.get(0), Type::kInstance);
  if (!file || file->of->name != "File") return in.opaque();
  const std::string_view* path = text_of(file->names["name"]);
  const auto text = path ? text_at(in, *path) : std::nullopt;
  if (!text) return in.opaque();
  const A arguments(in.arena(), {in.string(*text)});
  return json_loads(in, nullptr, arguments);
}

Ref path_read_text(I& in, Ref self, const A&) {
  const std::string_view* path = text_of(self);
  const auto text = path ? text_at(in, *path) : std::nullopt;
  if (text) return in.string(*text);
  if (refuses_missing(in, path)) return nullptr;
  return in.opaque();
}

// --- distributions

Ref described(I& in, const Distribution& found) {
  Instance* result = in.instance_of("Distribution");
  result->names["version"] = in.string(found.version);
  result->names["name"] = in.string(found.name);
  result->names["_metadata"] = in.string(found.metadata);
  result->open = true;
  return result;
}

Ref distribution(I& in, Ref, const A& a) {
  const std::string_view* name = text_of(a.get(0));
  if (!name) return in.opaque();
  const Distribution* found = in.distributions().find(std::string(*name));
  return found ? described(in, *found) : in.raise("PackageNotFoundError", std::string(*name));
}

// What importlib.metadata asks each finder of sys.meta_path for.
Ref find_distributions(I& in, Ref, const A& a) {
  Ref context = a.get(0, "context");
  Ref name = context ? in.attribute(context, "name") : in.none();
  const std::string_view* text = name ? text_of(name) : nullptr;
  if (!name) in.clear_raised();
  if (!name || (!text && name->type != Type::kNone)) return in.opaque();
  auto* result = in.list({});
  if (text) {
    if (const Distribution* found = in.distributions().find(std::string(*text)))
      result->items.push_back(described(in, *found));
    return result;
  }
  for (const Distribution& one : in.distributions().all())
    if (!one.is_conda_package) result->items.push_back(described(in, one));
  return result;
}

Ref distribution_version(I& in, Ref, const A& a) {
  Ref found = distribution(in, nullptr, a);
  Instance* known = as<Instance>(found, Type::kInstance);
  if (!known) return found;
  // Distribution.version parses METADATA as a message.
  if (!in.import_dotted("email.parser")) in.clear_raised();
  return known->names["version"];
}

// The headers, which are asked for in any case; others than these two may be there.
Ref distribution_metadata(I& in, Ref self, const A& a) {
  Ref found = self ? self : distribution(in, nullptr, a);
  Instance* known = as<Instance>(found, Type::kInstance);
  if (!known) return found;
  if (!in.import_dotted("email.parser")) in.clear_raised();
  auto* headers = in.make<Dict>();
  for (const auto& [key, value] : {std::pair("Name", "name"), std::pair("Version", "version")})
    for (const char* name : {key, value}) in.dict_set(headers, name, known->names[value]);
  headers->open_all();
  return headers;
}

// The files of a RECORD, as paths: what Distribution.files gives, located.
Ref distribution_files(I& in, Ref self, const A&) {
  Instance* known = as<Instance>(self, Type::kInstance);
  const std::string_view* metadata = known ? text_of(known->names["_metadata"]) : nullptr;
  const auto record = metadata
                          ? in.tree().read_text(std::string(*metadata) + "/RECORD", 16 * kMostText)
                          : std::nullopt;
  if (!record) return in.opaque();
  const std::string_view site = metadata->substr(0, metadata->rfind('/') + 1);
  auto* files = in.list({});
  for (size_t at = 0; at < record->size();) {
    size_t end = record->find('\n', at);
    if (end == std::string::npos) end = record->size();
    const std::string line = record->substr(at, end - at);
    at = end + 1;
    const bool quoted = line.starts_with("\"");
    const size_t stop = quoted ? line.find('"', 1) : line.find(',');
    if (stop == std::string::npos || stop == 0) continue;
    const size_t begin = quoted ? 1 : 0;
    files->items.push_back(in.path(fmt::format("{}{}", site, line.substr(begin, stop - begin))));
  }
  return files;
}

Ref files_of(I& in, Ref, const A& a) {
  Ref found = distribution(in, nullptr, a);
  return found && found->type == Type::kInstance ? distribution_files(in, found, {}) : found;
}

// packaging's own source goes by regular expressions.
Instance* specifier_set(I& in, std::string_view text) {
  Instance* set = in.instance_of("SpecifierSet");
  set->names["_clauses"] = in.string(std::string(text));
  return set;
}

Ref specifier_set_new(I& in, Ref, const A& a) {
  if (a.positional.empty() && a.keywords.empty() && !a.open) return specifier_set(in, "");
  const std::string_view* text = text_of(a.get(0, "specifiers"));
  if (!text || !VersionSpecifiers::parse(*text)) return in.opaque();
  return specifier_set(in, *text);
}

// Which pre-releases count when nobody says it is left open.
Ref specifier_set_contains(I& in, Ref self, const A& a) {
  Instance* set = as<Instance>(self, Type::kInstance);
  const std::string_view* clauses = set ? text_of(set->names["_clauses"]) : nullptr;
  Ref item = a.get(0, "item");
  const Str* known = as<Str>(item, Type::kVersion);
  const std::string_view* text = known ? &known->text : text_of(item);
  if (!clauses || !text) return in.opaque();
  const auto specifiers = VersionSpecifiers::parse(*clauses);
  const auto version = PythonVersion::parse(*text);
  if (!specifiers || !version) return in.opaque();
  Ref asked = a.get(1, "prereleases");
  const bool all = asked && in.truth(asked) == std::optional(true);
  if (version->is_prerelease() && !all) return in.opaque();
  return in.boolean(specifiers->contains(*version));
}

Ref requirement_new(I& in, Ref, const A& a) {
  const std::string_view* text = text_of(a.get(0, "requirement_string"));
  const auto wanted = text ? PackageRequirement::parse(*text) : std::nullopt;
  if (!wanted) return in.opaque();
  Instance* made = in.instance_of("Requirement");
  auto* extras = in.list({}, Type::kSet);
  for (const std::string& extra : wanted->extras) extras->items.push_back(in.string(extra));
  made->names["name"] = in.string(wanted->name);
  made->names["extras"] = extras;
  made->names["specifier"] = specifier_set(in, wanted->specifiers.text());
  made->names["url"] = wanted->url.empty() ? in.none() : in.string(wanted->url);
  made->names["marker"] = wanted->marker.empty() ? in.none() : in.opaque();
  return made;
}

Ref path_locate(I&, Ref self, const A&) {
  return self;
}

constexpr ModelRow kRows[] = {
    {"json.loads", json_loads},
    {"json.load", json_load},
    {"Path.read_text", path_read_text},
    {"Path.locate", path_locate},
    {"importlib.metadata.distribution", distribution},
    {"importlib.metadata.version", distribution_version},
    {"importlib.metadata.metadata", distribution_metadata},
    {"importlib.metadata.files", files_of},
    {"importlib_metadata.distribution", distribution},
    {"importlib_metadata.version", distribution_version},
    {"importlib_metadata.metadata", distribution_metadata},
    {"importlib_metadata.files", files_of},
    {"PathFinder.find_distributions", find_distributions},
    {"Distribution.files()", distribution_files},
    {"Distribution.metadata()", distribution_metadata},
    {"packaging.requirements.Requirement", requirement_new},
    {"packaging.specifiers.SpecifierSet", specifier_set_new},
    {"SpecifierSet.contains", specifier_set_contains},
    {"SpecifierSet.__contains__", specifier_set_contains},
};

}  // namespace

std::span<const ModelRow> data_models() {
  return kRows;
}

std::optional<std::string> text_for_program(I& in, std::string_view path, uint64_t most) {
  constexpr std::string_view kProcesses = "/proc/";
  if (path.starts_with(kProcesses)) {
    const std::string_view name = path.substr(kProcesses.size());
    if (name.starts_with("self") || name.starts_with("thread-self") ||
        name.find_first_of("0123456789") == 0)
      return std::nullopt;
  }
  return in.tree().read_text(std::string(path), most);
}

}  // namespace cohabit::python
