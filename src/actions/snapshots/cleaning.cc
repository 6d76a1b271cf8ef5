#include "actions/snapshots/cleaning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>

#include "base/changes.h"
#include "base/clock.h"
#include "base/paths.h"
#include "base/rows.h"
#include "base/tree.h"

namespace cohabit {
namespace {

constexpr std::string_view kFirstLine = "cohabit-cleaned 1 ";
constexpr std::string_view kGoing = "going", kAway = "away", kReturning = "returning";
constexpr uint64_t kLargestList = 64 << 20;
constexpr uint32_t kPrivate = 0700, kUsual = 0755;

std::string directory_of_cleanings(const std::string& root) {
  return fmt::format("{}/{}/cleaned", root, Store::kDirectory);
}

bool is_there(const std::string& path) {
  Entry entry;
  return look_at(path, entry);
}

bool is_directory(const std::string& path) {
  Entry entry;
  return look_at(path, entry) && entry.kind == EntryKind::kDirectory;
}

// One thing, which is not mixed with another of its name: what pip was about to remove, and the
// metadata of a distribution.
bool is_whole(std::string_view name) {
  return name.starts_with('~') || name.ends_with(".dist-info") || name.ends_with(".egg-info");
}

// Bytecode that is there again is as good, or better: Python made it from the source that is there.
bool is_superseded(const std::string& kept, const std::string& place) {
  Entry entry;
  return place.ends_with(".pyc") && last_part(directory_of(place)) == "__pycache__" &&
         look_at(place, entry) && entry.kind == EntryKind::kFile && !is_directory(kept);
}

// A directory that several share (site-packages/__pycache__) is soon there again.
bool can_merge(const std::string& kept, const std::string& place) {
  return is_directory(kept) && is_directory(place) && !is_whole(last_part(place));
}

void add_collisions(const std::string& kept, const std::string& place,
                    std::vector<std::string>& collisions) {
  if (!is_there(kept) || !is_there(place)) return;
  if (can_merge(kept, place)) {
    for (const std::string& name : Tree("").list(kept))
      add_collisions(fmt::format("{}/{}", kept, name), fmt::format("{}/{}", place, name),
                     collisions);
  } else if (!is_superseded(kept, place)) {
    collisions.push_back(place);
  }
}

// What collides stays where it is. It needs no memory of how far it came.
disk::Outcome<> bring_back(const std::string& kept, const std::string& place) {
  if (!is_there(place)) return disk::rename(kept, place);
  if (is_superseded(kept, place)) return disk::unlink(kept);
  if (!can_merge(kept, place)) return {};
  for (const std::string& name : Tree("").list(kept))
    if (auto done = bring_back(fmt::format("{}/{}", kept, name), fmt::format("{}/{}", place, name));
        !done)
      return done;
  return Tree("").list(kept).empty() ? disk::remove_directory(kept) : disk::Outcome<>();
}

// One cleaning, as its list says.
class Cleaning {
 public:
  Cleaning(const std::string& root, const std::string& id)
      : root_(root), directory_(directory_of_cleanings(root) + "/" + id) {}

  static Result<Cleaning> read(const std::string& root, const std::string& id);
  const std::string& state() const { return state_; }
  size_t size() const { return paths_.size(); }
  void add(const std::string& path) { paths_.push_back(path.substr(root_.size() + 1)); }

  Result<void> make();
  Result<void> set_state(std::string_view state);
  disk::Outcome<> move_away();
  disk::Outcome<> move_back();
  // Where something is that was not put there by us, and that we cannot leave beside what we have.
  std::vector<std::string> taken() const;
  Result<void> remove() const;

 private:
  std::string place(size_t number) const { return root_ + "/" + paths_[number]; }
  std::string kept(size_t number) const { return fmt::format("{}/{}", directory_, number); }
  disk::Outcome<> make_parents(const std::string& path) const;

  std::string root_, directory_, state_;
  std::vector<std::string> paths_;
};

tl::unexpected<Error> broken(const std::string& directory) {
  return fail(
      fmt::format("{}/list is no list of files that were put away: move that directory "
                  "away, its files are named by number",
                  directory));
}

Result<Cleaning> Cleaning::read(const std::string& root, const std::string& id) {
  Cleaning cleaning(root, id);
  const auto text = Tree("").read_text(cleaning.directory_ + "/list", kLargestList);
  if (!text || !text->starts_with(kFirstLine) || !text->ends_with('\n'))
    return broken(cleaning.directory_ + "/list");
  auto lines = split(std::string_view(*text).substr(0, text->size() - 1), '\n');
  cleaning.state_ = lines.front().substr(kFirstLine.size());
  if (cleaning.state_ != kGoing && cleaning.state_ != kAway && cleaning.state_ != kReturning)
    return broken(cleaning.directory_ + "/list");
  for (size_t i = 1; i < lines.size(); i++) {
    cleaning.paths_.push_back(unescape_field(lines[i]));
    // A path that leaves the root was not written by us.
    if (!stays_below(cleaning.paths_.back())) return broken(cleaning.directory_ + "/list");
  }
  return cleaning;
}

Result<void> Cleaning::make() {
  for (const std::string& path : {directory_of(directory_), directory_})
    if (auto made = disk::make_directory(path, kPrivate); !made && made.error().number != EEXIST)
      return disk::to_error(made.error());
  return {};
}

Result<void> Cleaning::set_state(std::string_view state) {
  std::string text = fmt::format("{}{}\n", kFirstLine, state);
  for (const std::string& path : paths_) text.append(escape_field(path)).append("\n");
  if (auto written = disk::replace(directory_ + "/list", text); !written)
    return disk::to_error(written.error());
  state_ = state;
  return {};
}

disk::Outcome<> Cleaning::move_away() {
  for (size_t i = 0; i < paths_.size(); i++) {
    if (is_there(kept(i)) || !is_there(place(i))) continue;
    if (auto moved = disk::rename(place(i), kept(i)); !moved) return moved;
  }
  return {};
}

disk::Outcome<> Cleaning::make_parents(const std::string& path) const {
  const std::string parent = directory_of(path);
  if (parent.size() <= root_.size() || is_there(parent)) return {};
  if (auto made = make_parents(parent); !made) return made;
  return disk::make_directory(parent, kUsual);
}

disk::Outcome<> Cleaning::move_back() {
  for (size_t i = 0; i < paths_.size(); i++) {
    if (!is_there(kept(i))) continue;
    if (auto made = make_parents(place(i)); !made) return made;
    if (auto moved = bring_back(kept(i), place(i)); !moved) return moved;
  }
  return {};
}

std::vector<std::string> Cleaning::taken() const {
  std::vector<std::string> result;
  for (size_t i = 0; i < paths_.size(); i++) add_collisions(kept(i), place(i), result);
  return result;
}

Result<void> Cleaning::remove() const {
  if (auto removed = disk::remove_all(directory_); !removed) return disk::to_error(removed.error());
  return {};
}

Result<void> finish_return(Cleaning& cleaning) {
  if (auto moved = cleaning.move_back(); !moved)
    return fail(moved.error().message +
                "; remove the cause and run `cohabit clean` again, which "
                "puts back the rest");
  if (cleaning.taken().empty()) return cleaning.remove();
  return cleaning.set_state(kAway);
}

Result<std::string> finished(Store& store, std::string sentence) {
  if (auto cleared = store.clear_journal(); !cleared) return tl::unexpected<Error>(cleared.error());
  return sentence;
}

Result<void> finish_going(Cleaning& cleaning) {
  const auto moved = cleaning.move_away();
  if (moved) return cleaning.set_state(kAway);
  auto undone = cleaning.set_state(kReturning);
  if (undone) undone = finish_return(cleaning);
  if (!undone) return fail(moved.error().message + "; " + undone.error().message);
  return fail(moved.error().message + ": everything is where it was");
}

}  // namespace

std::vector<std::string> cleanings(const std::string& root) {
  return Tree("").list(directory_of_cleanings(root));
}

std::string new_cleaning_name(const std::string& root) {
  return name_by_time("", [&](const std::string& name) {
    return is_there(directory_of_cleanings(root) + "/" + name);
  });
}

Result<void> put_away(Store& store, const std::string& id, const std::vector<std::string>& paths) {
  Cleaning cleaning(store.prefix(), id);
  for (const std::string& path : paths) cleaning.add(path);
  auto noted = store.write_journal({Journal::Action::kClean, id, ""});
  if (noted) noted = cleaning.make();
  if (noted) noted = cleaning.set_state(kGoing);
  if (!noted) {
    (void)cleaning.remove();
    (void)store.clear_journal();
    return fail(noted.error().message + ": nothing was changed");
  }
  if (auto done = finish_going(cleaning); !done) return done;
  return store.clear_journal();
}

Result<void> put_back(Store& store, const std::string& id) {
  auto cleaning = Cleaning::read(store.prefix(), id);
  if (!cleaning) return tl::unexpected<Error>(cleaning.error());
  if (const auto taken = cleaning->taken(); !taken.empty())
    return fail(
        fmt::format("nothing was put back, since something is there again: {}; move it "
                    "away first",
                    escape_field(fmt::format("{}", fmt::join(taken, ", ")))));
  auto noted = store.write_journal({Journal::Action::kClean, id, ""});
  if (noted) noted = cleaning->set_state(kReturning);
  if (!noted) return fail(noted.error().message + ": nothing was changed");
  if (auto done = finish_return(*cleaning); !done) return done;
  return store.clear_journal();
}

// The list goes first: without it, what is left is removed by the next command.
Result<void> forget_cleaning(Store& store, const std::string& id) {
  if (auto noted = store.write_journal({Journal::Action::kClean, id, ""}); !noted) return noted;
  const std::string directory = directory_of_cleanings(store.prefix()) + "/" + id;
  if (auto removed = disk::unlink(directory + "/list");
      !removed && removed.error().number != ENOENT)
    return disk::to_error(removed.error());
  if (auto removed = Cleaning(store.prefix(), id).remove(); !removed) return removed;
  return store.clear_journal();
}

Result<std::string> complete_cleaning(Store& store, const std::string& id) {
  if (auto good = check_snapshot_name(id); !good) return broken(store.path("journal"));
  if (!is_there(directory_of_cleanings(store.prefix()) + "/" + id + "/list")) {
    // Killed before anything was moved, or when it was to be gone.
    if (auto removed = Cleaning(store.prefix(), id).remove(); !removed)
      return tl::unexpected<Error>(removed.error());
  } else {
    auto cleaning = Cleaning::read(store.prefix(), id);
    if (!cleaning) return tl::unexpected<Error>(cleaning.error());
    if (cleaning->state() == kAway) return finished(store, "");
    const bool is_going = cleaning->state() == kGoing;
    if (auto end = is_going ? finish_going(*cleaning) : finish_return(*cleaning); !end)
      return tl::unexpected<Error>(end.error());
    return finished(store, is_going ? fmt::format("the interrupted clean {} is complete", id)
                                    : fmt::format("what clean {} had put away is back", id));
  }
  return finished(store, "");
}

}  // namespace cohabit
