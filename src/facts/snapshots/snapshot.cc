#include "facts/snapshots/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/paths.h"
#include "base/rows.h"

namespace cohabit {
namespace {

constexpr std::string_view kFirstLine = "cohabit-snapshot 1\n";
constexpr std::string_view kFilesLine = "files\n";

template <class Number>
bool read_number(std::string_view text, Number& number, int base = 10) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

void append_file(const SnapshotFile& file, std::string& text) {
  auto to = std::back_inserter(text);
  const std::string path = escape_field(file.path);
  switch (file.kind) {
    case EntryKind::kDirectory:
      fmt::format_to(to, "d\t{}\t{:o}\t{}\t{}\n", path, file.mode, file.uid, file.gid);
      break;
    case EntryKind::kLink:
      fmt::format_to(to, "l\t{}\t{}\n", path, escape_field(file.target));
      break;
    case EntryKind::kOther:
      fmt::format_to(to, "o\t{}\n", path);
      break;
    case EntryKind::kFile:
      fmt::format_to(to, "f\t{}\t{:o}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", path, file.mode, file.uid,
                     file.gid, file.size, file.modified, hexadecimal(file.hash),
                     file.was_read ? "read" : "claimed", file.object);
  }
}

bool read_permissions(const TableRow& row, SnapshotFile& file) {
  return row.size() >= 5 && read_number(row[2], file.mode, 8) && file.mode <= 07777 &&
         read_number(row[3], file.uid) && read_number(row[4], file.gid);
}

bool parse_file(const TableRow& row, SnapshotFile& file) {
  if (row.size() < 2) return false;
  file.path = unescape_field(row[1]);
  if (!stays_below(file.path)) return false;
  if (row[0] == "d") {
    file.kind = EntryKind::kDirectory;
    return read_permissions(row, file);
  }
  if (row[0] == "l" && row.size() == 3) {
    file.kind = EntryKind::kLink;
    file.target = unescape_field(row[2]);
    return !file.target.empty() && file.target.find('\0') == std::string::npos;
  }
  if (row[0] == "o") return true;
  if (row[0] != "f" || row.size() != 10 || !read_permissions(row, file)) return false;
  file.kind = EntryKind::kFile;
  const auto hash = parse_hexadecimal(row[7]);
  if (!hash || !is_object_name(row[9])) return false;
  file.hash = *hash;
  file.was_read = row[8] == "read";
  file.object = row[9];
  return read_number(row[5], file.size) && read_number(row[6], file.modified);
}

void parse_head(const TableRow& row, Snapshot& snapshot) {
  const auto field = [&](size_t i) { return unescape_field(i < row.size() ? row[i] : ""); };
  SnapshotNotes& notes = snapshot.notes;
  if (row[0] == "name") snapshot.name = field(1);
  if (row[0] == "made") snapshot.made = field(1);
  if (row[0] == "prefix") snapshot.prefix = field(1);
  if (row[0] == "reason") notes.reason = field(1);
  if (row[0] == "automatic") notes.is_automatic = true;
  if (row[0] == "findings-of") notes.findings_of = field(1);
  if (row[0] == "package") notes.packages.push_back({field(1), field(2)});
  if (row[0] == "variable") notes.variables.push_back({field(1), field(2)});
  if (row[0] == "finding") notes.findings.push_back({field(1), field(2), field(3), field(4)});
}

std::string last_line(std::string_view text) {
  return "end\t" + hexadecimal(sha256(Bytes(text))) + "\n";
}

// Without the last line; nothing if that is missing or is not of this text.
std::optional<std::string_view> checked(std::string_view text) {
  const size_t end = text.rfind("end\t");
  if (end == text.npos || last_line(text.substr(0, end)) != text.substr(end)) return std::nullopt;
  return text.substr(0, end);
}

Result<void> parse_files(std::string_view text, Snapshot& snapshot) {
  for (const TableRow& row : table_rows(text, 1)) {
    SnapshotFile file;
    if (!parse_file(row, file))
      return fail(fmt::format("the snapshot {} has a line that is none, at {}", snapshot.name,
                              escape_field(file.path)));
    if (!snapshot.files.empty() && snapshot.files.back().path >= file.path)
      return fail(fmt::format("the snapshot {} is not in order, at {}", snapshot.name,
                              escape_field(file.path)));
    snapshot.files.push_back(std::move(file));
  }
  return {};
}

}  // namespace

SnapshotFile to_row(const Entry& entry) {
  SnapshotFile row;
  row.path = entry.path;
  row.kind = entry.kind;
  row.target = entry.target;
  if (entry.kind == EntryKind::kLink || entry.kind == EntryKind::kOther) return row;
  row.mode = entry.mode;
  row.uid = entry.uid;
  row.gid = entry.gid;
  if (entry.kind == EntryKind::kDirectory) return row;
  row.size = entry.size;
  row.modified = entry.modified;
  return row;
}

std::string escape_field(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || c == '%' || byte == 0x7f || (result.empty() && c == '#'))
      fmt::format_to(std::back_inserter(result), "%{:02x}", byte);
    else
      result += c;
  }
  return result;
}

std::string unescape_field(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); i++) {
    uint8_t byte = 0;
    if (text[i] == '%' && i + 2 < text.size() && read_number(text.substr(i + 1, 2), byte, 16)) {
      result += static_cast<char>(byte);
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

bool is_object_name(std::string_view name) {
  constexpr size_t kLongest = 40;
  return !name.empty() && name.size() < kLongest && name[0] != '-' &&
         name.find_first_not_of("0123456789abcdef-") == name.npos;
}

std::string format_snapshot(const Snapshot& snapshot) {
  const SnapshotNotes& notes = snapshot.notes;
  std::string text(kFirstLine);
  auto to = std::back_inserter(text);
  const auto line = [&](std::string_view key, std::string_view value) {
    fmt::format_to(to, "{}\t{}\n", key, escape_field(value));
  };
  line("name", snapshot.name);
  line("made", snapshot.made);
  line("prefix", snapshot.prefix);
  if (!notes.reason.empty()) line("reason", notes.reason);
  if (notes.is_automatic) text += "automatic\t\n";
  if (!notes.findings_of.empty()) line("findings-of", notes.findings_of);
  for (const auto& package : notes.packages)
    fmt::format_to(to, "package\t{}\t{}\n", escape_field(package.name),
                   escape_field(package.version));
  for (const auto& variable : notes.variables)
    fmt::format_to(to, "variable\t{}\t{}\n", escape_field(variable.name),
                   escape_field(variable.hash));
  for (const auto& finding : notes.findings)
    fmt::format_to(to, "finding\t{}\t{}\t{}\t{}\n", escape_field(finding.fingerprint),
                   escape_field(finding.severity), escape_field(finding.code),
                   escape_field(finding.headline));
  text += kFilesLine;
  for (const SnapshotFile& file : snapshot.files) append_file(file, text);
  return text + last_line(text);
}

Result<Snapshot> parse_snapshot(std::string_view text, bool with_files) {
  if (!text.starts_with(kFirstLine))
    return fail("it is no snapshot of this version of Cohabit: expected \"cohabit-snapshot 1\"");
  Snapshot snapshot;
  const auto content = checked(text);
  if (!content) return fail("it is damaged: its last line is not the hash of the others");
  text = *content;
  text.remove_prefix(kFirstLine.size());
  const size_t files = text.find("\nfiles\n");
  if (files == text.npos) return fail("it is damaged: it has no list of files");
  for (const TableRow& row : table_rows(text.substr(0, files + 1), 1)) parse_head(row, snapshot);
  if (!with_files) return snapshot;
  if (auto done = parse_files(text.substr(files + 1 + kFilesLine.size()), snapshot); !done)
    return tl::unexpected<Error>(done.error());
  return snapshot;
}

Result<void> check_snapshot_name(const std::string& name) {
  constexpr size_t kLongest = 100;
  constexpr std::string_view kFirst =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  const bool good = !name.empty() && name.size() <= kLongest &&
                    kFirst.find(name[0]) != kFirst.npos &&
                    name.find_first_not_of(std::string(kFirst) + "._-") == std::string::npos &&
                    !name.ends_with(".partial");
  if (good) return {};
  return fail(fmt::format(
      "a snapshot cannot be called \"{}\": a name is at most {} letters, digits, \".\", \"_\" and "
      "\"-\", and begins with a letter or digit",
      escape_field(name), kLongest));
}

}  // namespace cohabit
