#include "repair/effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/paths.h"

namespace cohabit {
namespace {

using sim::Binding;
using sim::ObjectId;

// What the moved names tell of danger.
struct MovedKinds {
  uint32_t type_info = 0;
  uint32_t unique = 0;
};

class Comparison {
 public:
  Comparison(const JudgedProcess& before, const JudgedProcess& after)
      : before_(before.simulation()), after_(after.simulation()) {}

  void fill(Effects& effects, MovedKinds& kinds);

 private:
  // Whom a reference of a file was bound to, whichever object it is in. kNone: to nobody.
  ImageId& old_provider(const sim::Simulation& simulation, const Binding& binding);
  void note(const Binding& binding, ImageId old_provider, MovedKinds& kinds);

  const sim::Simulation& before_;
  const sim::Simulation& after_;
  std::vector<std::vector<ImageId>> old_providers_;  // by image, by slot of its references
  std::set<std::pair<ImageId, uint32_t>> moved_;     // image and symbol: each name counts once
  std::map<std::tuple<ImageId, ImageId, ImageId>, uint32_t> moves_;
};

ImageId& Comparison::old_provider(const sim::Simulation& simulation, const Binding& binding) {
  const ImageId image = simulation.objects()[binding.from].image;
  old_providers_.resize(simulation.images().size());
  auto& slots = old_providers_[image];
  if (slots.empty()) slots.resize(simulation.images()[image].references.size(), kNone);
  return slots[binding.slot];
}

void Comparison::note(const Binding& binding, ImageId old_provider, MovedKinds& kinds) {
  const Images& images = after_.images();
  const sim::Object& from = after_.objects()[binding.from];
  const sim::Object& to = after_.objects()[binding.to];
  moves_[{from.image, old_provider, to.image}]++;
  const std::string_view name = images.name(images[from.image].references[binding.slot].name);
  if (name.starts_with("_ZTI") || name.starts_with("_ZTS")) kinds.type_info++;
  if (images[to.image].elf.symbols[binding.definition].bind() == elf::STB_GNU_UNIQUE)
    kinds.unique++;
}

void Comparison::fill(Effects& effects, MovedKinds& kinds) {
  before_.bindings().each([&](uint32_t, const Binding& binding) {
    if (ImageId& old = old_provider(before_, binding); old == kNone)
      old = before_.objects()[binding.to].image;
  });
  after_.bindings().each([&](uint32_t, const Binding& binding) {
    const ImageId old = old_provider(after_, binding);
    if (old == kNone || old == after_.objects()[binding.to].image) return;
    if (moved_.emplace(after_.objects()[binding.from].image, binding.reference).second)
      note(binding, old, kinds);
  });
  const Images& images = after_.images();
  for (const auto& [parties, count] : moves_) {
    const auto& [consumer, from, to] = parties;
    effects.moves.push_back(
        {images[consumer].real_path, images[from].real_path, images[to].real_path, count});
    effects.moved += count;
  }
  // In the order of the images, which another run may have met in another one, ties would be
  // chance.
  const auto rank = [](const Move& move) { return std::tie(move.consumer, move.from, move.to); };
  std::sort(effects.moves.begin(), effects.moves.end(), [&](const Move& a, const Move& b) {
    return a.count != b.count ? a.count > b.count : rank(a) < rank(b);
  });
}

// Whoever defines malloc before libc does: an allocator that was linked or preloaded.
std::string replaced_malloc(const JudgedProcess& process) {
  const sim::Simulation& simulation = process.simulation();
  const NameId name = simulation.images().find_name("malloc");
  if (name == kNone || simulation.objects().empty()) return "";
  for (const ObjectId id : simulation.objects()[0].search_list) {
    if (process.view().is_c_library(id)) return "";
    for (uint32_t at = simulation.images().first_definition(name); at != kNone;
         at = simulation.images().definition(at).next)
      if (simulation.images().definition(at).image == simulation.objects()[id].image)
        return simulation.objects()[id].name;
  }
  return "";
}

void add_deepbind_risks(const JudgedProcess& before, const FlagRule& rule, Effects& effects) {
  const std::string file = last_part(rule.file);
  effects.risks.push_back(fmt::format(
      "{} finds libc's own dlopen first: no rule applies to what it opens later", file));
  const std::string allocator = replaced_malloc(before);
  if (!allocator.empty())
    effects.risks.push_back(fmt::format(
        "{} replaces malloc here; {} would see libc's first, and memory passed between them would "
        "be freed by the wrong one",
        last_part(allocator), file));
}

void add_preload_costs(const JudgedProcess& after, const std::string& name, Effects& effects) {
  const sim::Simulation& simulation = after.simulation();
  uint64_t bytes = 0;
  size_t files = 0;
  for (ObjectId id = 0; id < simulation.objects().size(); id++) {
    const sim::Object& object = simulation.objects()[id];
    if (object.how != sim::How::kPreload || (object.requested != name && object.name != name))
      continue;
    for (const ObjectId member : after.view().closure(id)) {
      if (after.view().is_c_library(member)) continue;
      bytes += after.view().image(member).file_size;
      files++;
    }
  }
  effects.costs.push_back(
      bytes == 0 ? fmt::format("every process that is started maps {}", last_part(name))
                 : fmt::format("every process that is started maps {} ({} files, {:.1f} MB, with "
                               "what it needs)",
                               last_part(name), files, static_cast<double>(bytes) / 1e6));
}

}  // namespace

Effects compute_effects(const JudgedProcess& before, const JudgedProcess& after,
                        const Repair& repair) {
  Effects effects;
  MovedKinds kinds;
  Comparison(before, after).fill(effects, kinds);
  for (const auto& [name, value] : repair.variables)
    if (name == "LD_LIBRARY_PATH" && !value.empty())
      effects.risks.push_back(
          "the libraries in these directories come before those that a RUNPATH or the system has, "
          "in every process that is started");
  for (const std::string& name : repair.preloads) add_preload_costs(after, name, effects);
  if (!repair.flags.empty())
    effects.costs.push_back("libcohabit_preload.so compares the name that each dlopen is given");
  for (const FlagRule& rule : repair.flags) {
    if (rule.change == FlagChange::kAddDeepbind) add_deepbind_risks(before, rule, effects);
    if (rule.change == FlagChange::kDropGlobal)
      effects.risks.push_back(
          fmt::format("a library opened later that takes symbols of {} without naming it as a "
                      "dependency will not find them (none of those that the imports open does)",
                      last_part(rule.file)));
  }
  if (kinds.type_info > 0)
    effects.risks.push_back(
        fmt::format("{} names of C++ type information move: an exception or dynamic_cast that "
                    "crosses the libraries compares types by name from now on",
                    kinds.type_info));
  if (kinds.unique > 0)
    effects.risks.push_back(
        fmt::format("{} unique symbols (STB_GNU_UNIQUE) move: one copy of each serves the whole "
                    "process, whatever the flags",
                    kinds.unique));
  return effects;
}

}  // namespace cohabit
