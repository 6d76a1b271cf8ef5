// A version is not a wheel: there are several for one version, an index may have another one today
// than yesterday's, and what was built here has none. WHEEL keeps the tags of the one that was
// unpacked, which says whom to look at first; the list of files decides. It is read in two or three
// ranges (facts/wheels): a RECORD has the hash of every file, WHEEL and METADATA too.
#include "actions/locks/find_wheels.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>

#include "actions/check/fetch.h"
#include "actions/check/wheel_tags.h"
#include "actions/launch.h"
#include "actions/locks/offers.h"
#include "actions/locks/same_files.h"
#include "base/addresses.h"
#include "base/json_text.h"
#include "base/paths.h"
#include "base/sha256.h"
#include "facts/python/requirement.h"
#include "facts/python/wheel_metadata.h"

namespace cohabit::locks {
namespace {

constexpr size_t kThreads = 8;
constexpr size_t kMostRead = 8;  // wheels of one distribution whose lists are compared
constexpr uint64_t kMostRecord = 256 << 20;

// What direct_url.json says (PEP 610).
struct Origin {
  std::string address;  // empty: from an index
  std::string hash;
  std::string built;  // why no wheel stands for it
};

Origin read_origin(const Distribution& distribution) {
  Origin origin;
  const auto text = Tree("").read_text(distribution.metadata + "/direct_url.json");
  if (!text) return origin;
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  const std::string url = bare_address(text_at(json, "url"));
  if (url.empty()) {
    origin.built = "its direct_url.json cannot be read";
  } else if (!distribution.editable.empty()) {
    origin.built = fmt::format("it is installed in place from {}", url);
  } else if (json.contains("vcs_info")) {
    origin.built =
        fmt::format("it was built from {} at {}", url, text_at(json["vcs_info"], "commit_id"));
  } else if (json.contains("dir_info")) {
    origin.built = fmt::format("it was built from {}", url);
  } else if (!percent_decoded(url.substr(0, url.find_first_of("?#"))).ends_with(".whl")) {
    origin.built = fmt::format("it was built from the archive {}", url);
  } else {
    origin.address = url.substr(0, url.find('#'));
    if (json.contains("archive_info") && json["archive_info"].is_object())
      origin.hash = text_at(json["archive_info"].value("hashes", nlohmann::json()), "sha256");
  }
  return origin;
}

std::string installed_text(const Distribution& distribution, const char* file) {
  return Tree("").read_text(distribution.metadata + "/" + file, kMostRecord).value_or("");
}

std::set<std::string> tags_of_wheel(const std::string& text) {
  constexpr std::string_view kTag = "Tag: ";
  std::set<std::string> tags;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.pop_back();
    if (line.starts_with(kTag)) tags.insert(line.substr(kTag.size()));
  }
  return tags;
}

std::string_view without_padding(std::string_view hash) {
  while (hash.ends_with('=')) hash.remove_suffix(1);
  return hash;
}

// Installers add notes of their own, rewrite the first line of scripts, and compile.
bool is_installers(std::string_view path) {
  return path.starts_with("../") || is_note(path) || is_record(path) || is_compiled(path);
}

// Empty: a wheel with this list of files was installed. Else a path in which they differ.
std::string difference_of(const std::string& wheel, const std::string& installed) {
  std::unordered_map<std::string_view, std::string_view> there;
  const RecordRows present = parse_record(installed), wanted = parse_record(wheel);
  for (const RecordRow& row : present.rows) there.emplace(row.path, without_padding(row.hash));
  size_t compared = 0;
  for (const RecordRow& row : wanted.rows) {
    const auto found = there.find(row.path);
    if (row.hash.empty() || is_installers(row.path)) continue;
    if (found == there.end() || found->second != without_padding(row.hash))
      return std::string(row.path);
    compared++;
    there.erase(found);
  }
  for (const RecordRow& row : present.rows)
    if (!row.hash.empty() && !is_installers(row.path) && there.contains(row.path))
      return std::string(row.path);
  return compared > 0 ? "" : "RECORD, which has no hashes";
}

// All of it, in parts.
Result<std::string> hash_of(wheels::ByteSource& source) {
  constexpr uint64_t kPart = 8 << 20;
  Sha256Stream stream;
  if (const auto end = source.read_end(1); !end) return tl::unexpected<Error>(end.error());
  for (uint64_t at = 0; at < source.size(); at += kPart) {
    const auto part = source.read(at, std::min(kPart, source.size() - at));
    if (!part) return tl::unexpected<Error>(part.error());
    stream.add(*part);
  }
  return hexadecimal(stream.finish());
}

// One distribution on its way to its wheel.
struct Search {
  const Distribution* distribution = nullptr;
  Origin origin;
  std::string record;
  std::vector<WheelAddress> candidates;
  FoundWheel found;
  bool is_done = false;
};

// True: this is the one. Its size and hash are known then.
bool is_wheel_of(const Search& search, WheelAddress& candidate, const Question& question,
                 const wheels::WebSettings& settings, std::string& why) {
  auto source = check::open_wheel(candidate.address, settings);
  if (!source) {
    why = source.error().message;
    return false;
  }
  const auto wheel = wheels::read_wheel(**source, search.distribution->name, question.layout);
  if (!wheel) {
    why = wheel.error().message;
    return false;
  }
  if (const std::string path = difference_of(wheel->record, search.record); !path.empty()) {
    why = fmt::format("{} has another {}", candidate.file, path);
    return false;
  }
  candidate.size = (*source)->size();
  if (!candidate.hash.empty()) return true;
  auto hash = hash_of(**source);
  if (!hash) {
    why = hash.error().message;
    return false;
  }
  candidate.hash = std::move(*hash);
  return true;
}

void look(Search& search, const Question& question, const wheels::WebSettings& settings) {
  std::string why;
  size_t read = 0;
  for (WheelAddress& candidate : search.candidates) {
    if (read++ == kMostRead) break;
    if (!is_wheel_of(search, candidate, question, settings, why)) continue;
    candidate.address = bare_address(candidate.address);
    search.found.wheel = candidate;
    search.found.why.clear();
    search.is_done = true;
    return;
  }
  if (!why.empty())
    search.found.why =
        fmt::format("no wheel of this version that is known here has the installed files: {}",
                    without_credentials(why));
}

void look_at_all(std::vector<Search>& searches, const Question& question,
                 const wheels::WebSettings& settings) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next.fetch_add(1); i < searches.size(); i = next.fetch_add(1))
      if (!searches[i].is_done && !searches[i].candidates.empty())
        look(searches[i], question, settings);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min(kThreads, searches.size()); i++) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

// The wheels that Python brings for ensurepip; Debian keeps them elsewhere.
std::vector<WheelAddress> bundled_wheels(const Interpreter& python, const std::string& name,
                                         const std::string& version) {
  std::vector<WheelAddress> wheels;
  const Tree tree("");
  for (const std::string& directory :
       {python.standard_library + "/ensurepip/_bundled", std::string("/usr/share/python-wheels")})
    for (const std::string& file : tree.list(directory)) {
      const auto wheel = check::split_wheel_name(file);
      if (wheel && normal_name(wheel->name) == normal_name(name) && wheel->version == version)
        wheels.push_back(
            {file, "file://" + percent_encoded(fmt::format("{}/{}", directory, file)), "", 0});
    }
  return wheels;
}

// Those with the installed one's tags first, then as the installer names them.
void sort_by_tags(Search& search) {
  const std::set<std::string> tags = tags_of_wheel(installed_text(*search.distribution, "WHEEL"));
  std::vector<WheelAddress> same, others;
  for (WheelAddress& wheel : search.candidates)
    (check::tags_of(wheel.file) == tags ? same : others).push_back(std::move(wheel));
  same.insert(same.end(), others.begin(), others.end());
  search.candidates = std::move(same);
}

void start(Search& search, const Question& question) {
  const Distribution& one = *search.distribution;
  search.origin = read_origin(one);
  search.record = installed_text(one, "RECORD");
  if (!search.origin.built.empty())
    search.found.why = search.origin.built;
  else if (search.record.empty())
    search.found.why = "it has no RECORD: its files are not known";
  if (!search.found.why.empty()) {
    search.is_done = true;
    return;
  }
  if (search.origin.address.empty()) {
    search.candidates = bundled_wheels(*question.python, one.name, one.version);
    search.found.is_bundled = !search.candidates.empty();
    return;
  }
  search.found.is_direct = true;
  search.candidates = {{percent_decoded(last_part(search.origin.address)), search.origin.address,
                        search.origin.hash, 0}};
}

}  // namespace

std::optional<WheelAddress> bundled_wheel(const Interpreter& python, const std::string& name,
                                          const std::string& version) {
  for (WheelAddress& wheel : bundled_wheels(python, name, version)) {
    auto source = check::open_wheel(wheel.address, {});
    auto hash = source ? hash_of(**source) : tl::unexpected<Error>(source.error());
    if (!hash) continue;
    wheel.hash = std::move(*hash);
    wheel.size = (*source)->size();
    return wheel;
  }
  return std::nullopt;
}

Result<check::Installer> usual_installer(const Interpreter& python,
                                         const Distributions& distributions,
                                         const char* first_pip) {
  size_t by_uv = 0, by_others = 0;
  for (const Distribution& one : distributions.all()) (one.installer == "uv" ? by_uv : by_others)++;
  if (by_uv >= by_others && by_uv > 0)
    if (auto uv = find_command("uv")) return check::Installer{check::Tool::kUv, {*uv, "pip"}};
  return check::find_answering(python, distributions, first_pip);
}

std::vector<FoundWheel> find_wheels(const Question& question,
                                    const std::vector<const Distribution*>& distributions) {
  std::vector<Search> searches(distributions.size());
  for (size_t i = 0; i < distributions.size(); i++) {
    searches[i].distribution = distributions[i];
    start(searches[i], question);
  }
  const wheels::WebSettings settings =
      check::web_settings(question.installer, {question.places, false});
  look_at_all(searches, question, settings);
  std::vector<std::string> pins;
  for (const Search& search : searches)
    if (!search.is_done && !search.found.is_direct)
      pins.push_back(
          fmt::format("{}=={}", search.distribution->name, search.distribution->version));
  const Offers offers = pins.empty() ? Offers{} : ask_offers(question, pins);
  for (Search& search : searches) {
    if (search.is_done || search.found.is_direct) continue;
    search.found.is_bundled = false;
    const std::string name = normal_name(search.distribution->name);
    search.candidates.clear();
    if (const auto found = offers.wheels.find(name); found != offers.wheels.end())
      search.candidates = found->second;
    const auto refusal = offers.refusals.find(name);
    search.found.why = refusal != offers.refusals.end()
                           ? without_credentials(refusal->second)
                           : "the installer names no wheel of this version: it may have been "
                             "built here";
    sort_by_tags(search);
  }
  look_at_all(searches, question, settings);
  std::vector<FoundWheel> result;
  for (Search& search : searches) {
    if (!search.is_done && search.found.why.empty())
      search.found.why = "its wheel is not where it was installed from";
    result.push_back(std::move(search.found));
  }
  return result;
}

}  // namespace cohabit::locks
