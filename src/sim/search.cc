// Where a name without a slash is looked for: _dl_map_object, open_path, fillin_rpath and
// _dl_dst_substitute of elf/dl-load.c.
//
// Order: DT_RPATH of the requester, of its loaders and of the program (all of it only while the
// requester has no DT_RUNPATH); LD_LIBRARY_PATH; DT_RUNPATH of the requester; ld.so.cache; default
// directories. Every directory is tried with each glibc-hwcaps subdirectory first. A file for
// another machine is passed over; a file that is no ELF file ends the search with an error.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/not_in_bundle.h"
#include "sim/state.h"

namespace cohabit::sim {
namespace {

bool is_name_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

// Length of the token `name` at the start of `text` (after the '$'), braces included; 0 if none.
size_t token_length(std::string_view text, std::string_view name) {
  const bool braces = text.starts_with('{');
  const std::string_view rest = text.substr(braces ? 1 : 0);
  if (!rest.starts_with(name)) return 0;
  const char next = rest.size() > name.size() ? rest[name.size()] : '\0';
  if (braces) return next == '}' ? name.size() + 2 : 0;
  return is_name_character(next) ? 0 : name.size();
}

std::string describe(int error) {
  if (error == ENOENT) return "no such file";
  return std::strerror(error);
}

}  // namespace

std::string Simulation::State::expand(const std::string& text, ObjectId id) {
  if (!rule(Rule::kOrigin) || text.find('$') == std::string::npos) return text;
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '$') {
      result += text[i++];
      continue;
    }
    const std::string_view rest = std::string_view(text).substr(++i);
    const std::string* value = nullptr;
    size_t length = 0;
    if ((length = token_length(rest, "ORIGIN"))) {
      value = &object(id).origin;
    } else if ((length = token_length(rest, "PLATFORM"))) {
      value = &sim.machine_.platform;
    } else if ((length = token_length(rest, "LIB"))) {
      value = &sim.machine_.lib;
    }
    if (length == 0) {
      result += '$';
    } else if (value->empty()) {
      return "";  // a token without value makes the whole entry unusable
    } else {
      result += *value;
      i += length;
    }
  }
  return result;
}

SearchPath Simulation::State::decompose(const std::string& list, std::string_view separators,
                                        ObjectId id, std::string because) {
  SearchPath path{std::move(because), {}};
  if (list.empty()) return path;
  size_t begin = 0;
  while (begin <= list.size()) {
    size_t end = list.find_first_of(separators, begin);
    if (end == std::string::npos) end = list.size();
    std::string directory = list.substr(begin, end - begin);
    begin = end + 1;
    if (!directory.empty()) {
      directory = expand(directory, id);
      if (directory.empty()) continue;
      while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
      if (directory.back() != '/') directory += '/';
    }
    if (std::find(path.directories.begin(), path.directories.end(), directory) ==
        path.directories.end())
      path.directories.push_back(std::move(directory));
  }
  return path;
}

// --inhibit-rpath, whose list decompose_rpath compares with l_name.
bool Simulation::State::ignores_rpath(ObjectId id) const {
  if (!loader_options.inhibit_rpath || sim.start_.secure) return false;
  const std::string& list = *loader_options.inhibit_rpath;
  for (size_t begin = 0; begin == 0 || begin < list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    if (list.compare(begin, end - begin, object(id).name) == 0) return true;
    begin = end + 1;
  }
  return false;
}

const SearchPath& Simulation::State::rpath_of(ObjectId id) {
  const auto found = rpaths.find(id);
  if (found != rpaths.end()) return found->second;
  SearchPath path;
  const elf::Object& file = elf(id);
  const bool voided = file.runpath && rule(Rule::kRunpathVoidsRpath);
  if (file.rpath && !voided && rule(Rule::kRpath) && !ignores_rpath(id))
    path = decompose(std::string(*file.rpath), ":", id, "RPATH of " + display_name(id));
  return rpaths.emplace(id, std::move(path)).first->second;
}

const SearchPath& Simulation::State::runpath_of(ObjectId id) {
  const auto found = runpaths.find(id);
  if (found != runpaths.end()) return found->second;
  SearchPath path;
  const elf::Object& file = elf(id);
  if (file.runpath && rule(Rule::kRunpath) && !ignores_rpath(id))
    path = decompose(std::string(*file.runpath), ":", id, "RUNPATH of " + display_name(id));
  return runpaths.emplace(id, std::move(path)).first->second;
}

std::string Simulation::State::absolute(const std::string& path) const {
  if (path.starts_with('/')) {
    // Links of the traced process, not of this one.
    for (const std::string_view own : {"/proc/self/", "/proc/thread-self/"}) {
      if (!path.starts_with(own)) continue;
      const std::string rest = path.substr(own.size());
      if (rest == "exe") return sim.start_.executable;
      if (rest.starts_with("cwd/")) return cwd + rest.substr(3);
    }
    return path;
  }
  return cwd.ends_with('/') ? cwd + path : cwd + "/" + path;
}

// True: taken. False: go on searching. Error: the search ends here.
Result<bool> Simulation::State::try_file(const std::string& path, const std::string& because,
                                         FoundFile& found, std::vector<SearchStep>* steps) {
  const Images::Probe& probe = sim.images_.open(absolute(path), sim.machine_.elf_machine);
  const auto note = [&](std::string outcome) {
    if (steps) steps->push_back({path, because, std::move(outcome)});
  };
  if (probe.error == EISDIR || probe.error == EIO) {
    note(std::string("cannot read file data: ") + std::strerror(probe.error));
    return fail(fmt::format("{}: cannot read file data: {}", path, std::strerror(probe.error)));
  }
  if (probe.error == kNotInBundle) {
    note(std::string(kNotInBundleText));
    return fail(fmt::format("{}: {}", path, kNotInBundleText));
  }
  if (probe.error) {
    note(describe(probe.error));
    last_errno = probe.error;
    return false;
  }
  if (probe.image != kNone) {
    note("found");
    last_errno = 0;
    found = {probe.image, path};
    return true;
  }
  switch (probe.header.verdict) {
    case elf::HeaderVerdict::kOtherClass:
    case elf::HeaderVerdict::kOtherMachine:
      note(probe.header.verdict == elf::HeaderVerdict::kOtherClass ? "wrong ELF class"
                                                                   : "another machine");
      last_errno = ENOENT;
      other_class |= probe.header.verdict == elf::HeaderVerdict::kOtherClass;
      if (rule(Rule::kSkipWrongClass)) return false;
      return fail(path + ": wrong ELF class: ELFCLASS32");
    default:
      note(probe.header.message);
      return fail(fmt::format("{}: {}", path, probe.header.message));
  }
}

Result<Simulation::State::DirectoryResult> Simulation::State::try_path(
    const SearchPath& path, const std::string& name, FoundFile& found,
    std::vector<SearchStep>* steps) {
  path.absent.resize(path.directories.size());
  for (size_t at = 0; at < path.directories.size(); at++) {
    last_errno = ENOENT;
    if (path.absent[at] && !steps) continue;
    const std::string& directory = path.directories[at];
    bool any = false;
    for (const std::string& subdirectory : subdirectories) {
      const std::string place = directory + subdirectory;
      if (place.starts_with('/') && !sim.images_.directory_exists(place)) {
        if (steps && (subdirectory.empty() || sim.options_.absent_subdirectories))
          steps->push_back({place + name, path.because, "no such directory"});
        continue;
      }
      any = true;
      const auto taken = try_file(place + name, path.because, found, steps);
      if (!taken) return fail(taken.error().message);
      if (*taken) return DirectoryResult::kFound;
    }
    path.absent[at] = !any;
    if (any && last_errno != ENOENT && last_errno != EACCES) return DirectoryResult::kGiveUp;
  }
  return DirectoryResult::kGoOn;
}

Result<bool> Simulation::State::try_rpaths(const std::string& name, ObjectId loader,
                                           FoundFile& found, std::vector<SearchStep>* steps) {
  if (loader != kNone && elf(loader).runpath && rule(Rule::kRunpathVoidsRpath)) return false;
  bool program_done = false;
  for (ObjectId id = loader; id != kNone; id = object(id).loader) {
    const SearchPath& path = rpath_of(id);
    if (!path.directories.empty()) {
      const auto result = try_path(path, name, found, steps);
      if (!result) return fail(result.error().message);
      if (*result == DirectoryResult::kFound) return true;
      program_done |= id == program;
    }
    if (!rule(Rule::kRpathInherited)) break;
  }
  if (program_done || program == kNone || !rule(Rule::kRpathOfProgram)) return false;
  const auto result = try_path(rpath_of(program), name, found, steps);
  if (!result) return fail(result.error().message);
  return *result == DirectoryResult::kFound;
}

Result<bool> Simulation::State::try_cache(const std::string& name, ObjectId loader,
                                          FoundFile& found, std::vector<SearchStep>* steps) {
  if (!rule(Rule::kLdCache) || loader_options.inhibit_cache) return false;
  const Machine& machine = sim.machine_;
  const auto cached = find_in_cache(machine, name);
  if (!cached) {
    if (steps) steps->push_back({name, "ld.so.cache", "not in the cache"});
    return false;
  }
  const ObjectId asker = loader != kNone ? loader : program;
  if (rule(Rule::kNodeflib) && (elf(asker).flags_1 & elf::DF_1_NODEFLIB))
    for (const std::string& directory : machine.default_directories)
      if (cached->starts_with(directory)) return false;
  return try_file(*cached, "ld.so.cache", found, steps);
}

// found.image stays kNone when there is no such file.
Result<FoundFile> Simulation::State::search(const std::string& name, ObjectId loader,
                                            std::vector<SearchStep>* steps) {
  FoundFile found;
  other_class = false;
  if (name.find('/') != std::string::npos) {
    const std::string path = loader != kNone ? expand(name, loader) : name;
    if (auto taken = try_file(path, "the path itself", found, steps); !taken)
      return fail(taken.error().message);
    return found;
  }
  enum class Phase { kRpath, kLibraryPath, kRunpath };
  std::array order{Phase::kRpath, Phase::kLibraryPath, Phase::kRunpath};
  if (!rule(Rule::kLibraryPathOrder)) order = {Phase::kLibraryPath, Phase::kRpath, Phase::kRunpath};
  for (const Phase phase : order) {
    Result<bool> taken = false;
    if (phase == Phase::kRpath) {
      taken = try_rpaths(name, loader, found, steps);
    } else {
      const bool env = phase == Phase::kLibraryPath;
      const SearchPath none;
      const SearchPath& path = env               ? (library_path ? *library_path : none)
                               : loader == kNone ? none
                                                 : runpath_of(loader);
      const auto result = try_path(path, name, found, steps);
      if (!result) return fail(result.error().message);
      taken = *result == DirectoryResult::kFound;
      for (ObjectId id = loader; !env && !*taken && !rule(Rule::kRunpathNotInherited) &&
                                 id != kNone && object(id).loader != kNone;) {
        id = object(id).loader;
        const auto inherited = try_path(runpath_of(id), name, found, steps);
        taken = inherited && *inherited == DirectoryResult::kFound;
      }
    }
    if (!taken) return fail(taken.error().message);
    if (*taken) return found;
  }
  auto taken = try_cache(name, loader, found, steps);
  if (!taken) return fail(taken.error().message);
  if (*taken) return found;
  const ObjectId asker = loader != kNone ? loader : program;
  const bool nodeflib =
      rule(Rule::kNodeflib) && asker != kNone && (elf(asker).flags_1 & elf::DF_1_NODEFLIB);
  if (nodeflib || !rule(Rule::kDefaultDirectories)) return found;
  const SearchPath defaults{"default directories", sim.machine_.default_directories};
  if (auto result = try_path(defaults, name, found, steps); !result)
    return fail(result.error().message);
  return found;
}

}  // namespace cohabit::sim
