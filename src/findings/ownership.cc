#include "findings/ownership.h"

#include <algorithm>
#include <cctype>

#include "findings/overwritten.h"
#include "findings/unclaimed.h"

namespace cohabit {
namespace {

bool contains(const std::vector<uint32_t>& list, uint32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The distribution of an import, without reading Python: by its name, or by native files in a
// package of that name.
bool provides(const Distribution& one, std::string_view package) {
  const auto same_letter = [](char a, char b) {
    const auto plain = [](char c) { return c == '-' || c == '.' ? '_' : c; };
    return std::tolower(plain(a)) == std::tolower(plain(b));
  };
  if (std::equal(one.name.begin(), one.name.end(), package.begin(), package.end(), same_letter))
    return true;
  const std::string site = one.metadata.substr(0, one.metadata.rfind('/') + 1);
  const std::string directory = site + std::string(package) + '/';
  const std::string module = site + std::string(package) + '.';
  const auto is_inside = [&](const std::string& file) {
    return file.rfind(directory, 0) == 0 || file.rfind(module, 0) == 0;
  };
  return std::any_of(one.native_files.begin(), one.native_files.end(), is_inside) ||
         std::find(one.owned_packages.begin(), one.owned_packages.end(), directory) !=
             one.owned_packages.end();
}

bool provides_one_of(const Distribution& one, const std::vector<std::string>& imports) {
  return std::any_of(imports.begin(), imports.end(), [&](const std::string& name) {
    return provides(one, std::string_view(name).substr(0, name.find('.')));
  });
}

}  // namespace

bool Ownership::same(uint32_t a, uint32_t b) const {
  const auto& of_b = owners(b);
  return std::any_of(owners(a).begin(), owners(a).end(),
                     [&](uint32_t owner) { return contains(of_b, owner); });
}

bool Ownership::asks_for(uint32_t a, uint32_t b) const {
  const auto& of_a = owners(a);
  const auto& of_b = owners(b);
  return !of_b.empty() && std::all_of(of_b.begin(), of_b.end(), [&](uint32_t wanted) {
    return std::any_of(of_a.begin(), of_a.end(), [&](uint32_t owner) {
      return owner == wanted || contains(distributions[owner].needs, wanted);
    });
  });
}

bool Ownership::is_absent(uint32_t distribution) const {
  return distributions[distribution].has_native_files &&
         std::none_of(of_object.begin(), of_object.end(), [&](const std::vector<uint32_t>& owners) {
           return contains(owners, distribution);
         });
}

// What a requirement brings that is not there itself, it does not bring: vtk requires matplotlib
// for a part that `import vtk` leaves alone, and so has no use for matplotlib's pillow.
std::vector<uint32_t> Ownership::brought_without(const std::vector<uint32_t>& left_out) const {
  std::vector<uint32_t> reached;
  for (const uint32_t one : requested)
    if (!contains(left_out, one)) reached.push_back(one);
  for (size_t at = 0; at < reached.size(); at++) {
    if (is_absent(reached[at]) && !contains(requested, reached[at])) continue;
    for (const uint32_t next : distributions[reached[at]].always)
      if (!contains(reached, next) && !contains(left_out, next)) reached.push_back(next);
  }
  return reached;
}

bool Ownership::serves_request(uint32_t object, uint32_t provider) const {
  if (asked.imports.empty()) return true;
  for (const std::string& name : asked.imports) {  // an extension module imported by its own name
    const std::string stem = name.substr(name.rfind('.') + 1) + ".";
    if (file_of_object[object].rfind(stem, 0) == 0) return true;
  }
  if (requested.empty()) return true;
  const auto is_one_of = [&](const std::vector<uint32_t>& list) {
    return std::any_of(owners(object).begin(), owners(object).end(),
                       [&](uint32_t owner) { return contains(list, owner); });
  };
  if (is_one_of(brought_without(owners(provider)))) return true;
  // Packages without metadata do not say what they need, nor does own code that cannot be read:
  // what nobody else brings, they did.
  const bool asks_silently =
      asked.silently || std::any_of(requested.begin(), requested.end(), [&](uint32_t one) {
        return !distributions[one].package.empty();
      });
  return asks_silently && !owners(object).empty() && !is_one_of(brought_without({}));
}

// What the last process brought is forgotten.
void forget_packages(const Distributions& distributions, Ownership& ownership) {
  const size_t installed = distributions.all().size();
  ownership.distributions.resize(installed);
  std::erase_if(ownership.requested, [&](uint32_t one) { return one >= installed; });
}

void find_owners(const Tree& tree, const Distributions& distributions,
                 const sim::Simulation& simulation, Ownership& ownership) {
  forget_packages(distributions, ownership);
  ownership.of_object.clear();
  ownership.file_of_object.clear();
  UnclaimedPackages packages(tree, distributions, ownership);
  for (const sim::Object& object : simulation.objects()) {
    std::vector<uint32_t> owners;
    ownership.file_of_object.push_back(object.name.substr(object.name.rfind('/') + 1));
    if (object.image != kNone) {
      const std::string& path = simulation.images()[object.image].real_path;
      for (const Distribution* one : distributions.owners(path))
        owners.push_back(static_cast<uint32_t>(one - distributions.all().data()));
      if (owners.empty()) owners = packages.owner_of(path, ownership.owners(object.by));
    }
    ownership.of_object.push_back(std::move(owners));
  }
  narrow_owners(tree, distributions, simulation, ownership);
}

Ownership read_ownership(const Tree& tree, const Distributions& distributions,
                         const sim::Simulation& simulation, Asked asked) {
  Ownership ownership;
  ownership.asked = std::move(asked);
  const auto index_of = [&](const Distribution* one) {
    return static_cast<uint32_t>(one - distributions.all().data());
  };
  for (const Distribution& one : distributions.all()) {
    OwnerDistribution owner{one.name, one.version, {}, {}, !one.native_files.empty(), {}};
    for (const std::string_view text : one.requires_dist) {
      const Distribution* needed =
          distributions.find(text.substr(0, text.find_first_of(" \t;[(<>=!~,@")));
      if (!needed) continue;
      owner.needs.push_back(index_of(needed));
      const bool in_extra =
          text.substr(std::min(text.find(';'), text.size())).find("extra") != text.npos;
      if (!in_extra) owner.always.push_back(index_of(needed));
    }
    ownership.distributions.push_back(std::move(owner));
    if (provides_one_of(one, ownership.asked.imports))
      ownership.requested.push_back(index_of(&one));
  }
  find_owners(tree, distributions, simulation, ownership);
  return ownership;
}

}  // namespace cohabit
