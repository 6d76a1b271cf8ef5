// Which captures matter?
//
// In a healthy process with two frameworks thousands of references leave the dependency closure of
// their object: 13,144 in `import torch, paddleocr`, which works; 8,940 in `import paddleocr`,
// which dies. Counting does not separate them; five questions do.
//
//   Was it meant?        Unique symbols, vague linkage and the language runtimes are made to be
//                        shared; libraries of one distribution, or of distributions that ask for
//                        one another, were linked to be together.
//   Is the family split? A library whose references *all* went to another copy works with it.
//                        One whose references went partly there hands objects of one implementation
//                        to functions of the other.
//   Was it asked for?    A library that only comes along, of a package that no import needs, has
//                        nobody who is known to call it.
//   Is the old half entered?  When it is the library itself whose inner references are captured,
//   this
//                        matters to those who call into it. If nobody does, it sleeps; and if the
//                        provider is global, so that all who come later go there too, it is dead.
//   Are the versions right?  glibc lets a definition without version satisfy a versioned reference.
//                        Meant for old libraries, it gives the calls of a versioned library to
//                        whatever exports the bare name, e.g. stubs for another major.
//
// The C++ runtime is a case of its own: runtime_classes.h.
#include "findings/captures.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/find_text.h"
#include "findings/candidates.h"
#include "findings/mangled.h"
#include "findings/runtime_classes.h"
#include "findings/symbols.h"

namespace cohabit {
namespace {

using sim::Binding;
using sim::ObjectId;

// Among the constants, not in the string table: a DT_NEEDED there would have made it the own
// provider. `file`: the object's bytes. `with_code`: constants may be in one segment with code, as
// older linkers lay them out.
bool has_string(const elf::Object& object, Bytes file, const std::string& text,
                bool with_code = false) {
  constexpr uint64_t kMaxData = 256 << 20;
  const std::string wanted = text + '\0';
  const size_t table_size = object.strings.size();
  const auto table = static_cast<size_t>(object.strings.text().data() - file.text().data());
  for (const elf::Phdr& segment : object.segments) {
    if ((segment.p_flags & elf::PF_W) || segment.p_filesz > kMaxData) continue;
    if ((segment.p_flags & elf::PF_X) && !with_code) continue;
    const auto bytes = file.slice(segment.p_offset, segment.p_filesz);
    if (!bytes) continue;
    const std::string_view constants = bytes->text();
    for (size_t at = find_text(constants, wanted); at != constants.npos;
         at = find_text(constants, wanted, at + 1))
      if (segment.p_offset + at < table || segment.p_offset + at >= table + table_size) return true;
  }
  return false;
}

// A module made by Cython 3.2: when it is initialised, it calls zlib.decompress on its strings, and
// names the macro that made it so where that fails. (3.3 unpacks them by code of its own.)
bool unpacks_by_zlib(const Image& image) {
  const auto found =
      image.extract("unpacks its strings by zlib", [](const elf::Object& object, Bytes file) {
        const bool does = has_string(object, file, "CYTHON_COMPRESS_STRINGS=%d'.", true) &&
                          has_string(object, file, "zlib", true);
        return MappedFile::Words(does ? 1 : 0);
      });
  return !found.empty();
}

class Judge {
 public:
  Judge(const ProcessView& process, CaptureFacts& facts)
      : process_(process),
        simulation_(process.simulation()),
        facts_(facts),
        families_(facts.families) {}

  Captures judge();

 private:
  struct Work {                         // what the second pass collects for a group
    uint32_t family = kNone;            // as of Families
    bool has_mangled = false;           // names among the captured
    std::unordered_set<ImageId> homes;  // C: the libraries whose names were captured
    std::unordered_set<std::string_view> captured_scopes;
    std::unordered_set<uint32_t> staying_references;
    std::set<ObjectId> entered_by;
  };

  void group(const std::vector<Candidate>& candidates);
  void count_versions(CaptureGroup& group, const Binding& binding, NameId name);
  void second_pass();
  void note_stay(size_t group, uint32_t index, const Binding& binding, NameId name);
  bool is_significant(const Binding& binding) const;
  // `family`: that of the name, as of Families.
  bool in_family(size_t group, NameId name, uint32_t family);
  bool home_is_known(ImageId home, const CaptureGroup& group);
  void forget_unknown_families();
  void compare_copies(size_t group);
  std::optional<CaptureFacts::Functions> functions_of_both(size_t group);
  Verdict verdict(const CaptureGroup& group) const;
  bool is_used_on_request(const CaptureGroup& group) const;
  bool by_design(const CaptureGroup& group, bool crossing) const;
  bool names_soname_of(ObjectId who, ObjectId library) const;

  const ProcessView& process_;
  const sim::Simulation& simulation_;
  CaptureFacts& facts_;
  Families& families_;
  std::vector<CaptureGroup> groups_;
  std::vector<Work> work_;
};

// A plain reference given a versioned definition crosses only if the provider is the library that
// the family is from: stubs overtaken by the real library of another version. A framework that
// carries a whole copy of a library, and happens to version its exports, is a copy like any other.
void Judge::count_versions(CaptureGroup& group, const Binding& binding, NameId name) {
  const elf::Version* wanted = process_.image(binding.from).elf.version_of(binding.reference);
  const elf::Version* given = process_.image(binding.to).elf.version_of(binding.definition);
  const bool wants = wanted && wanted->hash != 0;
  const bool has = given && given->hash != 0;
  group.versioned_to_plain += wants && !has;
  if (!wants && has && group.family.empty() &&
      families_.copies(families_.home(name, process_), process_.object(binding.to).image))
    group.plain_to_versioned++;
}

void Judge::group(const std::vector<Candidate>& candidates) {
  std::map<std::tuple<ObjectId, ObjectId, ObjectId, uint32_t>, size_t> index;
  for (const Candidate& candidate : candidates) {
    const Binding binding = simulation_.bindings()[candidate.binding];
    const uint32_t family = families_.cpp_family(candidate.name);
    const auto [entry, is_new] =
        index.try_emplace({binding.from, binding.to, candidate.own, family}, groups_.size());
    if (is_new) {
      CaptureGroup fresh;
      fresh.consumer = binding.from;
      fresh.provider = binding.to;
      fresh.own = candidate.own;
      fresh.family = families_.text(family);
      groups_.push_back(std::move(fresh));
      work_.emplace_back().family = family;
    }
    CaptureGroup& group = groups_[entry->second];
    group.captured++;
    group.bindings.push_back(candidate.binding);
    count_versions(group, binding, candidate.name);
    const std::string_view text = simulation_.images().name(candidate.name);
    Work& work = work_[entry->second];
    work.has_mangled |= text.starts_with("_Z");
    if (family == kNone)
      work.homes.insert(families_.home(candidate.name, process_));
    else
      work.captured_scopes.insert(parse_mangled(text).scope);
  }
}

// Not vague linkage. Weak definitions of C names count: NCCL exports its whole interface so.
bool Judge::is_significant(const Binding& binding) const {
  const elf::Object& elf = process_.image(binding.to).elf;
  const uint8_t bind = elf.symbols[binding.definition].bind();
  return bind == elf::STB_GLOBAL || (bind == elf::STB_WEAK && !elf.is_mangled(binding.definition));
}

// C names are known to belong together when the provider has a good part of the library that they
// are from, or the consumer takes a good part of them from it. Where the smallest exporter is
// itself a framework that carries many things, its other names say nothing.
bool Judge::home_is_known(ImageId home, const CaptureGroup& group) {
  constexpr double kGoodPart = 0.25;
  const ImageId image = process_.object(group.provider).image;
  return home == image || families_.coverage(home, image) >= kGoodPart ||
         group.captured >= kGoodPart * (group.captured + group.stays);
}

bool Judge::in_family(size_t group, NameId name, uint32_t family) {
  if (family != work_[group].family) return false;
  if (family != kNone) return true;
  const ImageId home = families_.home(name, process_);
  for (const ImageId captured : work_[group].homes)
    if (families_.copies(home, captured)) return true;
  return false;
}

void Judge::note_stay(size_t index, uint32_t binding_index, const Binding& binding, NameId name) {
  CaptureGroup& group = groups_[index];
  if (!work_[index].staying_references.insert(binding.reference).second) return;
  group.stays++;
  if (group.staying.size() < kKeptStaying) group.staying.push_back(binding_index);
  // Each captured scope counts once.
  if (!work_[index].captured_scopes.empty())
    group.split_scopes += static_cast<uint32_t>(
        work_[index].captured_scopes.erase(parse_mangled(simulation_.images().name(name)).scope));
}

void Judge::forget_unknown_families() {
  for (size_t i = 0; i < groups_.size(); i++) {
    CaptureGroup& group = groups_[i];
    const auto& homes = work_[i].homes;
    if (!group.family.empty() || group.stays == 0) continue;
    if (std::any_of(homes.begin(), homes.end(),
                    [&](ImageId home) { return home_is_known(home, group); }))
      continue;
    group.stays = 0;
    group.staying.clear();
    work_[i].entered_by.clear();
  }
}

// What stays with the own provider, and who else enters it.
void Judge::second_pass() {
  const size_t count = process_.object_count();
  // The groups of a consumer and its own provider, and those that are entered by others.
  std::vector<std::vector<size_t>> groups_of, self_groups_of(count);
  std::vector<std::vector<uint32_t>> pairs(count);  // by consumer, own provider: 1 + place above
  const auto place_of = [&](ObjectId consumer, ObjectId own) {
    return pairs[consumer].empty() ? 0 : pairs[consumer][own];
  };
  for (size_t i = 0; i < groups_.size(); i++) {
    pairs[groups_[i].consumer].resize(count);
    uint32_t& pair = pairs[groups_[i].consumer][groups_[i].own];
    if (pair == 0) {
      groups_of.emplace_back();
      pair = static_cast<uint32_t>(groups_of.size());
    }
    groups_of[pair - 1].push_back(i);
    if (groups_[i].self()) self_groups_of[groups_[i].own].push_back(i);
  }
  const auto is_asked_for = [&](ObjectId from, ObjectId to) {
    return (place_of(from, to) != 0 || !self_groups_of[to].empty()) && process_.counts(from);
  };
  // A nested name is no name of C, and need not be taken apart where these alone are asked for.
  const auto has_mangled = [&](size_t group) { return work_[group].has_mangled; };
  const auto any_mangled = [&](const std::vector<size_t>& groups) {
    return std::any_of(groups.begin(), groups.end(), has_mangled);
  };
  const auto asks_for_cpp = [&](uint32_t pair, ObjectId to) {
    return (pair != 0 && any_mangled(groups_of[pair - 1])) || any_mangled(self_groups_of[to]);
  };
  const auto look_at = [&](uint32_t at, const Binding& binding) {
    if (!is_significant(binding)) return;
    const NameId name = process_.reference(binding).name;
    const uint32_t pair = place_of(binding.from, binding.to);
    if (simulation_.images().name(name).starts_with("_ZN") && !asks_for_cpp(pair, binding.to))
      return;
    const uint32_t family = families_.cpp_family(name);
    if (pair != 0)
      for (const size_t group : groups_of[pair - 1])
        if (in_family(group, name, family)) note_stay(group, at, binding, name);
    if (binding.from == binding.to) return;
    for (const size_t group : self_groups_of[binding.to])
      if (binding.from != groups_[group].provider && in_family(group, name, family))
        work_[group].entered_by.insert(binding.from);
  };
  const auto fetch = [&](const Binding& binding) {
    process_.image(binding.to).elf.symbols.prefetch(binding.definition);
    families_.prefetch(process_.reference(binding).name);
  };
  simulation_.bindings().each(is_asked_for, look_at, fetch);
  forget_unknown_families();
  for (size_t i = 0; i < groups_.size(); i++)
    groups_[i].entered_by.assign(work_[i].entered_by.begin(), work_[i].entered_by.end());
}

bool Judge::names_soname_of(ObjectId who, ObjectId library) const {
  const auto& soname = process_.image(library).elf.soname;
  if (!soname || soname->empty()) return false;
  const Image& image = process_.image(who);
  const std::string name(*soname);
  const auto found = image.extract("has " + name, [&](const elf::Object& object, Bytes file) {
    return MappedFile::Words(has_string(object, file, name) ? 1 : 0);
  });
  return !found.empty();
}

// Stubs that a framework exports for libraries of its own are given to those libraries on purpose:
// the framework asks for them, and they are who is captured. And a plug-in that asks for a
// framework is built on what that exports.
bool Judge::by_design(const CaptureGroup& group, bool crossing) const {
  const Ownership& ownership = process_.ownership();
  if (ownership.asks_for(group.consumer, group.provider)) return true;
  // Stubs that would open this very library by its name, if they were reached.
  if (crossing && group.plain_to_versioned > 0 && names_soname_of(group.own, group.provider))
    return true;
  return crossing && ownership.asks_for(group.provider, group.consumer) &&
         ownership.asks_for(group.provider, group.own);
}

Verdict Judge::verdict(const CaptureGroup& group) const {
  const uint32_t crossing = group.versioned_to_plain + group.plain_to_versioned;
  const bool crosses = crossing * 2 >= group.captured;
  if (by_design(group, crosses)) return Verdict::kByDesign;
  const bool split = group.stays > 0;
  if (group.self() ? is_entered_on_request(process_, group) : is_used_on_request(group)) {
    if (crosses) return Verdict::kVersionCrossing;
    if (split) return Verdict::kLiveSplit;
  }
  if (!split) return Verdict::kMoved;
  if (!group.self()) return Verdict::kLatentSplit;
  // Where the provider is global, all who come later are led to it too, and the old copy is dead.
  const bool asleep = group.entered_by.empty() && process_.object(group.provider).global;
  return asleep ? Verdict::kDeadSplit : Verdict::kLatentSplit;
}

// A library of a package that no import asks for is there because something else uses that package
// where it is installed (keras loads OpenCV): nobody is known to call its C functions. It is used
// where a library that was asked for is linked to it (libtorch_cuda.so to libcublas.so.13, which
// torch requires by an extra of another package). C++ objects are made by static initialisers, as
// soon as the library is loaded.
bool Judge::is_used_on_request(const CaptureGroup& group) const {
  const Ownership& ownership = process_.ownership();
  const ObjectId consumer = group.consumer;
  if (!group.family.empty() || ownership.owners(consumer).empty()) return true;
  const auto serves = [&](ObjectId who) { return ownership.serves_request(who, group.provider); };
  if (serves(consumer)) return true;
  for (ObjectId who = 0; who < process_.object_count(); who++)
    if (process_.in_closure(who, consumer) && serves(who)) return true;
  return false;
}

// The exported functions of the family that the own provider and the other have, by their symbols.
// Nothing: they are too many, or it is decided at run time what they are.
std::optional<CaptureFacts::Functions> Judge::functions_of_both(size_t index) {
  constexpr size_t kMost = 1000;
  const CaptureGroup& group = groups_[index];
  const Images& images = simulation_.images();
  const ImageId provider = process_.object(group.provider).image;
  const elf::Object& own = process_.image(group.own).elf;
  const bool is_cpp = !group.family.empty();
  CaptureFacts::Functions functions;
  const uint32_t count = symbol_count(own);
  for (uint32_t i = 1; i < count; i++) {
    const elf::Sym symbol = own.symbols[i];
    // Chosen at run time, or assembly that does not say what it is.
    const bool is_unclear = symbol.type() == elf::STT_GNU_IFUNC || symbol.type() == elf::STT_NOTYPE;
    if ((symbol.type() != elf::STT_FUNC && !is_unclear) || symbol.st_shndx == elf::SHN_UNDEF)
      continue;
    if (own.is_mangled(i) != is_cpp) continue;
    const NameId name = images.find_name(own.symbol_name(i));
    if (name == kNone || !in_family(index, name, families_.cpp_family(name))) continue;
    uint32_t at = images.first_definition(name);
    while (at != kNone && images.definition(at).image != provider) at = images.definition(at).next;
    if (at == kNone) continue;
    if (is_unclear || functions.size() == kMost) return std::nullopt;
    functions.emplace_back(i, images.definition(at).symbol);
  }
  return functions;
}

// A split between two copies that lay their objects out alike, and keep nothing beside these, goes
// well: zlib 1.2.11 in paddle 3.0.0 beside a system's 1.2.13.
void Judge::compare_copies(size_t index) {
  CaptureGroup& group = groups_[index];
  const ImageId own = process_.object(group.own).image;
  const ImageId provider = process_.object(group.provider).image;
  const auto functions = functions_of_both(index);
  if (!functions) return;
  const auto [known, is_new] = facts_.layouts.try_emplace({own, provider, *functions});
  if (is_new)
    known->second =
        compare_layouts(simulation_.images()[own], simulation_.images()[provider], *functions);
  group.layouts = known->second;
  if (group.layouts.is_same()) group.verdict = Verdict::kAlikeSplit;
}

Captures Judge::judge() {
  Candidates candidates = find_candidates(process_, *facts_.definers);
  group(candidates.foreign);
  second_pass();
  for (size_t i = 0; i < groups_.size(); i++) {
    groups_[i].verdict = verdict(groups_[i]);
    if (groups_[i].verdict == Verdict::kLiveSplit || groups_[i].verdict == Verdict::kLatentSplit)
      compare_copies(i);
  }
  RuntimeClasses runtime(process_, families_);
  runtime.find_split_in_itself(candidates.runtime, groups_);
  runtime.find_split_for_others(candidates.runtime_users, groups_);
  return {std::move(groups_), candidates.set_aside};
}

}  // namespace

std::vector<ObjectId> unpackers_on_request(const ProcessView& process, const CaptureGroup& group) {
  const Ownership& ownership = process.ownership();
  const auto is_zlib_module = [&](ObjectId who) {
    return ownership.file_of_object[who].starts_with("zlib.");
  };
  std::vector<ObjectId> found;
  if (!group.family.empty() ||
      std::none_of(group.entered_by.begin(), group.entered_by.end(), is_zlib_module))
    return found;
  for (ObjectId who = 0; who < process.object_count(); who++)
    if (process.counts(who) && !ownership.owners(who).empty() &&
        ownership.serves_request(who, group.provider) && unpacks_by_zlib(process.image(who)))
      found.push_back(who);
  return found;
}

bool is_entered_on_request(const ProcessView& process, const CaptureGroup& group) {
  const auto serves = [&](ObjectId who) {
    return process.ownership().serves_request(who, group.provider);
  };
  return std::any_of(group.entered_by.begin(), group.entered_by.end(), serves) ||
         !unpackers_on_request(process, group).empty();
}

Captures find_captures(const ProcessView& process, CaptureFacts& facts) {
  return Judge(process, facts).judge();
}

std::vector<Tally> tally_family(const ProcessView& process, const CaptureGroup& group) {
  std::map<ObjectId, std::set<NameId>> names;
  const Images& images = process.simulation().images();
  const auto is_tallied = [&](ObjectId from, ObjectId to) {
    return from == group.consumer && process.counts(to) &&
           (!group.family.empty() || to == group.own || to == group.provider);
  };
  process.simulation().bindings().each(is_tallied, [&](uint32_t, const Binding& binding) {
    const NameId name = process.reference(binding).name;
    const std::string_view text = images.name(name);
    const bool mentions = group.family.empty() ? text.substr(0, 2) != "_Z"
                                               : text.find(group.family) != std::string_view::npos;
    if (mentions) names[binding.to].insert(name);
  });
  std::vector<Tally> tallies;
  tallies.reserve(names.size());
  for (const auto& [provider, set] : names)
    tallies.push_back({provider, static_cast<uint32_t>(set.size())});
  std::stable_sort(tallies.begin(), tallies.end(),
                   [](const Tally& a, const Tally& b) { return a.names > b.names; });
  return tallies;
}

}  // namespace cohabit
