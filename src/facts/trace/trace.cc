// The trace file: JSON lines, one object each (docs/design/trace.md).
//
// A trace may come from a stranger, so the reader is strict about types and ranges and has a limit
// for every count; it skips fields that it does not know, so that newer traces stay readable.
// Names are bytes: what is not UTF-8 is written as {"hex":"..."}.
#include "facts/trace/trace.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json_text.h"
#include "base/read_file.h"
#include "base/secrets.h"

namespace cohabit {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr int kMaxNesting = 16;  // of brackets in one line

// --- writing ---

Json json_environment(const StartFacts& start) {
  Json array = Json::array();
  for (const auto& [name, value] : start.environment) {
    array.push_back(Json::array({json_of(name), json_of(value)}));
  }
  return array;
}

Json json_start(const StartFacts& start) {
  Json json{{"cohabit_trace", kFormat},
            {"program", json_of(start.program)},
            {"executable", json_of(start.executable)},
            {"arguments", json_of(without_secret_arguments(start.arguments))},
            {"cwd", json_of(start.cwd)},
            {"environment", json_environment(start)},
            {"hwcaps", json_of(start.hwcaps)},
            {"platform", json_of(start.platform)},
            {"glibc", json_of(start.glibc)},
            {"machine", json_of(start.machine)},
            {"secure", start.secure},
            {"tracer", json_of(start.tracer)},
            {"pid", start.pid},
            {"parent_pid", start.parent_pid},
            {"forked", start.forked}};
  if (!start.loader_command.empty()) json["loader_command"] = json_of(start.loader_command);
  return json;
}

const char* kind_name(CallKind kind) {
  switch (kind) {
    case CallKind::kDlopen:
      return "dlopen";
    case CallKind::kDlmopen:
      return "dlmopen";
    case CallKind::kDlclose:
      return "dlclose";
    case CallKind::kBind:
      return "bind";
  }
  return "";
}

// Fields at their default are left out, so that a line stays readable.
Json json_call(const LoaderCall& call) {
  Json json{{"call", kind_name(call.kind)}};
  json["name"] = call.name ? json_of(*call.name) : Json();
  if (call.kind != CallKind::kDlclose) json["flags"] = call.flags;
  if (call.kind == CallKind::kDlmopen) json["link_map_id"] = call.link_map_id;
  if (call.ns != 0) json["ns"] = call.ns;
  if (call.unmapped) json["unmapped"] = *call.unmapped;
  json["caller"] = json_of(call.caller);
  if (call.caller_ns != 0) json["caller_ns"] = call.caller_ns;
  if (!call.cwd.empty()) json["cwd"] = json_of(call.cwd);
  if (call.depth != 0) json["depth"] = call.depth;
  if (!call.constructor.empty()) json["constructor"] = json_of(call.constructor);
  if (call.during_start) json["during_start"] = true;
  if (call.inferred) json["inferred"] = true;
  return json;
}

Json json_end(const Trace& trace) {
  Json status = trace.exit_status ? Json(*trace.exit_status) : Json();
  return Json{{"end", {{"exit_status", status}}}, {"blind_spots", json_of(trace.blind_spots)}};
}

void append_line(std::string& text, const Json& json) {
  text += json.dump(-1, ' ', false, Json::error_handler_t::replace);
  text += '\n';
}

// --- reading ---

// Reads the fields of one line; the first thing wrong is kept, and makes every later read a no-op,
// so that the readers below are plain lists of fields.
class Fields {
 public:
  Fields(const Json& object, size_t line) : object_(object), line_(line) {}

  bool good() const { return error_.empty(); }
  tl::unexpected<Error> error() const {
    return fail(fmt::format("trace file, line {}: {}", line_, error_));
  }
  void wrong(std::string what) {
    if (good()) error_ = std::move(what);
  }

  void string(const char* key, std::string& out, bool required = false) {
    if (const Json* value = find(key, required)) out = as_string(*value, key);
  }
  void optional_string(const char* key, std::optional<std::string>& out) {
    const Json* value = find(key, true);
    if (value && !value->is_null()) out = as_string(*value, key);
  }
  void boolean(const char* key, bool& out) {
    const Json* value = find(key, false);
    if (!value) return;
    if (!value->is_boolean()) return wrong(fmt::format("\"{}\" is not true or false", key));
    out = value->get<bool>();
  }
  template <class T>
  void integer(const char* key, T& out, int64_t low = std::numeric_limits<T>::min(),
               int64_t high = std::numeric_limits<T>::max(), bool required = false) {
    const Json* value = find(key, required);
    if (!value) return;
    if (!value->is_number_integer()) return wrong(fmt::format("\"{}\" is not an integer", key));
    bool huge = value->is_number_unsigned() &&
                value->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()};
    if (huge || value->get<int64_t>() < low || value->get<int64_t>() > high) {
      return wrong(fmt::format("\"{}\" is not between {} and {}", key, low, high));
    }
    out = static_cast<T>(value->get<int64_t>());
  }
  void strings(const char* key, std::vector<std::string>& out) {
    const Json* value = array(key);
    if (!value) return;
    for (const Json& item : *value) out.push_back(as_string(item, key));
  }
  void pairs(const char* key, std::vector<std::pair<std::string, std::string>>& out) {
    const Json* value = array(key);
    if (!value) return;
    for (const Json& item : *value) {
      if (!item.is_array() || item.size() != 2) {
        return wrong(fmt::format("\"{}\" holds something other than [name, value]", key));
      }
      out.emplace_back(as_string(item[0], key), as_string(item[1], key));
    }
  }
  const Json* find(const char* key, bool required) {
    if (!good()) return nullptr;
    auto it = object_.find(key);
    if (it != object_.end()) return &*it;
    if (required) wrong(fmt::format("\"{}\" is missing", key));
    return nullptr;
  }

 private:
  const Json* array(const char* key) {
    const Json* value = find(key, false);
    if (!value) return nullptr;
    if (value->is_array() && value->size() <= kMaxTraceItems) return value;
    wrong(fmt::format("\"{}\" is not an array of at most {} items", key, kMaxTraceItems));
    return nullptr;
  }
  std::string as_string(const Json& value, const char* key) {
    const std::optional<std::string> text = bytes_of(value);
    if (!text) {
      wrong(fmt::format("\"{}\" is not a string or {{\"hex\": digits}}", key));
    } else if (text->size() > kMaxTraceString) {
      wrong(fmt::format("\"{}\" is longer than {} bytes", key, kMaxTraceString));
    } else if (text->find('\0') != std::string::npos) {
      wrong(fmt::format("\"{}\" holds a NUL byte", key));
    }
    return good() ? *text : std::string();
  }

  const Json& object_;
  size_t line_;
  std::string error_;
};

// Deep nesting is refused before the JSON library sees it.
bool nests_too_deep(std::string_view line) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      if (++depth > kMaxNesting) return true;
    } else if (!quoted && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return false;
}

Result<Json> parse_line(std::string_view line, size_t number) {
  auto refuse = [&](const char* why) {
    return fail(fmt::format("trace file, line {}: {}", number, why));
  };
  if (line.size() > kMaxTraceLine) return refuse("the line is too long");
  if (nests_too_deep(line)) return refuse("brackets are nested too deep");
  Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded()) return refuse("not JSON (is the file cut off here?)");
  if (!json.is_object()) return refuse("not a JSON object");
  return json;
}

Result<StartFacts> parse_start(const Json& json, size_t line) {
  StartFacts start;
  int format = 0;
  Fields fields(json, line);
  if (!json.contains("cohabit_trace")) {
    return fail(fmt::format(
        "trace file, line {}: no \"cohabit_trace\"; is this a file made by `cohabit trace`?",
        line));
  }
  fields.integer("cohabit_trace", format);
  if (format != kFormat) fields.wrong(fmt::format("format {} is not known here", format));
  fields.string("program", start.program, true);
  fields.string("executable", start.executable);
  fields.strings("arguments", start.arguments);
  fields.string("cwd", start.cwd);
  fields.pairs("environment", start.environment);
  fields.strings("hwcaps", start.hwcaps);
  fields.string("platform", start.platform);
  fields.string("glibc", start.glibc);
  fields.string("machine", start.machine);
  fields.boolean("secure", start.secure);
  fields.string("tracer", start.tracer);
  fields.integer("pid", start.pid, 0);
  fields.integer("parent_pid", start.parent_pid, 0);
  fields.boolean("forked", start.forked);
  fields.strings("loader_command", start.loader_command);
  if (!fields.good()) return fields.error();
  return start;
}

std::optional<CallKind> parse_kind(const std::string& name) {
  for (CallKind kind :
       {CallKind::kDlopen, CallKind::kDlmopen, CallKind::kDlclose, CallKind::kBind}) {
    if (name == kind_name(kind)) return kind;
  }
  return std::nullopt;
}

Result<LoaderCall> parse_call(const Json& json, size_t line, int deepest) {
  LoaderCall call;
  std::string kind;
  Fields fields(json, line);
  fields.string("call", kind, true);
  auto known = parse_kind(kind);
  if (!known) fields.wrong("\"call\" is none of dlopen, dlmopen, dlclose, bind");
  call.kind = known.value_or(CallKind::kDlopen);
  fields.optional_string("name", call.name);
  fields.integer("flags", call.flags, std::numeric_limits<int>::min(),
                 std::numeric_limits<int>::max(), call.kind != CallKind::kDlclose);
  fields.integer("link_map_id", call.link_map_id);
  fields.integer("ns", call.ns, 0);
  if (json.contains("unmapped")) fields.boolean("unmapped", call.unmapped.emplace());
  fields.string("caller", call.caller);
  fields.integer("caller_ns", call.caller_ns, 0);
  fields.string("cwd", call.cwd);
  fields.integer("depth", call.depth, 0, kMaxCallDepth);
  if (call.depth > deepest) fields.wrong("\"depth\" has no call that it could be inside of");
  fields.string("constructor", call.constructor);
  fields.boolean("during_start", call.during_start);
  fields.boolean("inferred", call.inferred);
  if (!fields.good()) return fields.error();
  return call;
}

Result<bool> parse_end(const Json& json, size_t line, Trace& trace) {
  Fields fields(json, line);
  fields.strings("blind_spots", trace.blind_spots);
  const Json* end = fields.find("end", true);
  if (end && !end->is_object()) fields.wrong("\"end\" is not an object");
  if (!fields.good()) return fields.error();
  Fields inner(*end, line);
  auto status = end->find("exit_status");
  if (status != end->end() && !status->is_null()) {
    inner.integer("exit_status", trace.exit_status.emplace(), 0, 0xffff);
  }
  if (!inner.good()) return inner.error();
  return true;
}

// One line after the first: a call, the end, or something from a newer version (skipped).
Result<bool> parse_record(const Json& json, size_t line, Trace& trace) {
  if (json.contains("call")) {
    if (trace.calls.size() >= kMaxTraceCalls) {
      return fail(fmt::format("trace file, line {}: more than {} calls", line, kMaxTraceCalls));
    }
    int deepest = trace.calls.empty() ? 0 : trace.calls.back().depth + 1;
    auto call = parse_call(json, line, deepest);
    if (!call) return tl::unexpected(call.error());
    trace.calls.push_back(std::move(*call));
  } else if (json.contains("end")) {
    return parse_end(json, line, trace);
  }
  return true;
}

}  // namespace

Result<Trace> parse_trace(const std::string& text) {
  Trace trace;
  bool started = false;
  std::string_view rest = text;
  for (size_t number = 1; !rest.empty(); ++number) {
    size_t length = rest.find('\n');
    std::string_view line = rest.substr(0, length);
    rest.remove_prefix(length == rest.npos ? rest.size() : length + 1);
    if (line.empty()) continue;
    auto json = parse_line(line, number);
    if (!json) return tl::unexpected(json.error());
    if (!started) {
      auto start = parse_start(*json, number);
      if (!start) return tl::unexpected(start.error());
      trace.start = std::move(*start);
      started = true;
    } else if (auto done = parse_record(*json, number, trace); !done) {
      return tl::unexpected(done.error());
    }
  }
  if (!started) return fail("trace file: empty");
  return trace;
}

std::string format_trace(const Trace& trace) {
  std::string text;
  append_line(text, json_start(trace.start));
  for (const auto& call : trace.calls) append_line(text, json_call(call));
  append_line(text, json_end(trace));
  return text;
}

Result<Trace> read_trace_file(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return tl::unexpected<Error>(text.error());
  auto trace = parse_trace(*text);
  if (!trace) return fail(path + ": " + trace.error().message);
  return trace;
}

}  // namespace cohabit
