// What an installed distribution says about itself: the headers of METADATA (core metadata) and the
// rows of RECORD (PEP 376, PEP 627).
#pragma once

#include <cstdint>
#include <forward_list>
#include <string>
#include <string_view>
#include <vector>

namespace cohabit {

struct MetadataHeaders {
  std::string name, version, requires_python;
  std::vector<std::string> requires_dist;   // as written, not parsed
  std::vector<std::string> provides_extra;  // as written
};

// METADATA or PKG-INFO, up to the description.
MetadataHeaders parse_metadata_headers(std::string_view text);

// The requires.txt of an .egg-info, as Requires-Dist would write it: sections become markers.
std::vector<std::string> parse_egg_requirements(std::string_view text);

// The URL of direct_url.json if it says that the distribution is installed in place (PEP 660).
std::string editable_location(std::string_view direct_url_json);

struct RecordRow {
  std::string_view path;  // relative to the directory that holds the metadata, or absolute
  std::string_view hash;  // "sha256=BASE64"; empty for RECORD itself and compiled files
  int64_t size = -1;      // -1: not said
};

// Rows whose names are not quoted are views into the text. A quoted name may hold commas, quotes
// and line breaks; it is unescaped into `names`. Rows beyond a million are left out. Moved and not
// copied: libstdc++ copies a deque where a vector of it grows, and the rows would stay with the
// old.
struct RecordRows {
  std::vector<RecordRow> rows;
  std::forward_list<std::string> names;  // newest first

  RecordRows() = default;
  RecordRows(RecordRows&&) = default;
  RecordRows& operator=(RecordRows&&) = default;
  RecordRows(const RecordRows&) = delete;
  RecordRows& operator=(const RecordRows&) = delete;
};
RecordRows parse_record(std::string_view text);

}  // namespace cohabit
