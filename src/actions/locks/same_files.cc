#include "actions/locks/same_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "base/descriptor.h"
#include "base/paths.h"
#include "base/read_file.h"
#include "facts/files/walk.h"
#include "facts/python/installed_files.h"
#include "facts/python/wheel_metadata.h"

namespace cohabit::locks {
namespace {

constexpr size_t kSmall = 64 << 20;
constexpr uint32_t kExecutable = 0111;

bool in_metadata(std::string_view path) {
  return path.find(".dist-info/") != path.npos;
}

// What the tool that makes environments writes of the place.
bool is_places_own(const std::string& path) {
  return path == "pyvenv.cfg" || path.starts_with("bin/activate") || path == "bin/Activate.ps1" ||
         path == "bin/deactivate.bat" || path == "bin/pydoc.bat";
}

std::string replaced(std::string text, const std::string& from) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at))
    text.replace(at, from.size(), "\x01");
  return text;
}

// Without the beginning of a script that names the interpreter of its environment, by any of its
// names; where the path has blanks or is long, by way of a shell.
std::string script_text(const std::string& text, const std::string& prefix) {
  std::string result = replaced(text, prefix);
  if (result.starts_with("#!\x01/bin/python")) return result.substr(result.find('\n') + 1);
  constexpr std::string_view kShell = "#!/bin/sh\n'''exec' ", kEnd = "\n' '''\n";
  const size_t end = result.find(kEnd);
  const size_t named = result.find("\x01/bin/python");
  if (result.starts_with(kShell) && end != result.npos && named < end)
    return result.substr(end + kEnd.size());
  return result;
}

// "module import function" of a script that an installer made for an entry point: installers of
// different ages write different lines around the same call. Empty: it is none.
std::string started_by(const std::string& text) {
  const size_t from = text.find("\nfrom ");
  if (!text.starts_with("#!") || from == text.npos) return "";
  const size_t begin = from + std::strlen("\nfrom ");
  std::string call = text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
  const size_t name = call.rfind(' ');
  if (name == call.npos || call.find(" import ") == call.npos) return "";
  const bool calls = text.find("sys.exit(" + call.substr(name + 1) + "())") != text.npos;
  return calls ? call : "";
}

// "version" or "version_info", and whether packages of the base are seen.
std::pair<std::string, std::string> settings_of(const std::string& text) {
  std::pair<std::string, std::string> settings;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t equal = line.find(" = ");
    if (equal == line.npos) continue;
    if (line.starts_with("version")) settings.first = line.substr(equal + 3);
    if (line.starts_with("include-system")) settings.second = line.substr(equal + 3);
  }
  return settings;
}

// Rows of other files than those that must differ, sorted.
std::vector<std::string> claims_of(const std::string& record) {
  const RecordRows rows = parse_record(record);
  std::vector<std::string> claims;
  for (const RecordRow& row : rows.rows) {
    const std::string path(row.path);
    if (path.ends_with(".pyc") || is_note(path) || is_record(path)) continue;
    const bool is_script = path.find("../bin/") != path.npos;
    std::string_view hash = row.hash;
    while (hash.ends_with('=')) hash.remove_suffix(1);
    claims.push_back(fmt::format("{},{}", path, is_script ? "" : hash));
  }
  std::sort(claims.begin(), claims.end());
  return claims;
}

class Comparison {
 public:
  Comparison(const Side& wanted, const Side& made) : wanted_(wanted), made_(made) {}
  Sameness run();

 private:
  void compare(const SnapshotFile& a, const SnapshotFile& b);
  void compare_links(const SnapshotFile& a, const SnapshotFile& b);
  void only_one(const SnapshotFile& row, bool is_wanted);
  bool names_the_interpreter(const SnapshotFile& row, bool is_wanted) const;
  void differ(const std::string& path, std::string why) {
    result_.differing.push_back({path, std::move(why)});
  }
  void explain(const std::string& path, std::string why) {
    result_.explained.push_back({path, std::move(why)});
  }

  const Side& wanted_;
  const Side& made_;
  Sameness result_;
};

void Comparison::compare_links(const SnapshotFile& a, const SnapshotFile& b) {
  const auto end = [](const Side& side, const SnapshotFile& row) {
    return Tree("").real_path(join_normal(directory_of(side.lies_in + "/" + row.path), row.target));
  };
  if (replaced(a.target, wanted_.prefix) == replaced(b.target, made_.prefix)) {
    result_.equal++;
    return;
  }
  const auto one = end(wanted_, a), other = end(made_, b);
  if (one && one == other)
    explain(a.path, "a link to the same file by another name");
  else
    differ(a.path, fmt::format("a link to {}, and now to {}", a.target, b.target));
}

void Comparison::compare(const SnapshotFile& a, const SnapshotFile& b) {
  if (a.kind != b.kind) return differ(a.path, "a file, a link or a directory, and now another");
  if (a.kind == EntryKind::kDirectory) return;
  if (is_compiled(a.path)) return void(result_.compiled++);
  if (a.kind == EntryKind::kLink) return compare_links(a, b);
  if ((a.mode & kExecutable) != (b.mode & kExecutable))
    return differ(a.path, fmt::format("its permissions: {:o}, and now {:o}", a.mode, b.mode));
  if (a.hash == b.hash) return void(result_.equal++);
  if (is_note(a.path)) return explain(a.path, "the installer's own note");
  const auto one = wanted_.text(a), other = made_.text(b);
  if (!one || !other) return differ(a.path, "its bytes");
  if (a.path == "pyvenv.cfg") {
    if (settings_of(*one) == settings_of(*other))
      return explain(a.path, "it names the place, and the tool that made it");
    return differ(a.path, "another Python, or other settings of it");
  }
  if (is_places_own(a.path)) return explain(a.path, "it names the environment's place");
  if (is_record(a.path) && claims_of(*one) == claims_of(*other))
    return explain(a.path, "it lists scripts and installers' notes, or in another order");
  if (script_text(*one, wanted_.prefix) == script_text(*other, made_.prefix))
    return explain(a.path, "it names the environment's place");
  if (a.path.starts_with("bin/") && !started_by(*one).empty() &&
      started_by(*one) == started_by(*other))
    return explain(a.path, "a script for the same call, as another installer writes it");
  differ(a.path, "its bytes");
}

// "bin/python3.8": which names an interpreter has beside bin/python is up to the tool and to the
// name that it was called by.
bool Comparison::names_the_interpreter(const SnapshotFile& row, bool is_wanted) const {
  if (row.kind != EntryKind::kLink || !row.path.starts_with("bin/python")) return false;
  const Side& one = is_wanted ? wanted_ : made_;
  const Side& other = is_wanted ? made_ : wanted_;
  const Tree tree("");
  const auto here =
      tree.real_path(join_normal(directory_of(one.lies_in + "/" + row.path), row.target));
  return here && here == tree.real_path(other.lies_in + "/bin/python");
}

void Comparison::only_one(const SnapshotFile& row, bool is_wanted) {
  if (row.kind == EntryKind::kDirectory) return;
  if (is_compiled(row.path)) return void(result_.compiled++);
  if (is_note(row.path)) return explain(row.path, "the installer's own note");
  if (row.path == ".lock" && row.size == 0) return explain(row.path, "uv's lock");
  if (names_the_interpreter(row, is_wanted))
    return explain(row.path, "a further name of the interpreter");
  differ(row.path, is_wanted ? "it is not there any more" : "it was not there");
}

Sameness Comparison::run() {
  auto a = wanted_.files.begin(), b = made_.files.begin();
  while (a != wanted_.files.end() || b != made_.files.end()) {
    if (b == made_.files.end() || (a != wanted_.files.end() && a->path < b->path))
      only_one(*a++, true);
    else if (a == wanted_.files.end() || b->path < a->path)
      only_one(*b++, false);
    else
      compare(*a++, *b++);
  }
  return std::move(result_);
}

}  // namespace

bool is_note(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return in_metadata(path) && (name == "INSTALLER" || name == "REQUESTED" ||
                               name == "direct_url.json" || name.starts_with("uv_"));
}

bool is_compiled(std::string_view path) {
  return path.ends_with(".pyc") && path.find("__pycache__/") != path.npos;
}

bool is_record(std::string_view path) {
  return in_metadata(path) && path.ends_with("/RECORD");
}

Result<Side> read_side(const std::string& prefix) {
  Side side;
  side.prefix = side.lies_in = prefix;
  const auto entries = walk_files(prefix, {".cohabit"});
  if (!entries) return tl::unexpected<Error>(entries.error());
  for (const Entry& entry : *entries) side.files.push_back(to_row(entry));
  std::atomic<size_t> next = 0;
  std::atomic<size_t> unread = SIZE_MAX;
  const auto work = [&] {
    for (size_t i = next++; i < side.files.size(); i = next++) {
      SnapshotFile& row = side.files[i];
      if (row.kind != EntryKind::kFile || is_compiled(row.path)) continue;
      const Descriptor file(
          ::open((prefix + "/" + row.path).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
      const auto hash = file.is_open() ? sha256_of_descriptor(file.get()) : std::nullopt;
      if (hash)
        row.hash = *hash;
      else
        unread = i;
    }
  };
  std::thread other(work);
  work();
  other.join();
  if (unread != SIZE_MAX)
    return fail(fmt::format("{}/{} cannot be read", prefix, side.files[unread].path));
  side.text = [prefix](const SnapshotFile& row) -> std::optional<std::string> {
    if (row.size > kSmall) return std::nullopt;
    auto text = read_file(prefix + "/" + row.path, kSmall);
    return text ? std::optional(std::move(*text)) : std::nullopt;
  };
  return side;
}

Sameness compare_sides(const Side& wanted, const Side& made) {
  return Comparison(wanted, made).run();
}

Sameness compare_with_records(const Side& made, const std::vector<std::string>& sites) {
  Sameness result;
  std::map<std::string_view, const SnapshotFile*> rows;
  for (const SnapshotFile& row : made.files) rows.emplace(row.path, &row);
  const Distributions distributions = Distributions::read(Tree(""), sites, {});
  const InstalledFiles files = InstalledFiles::read(Tree(""), distributions);
  std::set<std::string> claimed;
  for (const InstalledFiles::Row& claim : files.rows()) {
    const std::string path = files.path_of(claim);
    if (!is_below(path, made.prefix)) continue;
    const std::string below = path.substr(made.prefix.size() + 1);
    claimed.insert(below);
    if (!claim.record.hash.starts_with("sha256=") || is_compiled(below)) continue;
    const auto hash = record_hash(Tree(""), path);
    std::string_view wanted = claim.record.hash;
    while (wanted.ends_with('=')) wanted.remove_suffix(1);
    if (!rows.contains(below))
      result.differing.push_back({below, "it is not there"});
    else if (!hash || std::string_view(*hash).substr(0, wanted.size()) != wanted)
      result.differing.push_back({below, "its bytes are not those of its RECORD"});
    else
      result.equal++;
  }
  return result;
}

}  // namespace cohabit::locks
