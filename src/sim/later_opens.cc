#include "sim/later_opens.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/paths.h"

namespace cohabit::sim {
namespace {

using python::Phase;

constexpr int kNow = 2;

// Whether a name without directory is looked for in the object's own directory.
bool looks_beside_itself(const elf::Object& object) {
  const std::string_view path = object.runpath ? *object.runpath : object.rpath.value_or("");
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    std::string_view directory = path.substr(begin, end - begin);
    while (directory.ends_with('/') || directory.ends_with("/.")) directory.remove_suffix(1);
    if (directory == "$ORIGIN" || directory == "${ORIGIN}") return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

std::string LaterOpens::version_of(const Simulation& simulation, ObjectId id) const {
  const Object& object = simulation.objects()[id];
  const Image& image = simulation.images()[object.image];
  std::string best = python::version_in(last_part(image.real_path));
  for (const std::string& other :
       {python::version_in(simulation.elf(id).soname.value_or("")), facts_(object.name).version}) {
    // A distribution may count otherwise than its libraries: ctranslate2 4.6.0 brings cuDNN 9.1.0.
    const bool goes_on = best.empty() || other.starts_with(best + ".");
    if (goes_on && !other.empty()) best = other;
  }
  return best;
}

python::Opener LaterOpens::opener_of(const Simulation& simulation, ObjectId id) const {
  const Object& object = simulation.objects()[id];
  python::Opener opener;
  opener.image = &simulation.images()[object.image];
  opener.file = last_part(object.name);
  opener.version = version_of(simulation, id);
  opener.cuda = facts_(object.name).cuda;
  opener.directories = simulation.own_directories(id);
  return opener;
}

void LaterOpens::find_rows(const Simulation& simulation, ObjectId id, Known& known) const {
  known.has_rows = true;
  const python::Opener opener = opener_of(simulation, id);
  const Tree& tree = simulation.images().tree();
  for (const python::LaterRow& row : python::later_rows()) {
    if (row.phase == Phase::kNever || (row.needs_gpu() && !gpu_)) continue;
    if (!python::matches(row, opener)) continue;
    for (python::Attempts& attempts : python::opens_of(row, opener, tree)) {
      std::string own = python::own_file(attempts, opener, tree);
      known.intents.push_back({&row, row.phase, std::move(attempts), std::move(own)});
    }
  }
}

void LaterOpens::find_parts(const Simulation& simulation, ObjectId id, Known& known) const {
  known.has_parts = true;
  python::Opener opener = opener_of(simulation, id);
  const Tree& tree = simulation.images().tree();
  // A name that ld.so would not find there is opened by path, if at all.
  if (!opener.directories.empty() && !looks_beside_itself(simulation.elf(id)))
    opener.directories.erase(opener.directories.begin());
  if (opener.directories.empty()) return;
  for (python::Attempts& attempts : python::own_parts(opener, tree)) {
    std::string own = python::own_file(attempts, opener, tree);
    known.intents.push_back({nullptr, Phase::kUse, std::move(attempts), std::move(own)});
  }
}

std::vector<LaterOpens::Intent> LaterOpens::intents_of(const Simulation& simulation, ObjectId id,
                                                       Phase phase) {
  Known& known = known_[simulation.objects()[id].image];
  if (!known.has_rows) find_rows(simulation, id, known);
  if (phase == Phase::kUse && !known.has_parts) find_parts(simulation, id, known);
  std::vector<Intent> intents;
  for (const Intent& intent : known.intents)
    if (intent.phase == phase) intents.push_back(intent);
  return intents;
}

std::vector<ConstructorOpens::Open> LaterOpens::opens_of(const Simulation& simulation,
                                                         ObjectId id) {
  std::vector<Open> opens;
  for (Intent& intent : intents_of(simulation, id, Phase::kImport))
    opens.push_back({std::move(intent.attempts), intent.row->flags});
  return opens;
}

std::vector<LaterOpen> LaterOpens::play(Phase phase, Simulation& simulation,
                                        std::vector<LoaderCall>& calls, const IsAsked& is_asked) {
  std::vector<LaterOpen> opens;
  // What is loaded on the way opens its own.
  for (ObjectId id = 0; id < simulation.objects().size(); id++) {
    if (simulation.objects()[id].removed || simulation.objects()[id].ns != 0) continue;
    for (Intent& intent : intents_of(simulation, id, phase)) {
      if (intent.row && intent.row->if_asked && !is_asked(id)) continue;
      LaterOpen open;
      open.phase = phase;
      open.row = intent.row;
      open.opener = id;
      open.own = std::move(intent.own);
      for (std::string& name : intent.attempts) {
        const bool by_path = intent.row && intent.row->by_path;
        if (by_path) name = fmt::format("{}/{}", simulation.objects()[id].origin, name);
        LoaderCall call;
        call.name = name;
        call.flags = intent.row ? intent.row->flags : kNow;
        call.caller = simulation.objects()[id].name;
        calls.push_back(std::move(call));
        CallResult result = simulation.run_last(calls);
        open.attempts.push_back(std::move(name));
        open.object = result.object;
        open.error = std::move(result.error);
        open.search = std::move(result.search);
        if (!result.failed) break;
      }
      opens.push_back(std::move(open));
    }
  }
  return opens;
}

}  // namespace cohabit::sim
