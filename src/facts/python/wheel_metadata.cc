// RECORDs are long: 94,000 lines in an environment with torch, TensorFlow and JAX. A line without a
// quote is three memchr; the rare others are taken apart character by character.
#include "facts/python/wheel_metadata.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace cohabit {
namespace {

constexpr size_t kMaxRows = 1 << 20;
constexpr size_t kMaxHeaders = 10'000;

bool same_text(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

// The next line, without its line break; moves text behind it.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end == text.npos ? end : end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

void take_header(std::string_view key, std::string_view value, MetadataHeaders& headers) {
  const std::string text(value);
  if (same_text(key, "Name")) headers.name = text;
  if (same_text(key, "Version")) headers.version = text;
  if (same_text(key, "Requires-Python")) headers.requires_python = text;
  if (same_text(key, "Requires-Dist") && headers.requires_dist.size() < kMaxHeaders)
    headers.requires_dist.push_back(text);
  if (same_text(key, "Provides-Extra") && headers.provides_extra.size() < kMaxHeaders)
    headers.provides_extra.push_back(text);
}

int64_t parse_size(std::string_view text) {
  int64_t size = -1;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), size);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() && size >= 0 ? size
                                                                                          : -1;
}

// "path,hash,size" without quotes. A path may hold no comma then, so the first one ends it.
RecordRow plain_row(std::string_view line) {
  RecordRow row;
  const size_t first = line.find(',');
  row.path = line.substr(0, first);
  if (first == line.npos) return row;
  line.remove_prefix(first + 1);
  const size_t second = line.find(',');
  row.hash = line.substr(0, second);
  if (second != line.npos) row.size = parse_size(line.substr(second + 1));
  return row;
}

// A row that starts with a quote; moves text behind it.
RecordRow quoted_row(std::string_view& text, std::forward_list<std::string>& names) {
  std::string name;
  size_t at = 1;
  for (; at < text.size(); at++) {
    if (text[at] == '"' && !text.substr(at + 1).starts_with('"')) break;
    if (text[at] == '"') at++;
    name += text[at];
  }
  text.remove_prefix(std::min(at + 1, text.size()));
  RecordRow row = plain_row(take_line(text));
  row.path = names.emplace_front(std::move(name));
  return row;
}

}  // namespace

MetadataHeaders parse_metadata_headers(std::string_view text) {
  MetadataHeaders headers;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    // A blank line ends the headers; one of blanks alone is a part of a long License.
    if (line.empty()) break;
    if (line[0] == ' ' || line[0] == '\t') continue;
    const size_t colon = line.find(':');
    if (colon != line.npos)
      take_header(line.substr(0, colon), trim(line.substr(colon + 1)), headers);
  }
  return headers;
}

std::vector<std::string> parse_egg_requirements(std::string_view text) {
  std::vector<std::string> result;
  std::string marker;
  while (!text.empty() && result.size() < kMaxHeaders) {
    const std::string_view line = trim(take_line(text));
    if (line.empty() || line[0] == '#') continue;
    if (line[0] != '[') {
      result.push_back(std::string(line) + (marker.empty() ? "" : " ; " + marker));
      continue;
    }
    // "[extra:marker]", where either may be missing
    const std::string_view section = line.substr(1, line.find(']') - 1);
    const size_t colon = std::min(section.find(':'), section.size());
    marker = colon == 0 ? "" : "extra == '" + std::string(section.substr(0, colon)) + "'";
    if (colon < section.size())
      marker +=
          (marker.empty() ? "" : " and ") + ("(" + std::string(section.substr(colon + 1))) + ")";
  }
  return result;
}

std::string editable_location(std::string_view direct_url_json) {
  const auto document = nlohmann::json::parse(direct_url_json, nullptr, false);
  if (!document.is_object()) return "";
  const auto info = document.find("dir_info");
  const auto url = document.find("url");
  if (info == document.end() || !info->is_object() || url == document.end() || !url->is_string())
    return "";
  const auto editable = info->find("editable");
  const bool in_place = editable != info->end() && editable->is_boolean() && editable->get<bool>();
  return in_place ? url->get<std::string>() : "";
}

RecordRows parse_record(std::string_view text) {
  RecordRows result;
  result.rows.reserve(std::min(text.size() / 80, kMaxRows));
  while (!text.empty() && result.rows.size() < kMaxRows) {
    RecordRow row = text[0] == '"' ? quoted_row(text, result.names) : plain_row(take_line(text));
    if (!row.path.empty()) result.rows.push_back(row);
  }
  return result;
}

}  // namespace cohabit
