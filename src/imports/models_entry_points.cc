// What distributions offer by name (entry_points.txt), and what is loaded of it: programs look for
// their plugins so.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "facts/python/requirement.h"
#include "imports/models.h"

namespace cohabit::python {
namespace {

using I = Interpreter;
using A = Arguments;

constexpr uint64_t kMostText = 1 << 20;

Instance* entry_point(I& in, std::string_view group, std::string_view name,
                      std::string_view value) {
  Instance* made = in.instance_of("EntryPoint");
  made->names["group"] = in.string(std::string(group));
  made->names["name"] = in.string(std::string(name));
  made->names["value"] = in.string(std::string(value));
  const std::string_view target = trim(value.substr(0, value.find('[')));
  const size_t colon = target.find(':');
  made->names["module"] = in.string(std::string(trim(target.substr(0, colon))));
  made->names["attr"] =
      in.string(colon == target.npos ? std::string() : std::string(trim(target.substr(colon + 1))));
  made->open = true;
  return made;
}

// Lines "name = value" below "[group]".
void add_entry_points(I& in, const Distribution& distribution, Sequence& all) {
  const auto text = in.tree().read_text(distribution.metadata + "/entry_points.txt", kMostText);
  if (!text) return;
  std::string_view rest = *text, group;
  while (!rest.empty()) {
    const std::string_view line = trim(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(
        std::min(rest.size(), rest.find('\n') == rest.npos ? rest.size() : rest.find('\n') + 1));
    if (line.empty() || line[0] == '#') continue;
    const size_t sign = line.find('=');
    if (line.front() == '[' && line.back() == ']')
      group = trim(line.substr(1, line.size() - 2));
    else if (sign != line.npos)
      all.items.push_back(
          entry_point(in, group, trim(line.substr(0, sign)), trim(line.substr(sign + 1))));
  }
}

Instance* entry_points_of(I& in, Sequence* all) {
  Instance* made = in.instance_of("EntryPoints");
  made->names["_all"] = all;
  made->open = true;
  return made;
}

Sequence* all_of(Ref self) {
  const auto* points = as<Instance>(self, Type::kInstance);
  return points ? sequence_of(points->names.get("_all")) : nullptr;
}

std::string_view told(Ref point, std::string_view what) {
  const auto* known = as<Instance>(point, Type::kInstance);
  const std::string_view* text = known ? text_of(known->names.get(what)) : nullptr;
  return text ? *text : "";
}

// Those that have all that is asked for; null: what is asked for is not known.
Sequence* selected(I& in, const Sequence& all, const A& a) {
  if (a.open) return nullptr;
  auto* result = in.list({}, Type::kTuple);
  for (const Ref point : all.items) {
    bool fits = true;
    for (const auto& [what, value] : a.keywords) {
      const std::string_view* text = text_of(value);
      if (!text || (what != "group" && what != "name" && what != "value")) return nullptr;
      fits = fits && told(point, what) == *text;
    }
    if (fits) result->items.push_back(point);
  }
  return result;
}

// By their groups, as Python up to 3.9 gives them.
Ref by_group(I& in, const Sequence& all) {
  auto* result = in.make<Dict>();
  for (const Ref point : all.items) {
    Ref group = static_cast<Instance*>(point)->names["group"];
    Sequence* known = sequence_of(in.dict_get(result, group));
    if (!known) in.dict_set(result, group, known = in.list({}, Type::kTuple));
    known->items.push_back(point);
  }
  return result;
}

// The first distribution of a name counts.
Sequence* installed(I& in) {
  auto* all = in.list({}, Type::kTuple);
  std::set<std::string> seen;
  for (const Distribution& one : in.distributions().all())
    if (!one.is_conda_package && seen.insert(normal_name(one.name)).second)
      add_entry_points(in, one, *all);
  return all;
}

Ref points(I& in, Ref, const A& a) {
  const auto& python = in.finder().interpreter();
  const Sequence* all = installed(in);
  if (python.minor < 10) {
    if (a.keywords.empty() && !a.open) return by_group(in, *all);
    return a.open ? in.opaque()
                  : in.raise("TypeError", "entry_points() got an unexpected keyword argument");
  }
  Sequence* fitting = selected(in, *all, a);
  if (!fitting) return in.opaque();
  return entry_points_of(in, fitting);
}

// The backport gives the same to every Python.
Ref backported_points(I& in, Ref, const A& a) {
  Sequence* fitting = selected(in, *installed(in), a);
  if (!fitting) return in.opaque();
  return entry_points_of(in, fitting);
}

Ref points_of_distribution(I& in, Ref self, const A&) {
  const auto* distribution = as<Instance>(self, Type::kInstance);
  const Distribution* found = distribution ? in.distributions().find(told(self, "name")) : nullptr;
  if (!found) return in.opaque();
  auto* all = in.list({}, Type::kTuple);
  add_entry_points(in, *found, *all);
  return entry_points_of(in, all);
}

Ref points_select(I& in, Ref self, const A& a) {
  const Sequence* all = all_of(self);
  Sequence* fitting = all ? selected(in, *all, a) : nullptr;
  if (!fitting) return in.opaque();
  return entry_points_of(in, fitting);
}

// Up to Python 3.11 what is asked of no group is a dictionary of groups.
Ref points_get(I& in, Ref self, const A& a) {
  const Sequence* all = all_of(self);
  const std::string_view* group = text_of(a.get(0));
  if (!all || !group) return in.opaque();
  auto* result = in.list({}, Type::kTuple);
  for (const Ref point : all->items)
    if (told(point, "group") == *group) result->items.push_back(point);
  Ref otherwise = a.get(1, "default");
  return result->items.empty() && otherwise ? otherwise : result;
}

Ref points_item(I& in, Ref self, const A& a) {
  const Sequence* all = all_of(self);
  const std::string_view* name = text_of(a.get(0));
  if (!all || !name) return in.opaque();
  for (const Ref point : all->items)
    if (told(point, "name") == *name) return point;
  Ref group = points_get(in, self, a);
  return as<Sequence>(group, Type::kTuple) && sequence_of(group)->items.empty() ? in.opaque()
                                                                                : group;
}

Ref point_load(I& in, Ref self, const A&) {
  const std::string_view module = told(self, "module"), attribute = told(self, "attr");
  if (module.empty()) return in.opaque();
  Ref value = in.import_dotted(std::string(module));
  for (std::string_view rest = attribute; value && !rest.empty();) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    value = in.attribute(value, rest.substr(0, dot));
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  return value;
}

constexpr ModelRow kRows[] = {
    {"importlib.metadata.entry_points", points},
    {"importlib_metadata.entry_points", backported_points},
    {"Distribution.entry_points()", points_of_distribution},
    {"EntryPoints.select", points_select},
    {"EntryPoints.get", points_get},
    {"EntryPoints.__getitem__", points_item},
    {"EntryPoint.load", point_load},
};

}  // namespace

std::span<const ModelRow> entry_point_models() {
  return kRows;
}

}  // namespace cohabit::python
