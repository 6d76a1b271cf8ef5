#include "actions/trace_log.h"

#include <charconv>

namespace cohabit {
namespace {

bool read_number(std::string_view& text, int64_t& value) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool read_text(std::string_view& rest, int64_t length, std::optional<std::string>& out) {
  if (length < 0) return true;
  if (static_cast<uint64_t>(length) > rest.size()) return false;
  out = std::string(rest.substr(0, static_cast<size_t>(length)));
  rest.remove_prefix(static_cast<size_t>(length));
  return true;
}

// `line` is the record's first line after the nonce, `rest` what follows that line.
std::optional<TracerRecord> read_record(std::string_view line, std::string_view& rest) {
  TracerRecord record;
  int64_t lengths[3] = {-1, -1, -1};
  if (line.size() < 3 || line[0] != ' ') return std::nullopt;
  record.kind = line[1];
  line.remove_prefix(2);
  for (int64_t* number :
       {&record.pid, &record.tid, &record.sequence, &record.numbers[0], &record.numbers[1],
        &record.numbers[2], &lengths[0], &lengths[1], &lengths[2]}) {
    if (!read_number(line, *number)) return std::nullopt;
  }
  std::string_view after = rest;
  for (int i = 0; i < 3; ++i) {
    if (!read_text(after, lengths[i], record.texts[i])) return std::nullopt;
  }
  if (after.starts_with('\n')) after.remove_prefix(1);
  rest = after;
  return record;
}

// "     12345:\ttext"
std::optional<LogEvent> read_line(std::string_view line) {
  LogEvent event;
  if (!read_number(line, event.pid) || !line.starts_with(":\t")) return std::nullopt;
  event.line = line.substr(2);
  return event;
}

}  // namespace

std::vector<LogEvent> read_log(std::string_view text, const std::string& nonce) {
  std::vector<LogEvent> events;
  bool in_line =
      false;  // the last event is a line of ld.so that may go on: names can hold newlines
  while (!text.empty()) {
    size_t length = text.find('\n');
    std::string_view line = text.substr(0, length);
    text.remove_prefix(length == text.npos ? text.size() : length + 1);
    if (line.empty()) continue;
    if (line.starts_with(nonce)) {
      in_line = false;
      auto record = read_record(line.substr(nonce.size()), text);
      if (!record) continue;
      LogEvent event;
      event.pid = record->pid;
      event.record = std::move(record);
      events.push_back(std::move(event));
    } else if (auto event = read_line(line)) {
      in_line = !event->line.empty();
      if (in_line) events.push_back(std::move(*event));
    } else if (in_line) {
      std::string_view& whole = events.back().line;
      whole = {&whole.front(), static_cast<size_t>(&line.back() + 1 - &whole.front())};
    }
  }
  return events;
}

}  // namespace cohabit
