// The words of the log: ld.so's lines and the tracer's records, handed to what they mean.
#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "actions/trace_merge.h"

namespace cohabit {
namespace {

struct NamedObject {
  std::string_view name;
  int64_t ns = 0;
};

// "NAME [NS]"
NamedObject read_object(std::string_view text) {
  NamedObject object{text, 0};
  size_t open = text.rfind(" [");
  if (open == text.npos || !text.ends_with(']')) return object;
  std::string_view number = text.substr(open + 2, text.size() - open - 3);
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), object.ns);
  if (error == std::errc() && end == number.data() + number.size()) {
    object.name = text.substr(0, open);
  }
  return object;
}

// The parts before and after a separator, from the last one on: names come first and may hold it.
bool split(std::string_view text, std::string_view separator, std::string_view& before,
           std::string_view& after) {
  size_t at = text.rfind(separator);
  if (at == text.npos) return false;
  before = text.substr(0, at);
  after = text.substr(at + separator.size());
  return true;
}

bool strip(std::string_view& text, std::string_view prefix, std::string_view suffix = "") {
  if (text.size() < prefix.size() + suffix.size()) return false;
  if (!text.starts_with(prefix) || !text.ends_with(suffix)) return false;
  text.remove_prefix(prefix.size());
  text.remove_suffix(suffix.size());
  return true;
}

}  // namespace

void TraceMerger::add(const LogEvent& event) {
  ++now_;
  if (event.record) {
    add_record(*event.record);
  } else {
    add_line(event.line);
  }
}

void TraceMerger::add_record(const TracerRecord& record) {
  if (first_sequence_ < 0) first_sequence_ = record.sequence;
  last_sequence_ = std::max(last_sequence_, record.sequence);
  ++records_;
  std::string text = record.texts[0].value_or("");
  switch (record.kind) {
    case 'S':
      saw_start_ = true;
      start_.pid = record.pid;
      start_.secure = record.numbers[0] != 0;
      start_.parent_pid = record.numbers[1];
      start_.program = text;
      start_.executable = record.texts[1].value_or("");
      start_.cwd = record.texts[2].value_or("");
      break;
    case 'P':
      start_.platform = text;
      start_.glibc = record.texts[1].value_or("");
      start_.tracer = record.texts[2].value_or("");
      break;
    case 'E':
      if (size_t equals = text.find('='); equals != text.npos) {
        start_.environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
      }
      break;
    case 'L':
      start_.loader_command.push_back(text);
      break;
    case 'A':
      start_.arguments.push_back(text);
      if (!with_loader_log_) starting_ = false;  // the tracer is constructed last but for one
      if (record.numbers[0] == 0) program_name_ = text;
      break;
    case 'F':
      start_.pid = record.pid;
      start_.parent_pid = record.numbers[0];
      break;
    case 'R':
      ++log_closed_;
      log_ended_ |= record.numbers[0] != 0;
      break;
    case 'O':
    case 'M':
    case 'C':
      add_call(record);
      break;
    default:
      break;
  }
}

void TraceMerger::add_line(std::string_view line) {
  if (line.starts_with("initialize program: ") || line.starts_with("transferring control: ")) {
    starting_ = false;
    if (strip(line, "initialize program: ")) initialized_ = std::string(line);
  } else if (!add_file_line(line) && !add_code_line(line)) {
    add_flag_line(line);
  }
}

bool TraceMerger::add_file_line(std::string_view line) {
  std::string_view file, by;
  if (strip(line, "opening file=")) {
    if (split(line, "; direct_opencount=", file, by)) {
      auto object = read_object(file);
      namespaces_.insert(object.ns);
      opened(plain(object.name));
    }
  } else if (strip(line, "closing file=")) {
    if (split(line, "; direct_opencount=", file, by)) closing(plain(file));
  } else if (strip(line, "file=", ";  generating link map")) {
    auto object = read_object(line);
    mapping(std::string(object.name), object.ns);
  } else if (strip(line, "file=", ";  destroying link map")) {
    const NamedObject object = read_object(line);
    unmapping(plain(object.name), object.ns);
  } else if (strip(line, "file=")) {
    if (split(line, ";  dynamically loaded by ", file, by)) {
      auto caller = read_object(by);
      const auto object = read_object(file);
      loading(std::string(object.name), object.ns, plain(caller.name), caller.ns);
    } else if (split(line, ";  needed by ", file, by) &&
               !by.ends_with(" (relocation dependency)")) {
      announced_ = std::string(read_object(file).name);
    }
  } else {
    return false;
  }
  return true;
}

bool TraceMerger::add_code_line(std::string_view line) {
  if (strip(line, "calling init: ")) {
    constructing(plain(line));
  } else if (strip(line, "calling fini: ")) {
    auto object = read_object(line);
    destructing(plain(object.name), object.ns);
  } else {
    return false;
  }
  return true;
}

// What the flags of a call that the tracer did not see have done.
void TraceMerger::add_flag_line(std::string_view line) {
  size_t running = inferred_in_progress();
  size_t index = running != kNone ? running : reopened_;
  if (index == kNone) return;
  LoaderCall& call = calls_[index].call;
  bool before_code = running != kNone && !frames_.back().in_code;
  std::string_view rest = line;
  if (before_code && strip(rest, "relocation processing: ")) {
    call.flags =
        (call.flags & ~RTLD_BINDING_MASK) | (rest.ends_with(" (lazy)") ? RTLD_LAZY : RTLD_NOW);
  } else if (strip(rest, "add ", " to global scope")) {
    call.flags |= RTLD_GLOBAL;
  } else if (strip(rest, "marking ", " as NODELETE") || strip(rest, "activating NODELETE for ")) {
    if (TraceMerger::names_fit(call.name, std::string(read_object(rest).name)))
      call.flags |= RTLD_NODELETE;
  } else if (before_code && strip(rest, "object=") && frames_.back().scope_of.empty()) {
    frames_.back().scope_of = std::string(read_object(rest).name);
  } else if (before_code && strip(rest, " scope 0: ")) {
    // The object's own list comes before the global one; or, with DT_SYMBOLIC, it alone.
    const std::string& self = frames_.back().scope_of;
    bool first = !self.empty() &&
                 (rest.starts_with(self + " ") || (rest == self && !read_file(self).symbolic));
    if (first && call.kind == CallKind::kDlopen) call.flags |= RTLD_DEEPBIND;
  }
}

}  // namespace cohabit
