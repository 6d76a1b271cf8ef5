#include "actions/locks/recreate.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "actions/ask.h"
#include "actions/check/refusal.h"
#include "actions/locks/lock_installed.h"
#include "actions/locks/pylock.h"
#include "base/changes.h"
#include "base/paths.h"
#include "base/read_file.h"
#include "base/text.h"
#include "base/write_file.h"
#include "facts/files/walk.h"
#include "facts/python/installed_files.h"

namespace cohabit::locks {
namespace {

constexpr uint64_t kLargestScript = 4 << 20;

// What an installer writes itself, and so may name the place: scripts, notes, what activates.
bool may_name_place(const Entry& entry) {
  if (entry.kind != EntryKind::kFile || entry.size > kLargestScript) return false;
  return entry.path.find('/') == entry.path.npos || entry.path.starts_with("bin/") ||
         entry.path.find(".dist-info/") != entry.path.npos;
}

// Replaced as a new file: an installer may have linked it from its cache.
Result<void> write_again(const std::string& path, const Entry& entry, const std::string& text) {
  const std::string other = path + ".cohabit-new";
  if (auto written = disk::write_new(other, text); !written) return disk::to_error(written.error());
  if (auto done = disk::change_mode(other, entry.mode); !done) return disk::to_error(done.error());
  if (auto done = disk::rename(other, path); !done) return disk::to_error(done.error());
  return {};
}

// The rows of these files, of one RECORD, anew. Other rows keep every byte.
std::string with_new_rows(const std::string& record, const std::string& site,
                          const std::set<std::string>& written) {
  std::string result;
  for (size_t begin = 0; begin < record.size();) {
    const size_t end = std::min(record.find('\n', begin), record.size());
    std::string line = record.substr(begin, end - begin);
    begin = end + 1;
    const bool has_return = line.ends_with('\r');
    if (has_return) line.pop_back();
    const RecordRows rows = parse_record(line);
    const std::string path =
        rows.rows.size() == 1 ? join_normal(site, rows.rows[0].path) : std::string();
    Entry entry;
    if (written.contains(path) && !rows.rows[0].hash.empty() && look_at(path, entry))
      if (const auto hash = record_hash(Tree(""), path); hash && line[0] != '"')
        line = fmt::format("{},{},{}", rows.rows[0].path, *hash, entry.size);
    result += line + (has_return ? "\r\n" : "\n");
  }
  return result;
}

}  // namespace

Result<NewEnvironment> NewEnvironment::make(const Recipe& recipe, const std::string& place) {
  struct stat status{};
  if (::lstat(place.c_str(), &status) == 0)
    return fail(fmt::format("{} is there already: name a directory that is not there", place));
  NewEnvironment made;
  made.place_ = place;
  // Scripts start otherwise where a path is long or has blanks: so is the name meanwhile.
  const std::string name = last_part(place);
  std::string own = name.find(' ') == name.npos ? ".cohabit-recreate" : ".cohabit recreate";
  constexpr size_t kRandom = 7;
  if (own.size() + kRandom < name.size()) own.append(name.size() - own.size() - kRandom, '-');
  made.directory_ = std::make_unique<ScratchDirectory>(own, directory_of(place));
  if (made.prefix().empty())
    return fail(fmt::format("no directory can be made in {}: {}", directory_of(place),
                            std::strerror(errno)));
  std::vector<std::string> command;
  if (recipe.by_uv_venv)
    command = {recipe.uv,          "venv",     "--quiet",         "--no-project",
               "--allow-existing", "--python", recipe.base_python};
  else
    command = {recipe.base_python, "-m", "venv", "--without-pip"};
  if (recipe.sees_base_packages) command.emplace_back("--system-site-packages");
  command.push_back(made.prefix());
  const auto answer = hear_program(command);
  if (!answer) return tl::unexpected<Error>(answer.error());
  if (answer->status != 0)
    return fail(fmt::format("{} makes no environment: {}", recipe.base_python,
                            answer->errors.empty() ? answer->output : answer->errors));
  return made;
}

std::string NewEnvironment::site() const {
  const Tree tree("");
  for (const std::string& name : tree.list(prefix() + "/lib"))
    if (name.starts_with("python")) return fmt::format("{}/lib/{}/site-packages", prefix(), name);
  return prefix();
}

Result<void> NewEnvironment::run_installer(const Recipe& recipe,
                                           const std::vector<std::string>& more) const {
  std::vector<std::string> command = recipe.installer.command;
  if (recipe.installer.tool == check::Tool::kPip)
    command.insert(command.end(),
                   {"--python", python(), "install", "--quiet", "--no-input",
                    "--disable-pip-version-check", "--no-compile", "--only-binary", ":all:"});
  else
    command.insert(command.end(), {"install", "--quiet", "--no-build", "--python", python()});
  command.emplace_back("--no-deps");
  command.insert(command.end(), recipe.places.begin(), recipe.places.end());
  command.insert(command.end(), more.begin(), more.end());
  ::setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
  const auto answer = hear_program(command);
  if (!answer) return tl::unexpected<Error>(answer.error());
  if (answer->status != 0)
    return tl::unexpected(check::refusal_of(
        {recipe.installer.tool == check::Tool::kPip ? "pip" : "uv"}, *answer, true));
  return {};
}

// uv reads a pylock.toml. To pip each wheel is one more place to find it in; the indexes of its
// configuration are looked at too, whose credentials it has, and the hash decides.
Result<void> NewEnvironment::install(const Recipe& recipe, const Lock& lock) const {
  if (lock.wheels.empty()) return {};
  const ScratchDirectory scratch("cohabit-recreate");
  if (scratch.path().empty()) return fail("cannot make an empty directory in $TMPDIR");
  const bool is_pip = recipe.installer.tool == check::Tool::kPip;
  Lock whole = lock;
  for (LockedWheel& one : whole.wheels) one.is_bundled = false;
  const std::string file = scratch.path() + (is_pip ? "/requirements.txt" : "/pylock.toml");
  std::vector<std::string> more;
  std::string text;
  if (is_pip) {
    more.emplace_back("--require-hashes");
    for (const LockedWheel& one : whole.wheels) {
      text += fmt::format("{} --hash=sha256:{}\n", requirement_of(one), one.wheel.hash);
      if (!one.is_direct) more.insert(more.end(), {"--find-links", one.wheel.address});
    }
  } else {
    text = format_pylock(whole);
  }
  if (auto written = write_file(file, text); !written) return written;
  more.insert(more.end(), {"-r", file});
  return run_installer(recipe, more);
}

Result<void> NewEnvironment::install_requirements(const Recipe& recipe,
                                                  const std::string& file) const {
  return run_installer(recipe, {"--require-hashes", "-r", file});
}

Result<void> NewEnvironment::name_place() {
  disk::take_limits_as_failures();
  const auto entries = walk_files(prefix(), {});
  if (!entries) return tl::unexpected<Error>(entries.error());
  std::set<std::string> written;
  for (const Entry& entry : *entries) {
    if (!may_name_place(entry)) continue;
    const std::string path = prefix() + "/" + entry.path;
    const auto text = read_file(path, kLargestScript);
    if (!text) return tl::unexpected<Error>(text.error());
    const std::string own = last_part(prefix());
    if (text->find(own) == text->npos) continue;
    // The whole path, and its last part alone: the prompt.
    std::string now = *text;
    replace_all(now, prefix(), place_);
    replace_all(now, own, last_part(place_));
    if (auto done = write_again(path, entry, now); !done) return done;
    written.insert(path);
  }
  for (const Entry& entry : *entries) {
    if (entry.kind == EntryKind::kLink && entry.target.starts_with(prefix() + "/")) {
      const std::string path = prefix() + "/" + entry.path;
      if (auto gone = disk::unlink(path); !gone) return disk::to_error(gone.error());
      const std::string target = place_ + entry.target.substr(prefix().size());
      if (auto made = disk::make_symlink(target, path); !made) return disk::to_error(made.error());
    }
    if (!entry.path.ends_with(".dist-info/RECORD")) continue;
    const std::string path = prefix() + "/" + entry.path;
    const auto text = read_file(path);
    if (!text) return tl::unexpected<Error>(text.error());
    const std::string now = with_new_rows(*text, directory_of(directory_of(path)), written);
    if (now == *text) continue;
    if (auto done = write_again(path, entry, now); !done) return done;
  }
  return {};
}

Result<void> NewEnvironment::put_in_place() {
  if (auto flushed = disk::flush(prefix()); !flushed) return disk::to_error(flushed.error());
  // mkdtemp made it for us alone.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (auto done = disk::change_mode(prefix(), 0777 & ~mask); !done)
    return disk::to_error(done.error());
  if (::syscall(SYS_renameat2, AT_FDCWD, prefix().c_str(), AT_FDCWD, place_.c_str(),
                RENAME_NOREPLACE) == 0)
    return {};
  if (errno != EINVAL && errno != ENOSYS)
    return fail(
        fmt::format("cannot rename the new environment to {}: {}", place_, std::strerror(errno)));
  // A file system without that: an empty directory would be replaced, nothing else.
  if (auto done = disk::rename(prefix(), place_); !done) return disk::to_error(done.error());
  return {};
}

}  // namespace cohabit::locks
