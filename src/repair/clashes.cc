#include "repair/clashes.h"

#include <algorithm>

#include "repair/proposals.h"

namespace cohabit {

using sim::ObjectId;

Clashes::Clashes(const JudgedProcess& process) : images_(process.simulation().images()) {
  const sim::Simulation& simulation = process.simulation();
  const auto& objects = simulation.objects();
  const auto& calls = process.trace().calls;
  bool is_split = false;
  for (const CaptureGroup& group : process.captures().groups) {
    is_split |= group.verdict == Verdict::kLiveSplit;
    if (group.verdict != Verdict::kVersionCrossing) continue;
    Clash clash;
    clash.provider = objects[group.provider].image;
    for (const uint32_t binding : group.bindings)
      clash.names.push_back(process.view().reference(simulation.bindings()[binding]).name);
    for (const size_t at : opens_that_promote(process, group.provider))
      clash.made_global.push_back(*calls[at].name);
    clash.opened = open_that_mapped(process, group.consumer);
    clashes_.push_back(std::move(clash));
  }
  // A split is over too when all of the family goes to the wrong copy together.
  for (const Finding& finding : process.findings())
    is_split |= process.counts(finding) && finding.code != "CB102" &&
                repair_class(finding) == RepairClass::kLaunch;
  if (is_split) clashes_.emplace_back().anything_may_clear_it = true;
  if (clashes_.empty()) return;

  for (ObjectId id = 0; id < objects.size(); id++) {
    if (objects[id].image == kNone || objects[id].removed) continue;
    std::vector<ImageId> brings;
    for (const ObjectId member : process.view().closure(id))
      brings.push_back(objects[member].image);
    brings_.emplace(objects[id].name, brings);
    if (const auto soname = simulation.elf(id).soname) brings_.emplace(*soname, std::move(brings));
  }
}

bool Clashes::may_clear(const Repair& repair) const {
  return std::all_of(clashes_.begin(), clashes_.end(),
                     [&](const Clash& clash) { return is_touched(clash, repair); });
}

bool Clashes::may_help(const Repair& repair) const {
  return std::any_of(clashes_.begin(), clashes_.end(),
                     [&](const Clash& clash) { return is_touched(clash, repair); });
}

bool Clashes::is_touched(const Clash& clash, const Repair& repair) const {
  if (clash.anything_may_clear_it || !repair.variables.empty()) return true;
  for (const FlagRule& rule : repair.flags)
    if (rule.change == FlagChange::kDropGlobal
            ? std::count(clash.made_global.begin(), clash.made_global.end(), rule.file) > 0
            : clash.opened == rule.file)
      return true;
  return std::any_of(repair.preloads.begin(), repair.preloads.end(),
                     [&](const std::string& name) { return moves(clash, name); });
}

// Whether some captured name is defined, in what is preloaded, by another than the provider first.
bool Clashes::moves(const Clash& clash, const std::string& preload) const {
  const auto found = brings_.find(preload);
  if (found == brings_.end()) return true;
  const std::vector<ImageId>& order = found->second;
  const auto place = [&](ImageId image) {
    return std::find(order.begin(), order.end(), image) - order.begin();
  };
  const auto provider = place(clash.provider);
  return std::any_of(clash.names.begin(), clash.names.end(), [&](NameId name) {
    for (uint32_t at = images_.first_definition(name); at != kNone;
         at = images_.definition(at).next)
      if (const auto there = place(images_.definition(at).image);
          there < provider && there < static_cast<ptrdiff_t>(order.size()))
        return true;
    return false;
  });
}

}  // namespace cohabit
