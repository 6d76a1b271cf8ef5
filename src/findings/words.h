// Words that several rules of captured bindings share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "findings/rule.h"

namespace cohabit {

// "libz.so.1": how a library is called in a sentence.
std::string short_name(const ProcessView& process, sim::ObjectId id);
// The path shown: without the directories that only say where an environment is.
std::string path_of(const ProcessView& process, sim::ObjectId id);
Library library_of(const ProcessView& process, sim::ObjectId id);
// A file that need not have been mapped, with the distribution that claims it.
Library library_at(const Case& examined, const std::string& path);
// The way to have its distribution's files as they were.
Help reinstall(const Case& examined, const Library& library);
// "google::protobuf", or for C names "libz.so.1's functions".
std::string family_name(const ProcessView& process, const CaptureGroup& group);
// "a.b" of "ModuleNotFoundError: No module named 'a.b'"; empty: another failure.
std::string missing_module(std::string_view failure);
// "when `import a; import b` is run", or nothing when no imports are known.
std::string when_imported(const Case& examined);

// Whether it captures calls across versions (CB102), which tells its splits of C families too.
bool crosses_elsewhere(const Case& examined, sim::ObjectId provider);

// Findings made of groups that share a cause: one finding for each key.
using GroupFilter = bool (*)(const CaptureGroup&);
std::vector<std::vector<const CaptureGroup*>> merge_groups(const Case& examined, Verdict verdict,
                                                           bool by_family);

// Libraries, symbols and the rows of evidence of some groups.
void describe_groups(const Case& examined, const std::vector<const CaptureGroup*>& groups,
                     Finding& finding);
// How the provider got in front: opened with RTLD_GLOBAL by whom, or first in the scope of its
// opener.
void describe_provider(const Case& examined, const CaptureGroup& group, Finding& finding);
// What can be done about it.
void advise(const Case& examined, const std::vector<const CaptureGroup*>& groups, Finding& finding);
// When the real process died, that is said beside the prediction.
void add_observed_end(const Case& examined, Finding& finding);

}  // namespace cohabit
