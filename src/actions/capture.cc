#include "actions/capture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "actions/archive_reader.h"
#include "actions/archive_writer.h"
#include "actions/path_walker.h"
#include "base/descriptor.h"
#include "base/not_in_bundle.h"
#include "base/paths.h"
#include "base/read_file.h"
#include "base/tree.h"
#include "base/write_file.h"

namespace cohabit {
namespace {

struct Content {
  std::set<std::string> paths;  // without links; several: hard links
  TouchLog::Ranges ranges;
  uint64_t size = 0;
  bool is_executable = false;
};

// What of the machine belongs into a bundle: every path that was asked for, with the directories
// and links on the way.
class Collector {
 public:
  Collector(const std::string& directory, std::string home)
      : walker_("", directory), home_(std::move(home)) {}

  void add(const std::string& asked, const TouchLog::Touched& touched) {
    const auto end = walker_.walk(
        asked, [this](const std::string& place, const auto& part) { add_part(place, part); });
    if (!end.part.is_there()) absent_.insert(end.place);
    if (end.part.is_file()) add_ranges(files_[end.part.id].ranges, touched.ranges);
    if (end.part.is_directory() && touched.listed) add_names(end.place);
  }

  const std::set<std::string>& directories() const { return directories_; }
  const std::set<std::string>& listed() const { return listed_; }
  const std::set<std::string>& partly_listed() const { return partly_listed_; }
  const std::set<std::string>& absent() const { return absent_; }
  const std::set<std::string>& others() const { return others_; }
  const std::map<std::string, std::string>& links() const { return links_; }
  const std::map<FileId, Content>& files() const { return files_; }

 private:
  void add_part(const std::string& place, const PathWalker::Part& part) {
    if (part.is_directory()) {
      directories_.insert(place);
    } else if (part.is_link()) {
      links_.emplace(place, part.target);
    } else if (part.is_file()) {
      Content& content = files_[part.id];
      content.paths.insert(place);
      content.size = part.size;
      content.is_executable = (part.mode & 0111) != 0;
    } else if (part.is_there()) {
      others_.insert(place);
    }
  }

  static void add_ranges(TouchLog::Ranges& known, const TouchLog::Ranges& more) {
    for (const auto& [begin, end] : more) known[begin] = std::max(known[begin], end);
  }

  // Who lists a directory sees the names, even of what is not looked at. Those in the user's home
  // directory are nobody's business.
  void add_names(const std::string& directory) {
    if (directory == home_ || is_below(home_, directory)) {
      partly_listed_.insert(directory);
      return;
    }
    if (!listed_.insert(directory).second) return;
    const std::string start = directory == "/" ? "" : directory;
    for (const std::string& name : Tree().list(directory)) {
      const std::string place = fmt::format("{}/{}", start, name);
      add_part(place, walker_.look(place));
    }
  }

  PathWalker walker_;
  std::string home_;
  std::set<std::string> directories_, listed_, partly_listed_, absent_, others_;
  std::map<std::string, std::string> links_;
  std::map<FileId, Content> files_;
};

std::string read_part(int fd, uint64_t begin, uint64_t end) {
  std::string bytes(end - begin, '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t count =
        ::pread(fd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(begin + have));
    if (count <= 0) break;
    have += static_cast<size_t>(count);
  }
  bytes.resize(have);
  return bytes;
}

// Ranges that touch become one part. The size of files of /proc and /sys is not told.
std::map<uint64_t, std::string> read_parts(const std::string& path, const Content& content) {
  std::map<uint64_t, std::string> parts;
  const TouchLog::Ranges& ranges = content.ranges;
  if (ranges.empty()) return parts;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return parts;
  const uint64_t size = content.size > 0 ? content.size : UINT64_MAX;
  for (auto at = ranges.begin(); at != ranges.end();) {
    const uint64_t begin = at->first;
    uint64_t end = at->second;
    for (++at; at != ranges.end() && at->first <= end; ++at) end = std::max(end, at->second);
    end = std::min(end, size);
    if (begin >= end) continue;
    std::string bytes = read_part(file.get(), begin, end);
    if (!bytes.empty()) parts.emplace(begin, std::move(bytes));
  }
  return parts;
}

bool is_elf(const std::map<uint64_t, std::string>& parts) {
  return !parts.empty() && parts.begin()->first == 0 &&
         parts.begin()->second.starts_with(
             "\x7f"
             "ELF");
}

std::string place_of(const std::string& path) {
  return kBundleTree + path;
}

void write_files(const Collector& found, const Redaction& redaction, ArchiveWriter& archive) {
  std::set<std::string> packed;  // two paths may be the same without their secrets
  for (const auto& [id, content] : found.files()) {
    if (content.paths.empty()) continue;
    const std::string& first = *content.paths.begin();
    if (!packed.insert(redaction.applied(first)).second) continue;
    auto parts = read_parts(first, content);
    const bool compiled = is_elf(parts);
    const bool is_whole = parts.size() == 1 && parts.begin()->first == 0 &&
                          parts.begin()->second.size() >= content.size;
    for (auto& [offset, bytes] : parts)
      is_whole ? redaction.apply_to_file(first, bytes, compiled)
               : redaction.apply_to_part(first, bytes, compiled);
    const uint64_t size = is_whole ? parts.begin()->second.size() : content.size;
    const std::string place = place_of(redaction.applied(first));
    archive.add_sparse(place, {size, content.is_executable, std::move(parts)});
    for (const std::string& path : content.paths)
      if (packed.insert(redaction.applied(path)).second)
        archive.add_hard_link(place_of(redaction.applied(path)), place);
  }
}

// Names are bytes: what cannot stand in one ends them.
using Texts = std::vector<std::string>;

std::string join_texts(const Texts& names) {
  std::string text;
  for (const std::string& name : names) text.append(name).push_back('\0');
  return text;
}

std::set<std::string> applied(const Redaction& redaction, const std::set<std::string>& paths) {
  std::set<std::string> result;
  for (const std::string& path : paths) result.insert(redaction.applied(path));
  return result;
}

std::string join_paths(const Redaction& redaction, const std::set<std::string>& paths) {
  const auto shown = applied(redaction, paths);
  return join_texts({shown.begin(), shown.end()});
}

Texts read_texts(const std::string& bundle, const char* name) {
  Texts texts;
  const auto text = read_file(fmt::format("{}/{}", bundle, name));
  if (!text) return texts;
  for (size_t begin = 0; begin < text->size();) {
    const size_t end = std::min(text->find('\0', begin), text->size());
    texts.push_back(text->substr(begin, end - begin));
    begin = end + 1;
  }
  return texts;
}

std::set<std::string> read_names(const std::string& bundle, const char* name) {
  const Texts texts = read_texts(bundle, name);
  return {texts.begin(), texts.end()};
}

// Path, kind, how many words, the words.
Texts texts_of(const TouchLog::Extracts& extracts, const Redaction& redaction) {
  Texts texts;
  for (const auto& [of, words] : extracts) {
    texts.insert(texts.end(),
                 {redaction.applied(of.first), of.second, std::to_string(words.size())});
    texts.insert(texts.end(), words.begin(), words.end());
  }
  return texts;
}

}  // namespace

Result<uint64_t> write_bundle(const BundleRequest& request) {
  Collector found(request.directory, request.home);
  for (const auto& [path, touched] : request.log.paths()) found.add(path, touched);
  ArchiveWriter archive(UnpackLimits().bytes);
  for (const BundleText& one : request.texts) archive.add_text(one.name, one.text);
  const Redaction& redaction = request.redaction;
  archive.add_text(kBundleAbsent, join_paths(redaction, found.absent()));
  archive.add_text(kBundleListed, join_paths(redaction, found.listed()));
  archive.add_text(kBundlePartlyListed, join_paths(redaction, found.partly_listed()));
  std::string extracts = join_texts(texts_of(request.log.extracts(), redaction));
  redaction.apply_to_extracts(extracts);
  archive.add_text(kBundleExtracts, extracts);
  archive.add_directory(kBundleTree);
  for (const std::string& path : applied(redaction, found.directories()))
    archive.add_directory(place_of(path));
  for (const std::string& path : applied(redaction, found.others()))
    archive.add_fifo(place_of(path));
  write_files(found, redaction, archive);
  // Last: nothing is unpacked through a link.
  std::map<std::string, std::string> links;
  for (const auto& [path, target] : found.links())
    links.emplace(redaction.applied(path), redaction.applied(target));
  for (const auto& [path, target] : links) archive.add_symlink(place_of(path), target);
  const auto bytes = archive.finish();
  if (!bytes) return fail(fmt::format("cannot write {}: {}", request.out, bytes.error().message));
  if (auto done = write_file(request.out, *bytes); !done)
    return tl::unexpected<Error>(done.error());
  return bytes->size();
}

namespace {

TouchLog::Extracts read_extracts(const std::string& bundle) {
  TouchLog::Extracts extracts;
  const Texts texts = read_texts(bundle, kBundleExtracts);
  for (size_t at = 0; at + 3 <= texts.size();) {
    const auto first = texts.begin() + static_cast<ptrdiff_t>(at + 3);
    const std::string& count_text = texts[at + 2];
    size_t count = 0;
    std::from_chars(count_text.data(), count_text.data() + count_text.size(), count);
    if (count > texts.size() - (at + 3)) break;
    extracts.try_emplace({texts[at], texts[at + 1]}, first, first + static_cast<ptrdiff_t>(count));
    at += 3 + count;
  }
  return extracts;
}

}  // namespace

void read_known(const std::string& bundle, const std::string& directory, TouchLog& log) {
  TouchLog::Extracts extracts = read_extracts(bundle);
  PathWalker walker(fmt::format("{}/{}", bundle, kBundleTree), directory);
  std::map<FileId, std::string> paths;
  const std::string* last = nullptr;
  for (const auto& [of, words] : extracts) {
    if (last && *last == of.first) continue;
    last = &of.first;
    if (const auto end = walker.walk(of.first); end.part.is_file())
      paths.try_emplace(end.part.id, of.first);
  }
  for (const auto& [kind, file] :
       {std::pair(kKnownAbsent, kBundleAbsent), std::pair(kKnownListed, kBundleListed)}) {
    const std::set<std::string> names = read_names(bundle, file);
    extracts[{"", kind}].assign(names.begin(), names.end());
  }
  log.set_extracts(std::move(extracts), std::move(paths));
}

BundleGaps find_gaps(const TouchLog& log, const std::string& bundle, const std::string& directory) {
  PathWalker walker(fmt::format("{}/{}", bundle, kBundleTree), directory);
  const auto partly_listed = read_names(bundle, kBundlePartlyListed);
  std::set<std::string> gaps;
  for (const auto& [path, touched] : log.paths()) {
    const auto end = walker.walk(path);
    if (!end.part.is_there() && !knows_absence(log, end.place)) gaps.insert(end.place);
    if (touched.listed && end.part.is_directory() && !knows_names(log, end.place) &&
        !partly_listed.contains(end.place))
      gaps.insert(end.place);
  }
  return {{log.lacking().begin(), log.lacking().end()}, {gaps.begin(), gaps.end()}};
}

}  // namespace cohabit
