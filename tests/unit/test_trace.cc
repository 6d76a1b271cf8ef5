#include <doctest/doctest.h>

#include "facts/trace/trace.h"

namespace cohabit {
namespace {

Trace example() {
  Trace trace;
  trace.start.program = "/env/bin/python";
  trace.start.executable = "/usr/bin/python3.11";
  trace.start.arguments = {"python", "-c", "import \"x\"\n", ""};
  trace.start.cwd = "/tmp/\xff\xfe";
  trace.start.environment = {{"LD_LIBRARY_PATH", "/a::/b"}, {"LD_BIND_NOW", ""}};
  trace.start.hwcaps = {"x86-64-v3", "x86-64-v2"};
  trace.start.platform = "haswell";
  trace.start.glibc = "2.36";
  trace.start.machine = "x86_64";
  trace.start.secure = true;
  trace.start.tracer = "/lib/tracer.so";
  trace.start.pid = 12;
  trace.start.parent_pid = 11;
  trace.start.forked = true;
  LoaderCall open;
  open.name = "libx \n\x01\x80.so";
  open.flags = 0x102;
  open.caller = "/env/caller.so";
  open.cwd = "/tmp";
  LoaderCall inner;
  inner.kind = CallKind::kDlmopen;
  inner.link_map_id = -1;
  inner.caller_ns = 2;
  inner.depth = 1;
  inner.constructor = "/env/libx.so";
  inner.flags = -2147483647;
  LoaderCall close;
  close.kind = CallKind::kDlclose;
  close.name = "";
  close.ns = 3;
  close.during_start = close.inferred = true;
  trace.calls = {open, inner, close};
  trace.blind_spots = {"one", "\xc3\xa9"};
  trace.exit_status = 139;
  return trace;
}

std::string message(const std::string& text) {
  auto trace = parse_trace(text);
  return trace ? "" : trace.error().message;
}

const std::string kStart = "{\"cohabit_trace\":1,\"program\":\"/p\"}\n";

TEST_CASE("a trace survives writing and reading") {
  std::string text = format_trace(example());
  auto trace = parse_trace(text);
  REQUIRE(trace);
  CHECK(format_trace(*trace) == text);
  CHECK(trace->start.arguments == example().start.arguments);
  CHECK(trace->start.cwd == "/tmp/\xff\xfe");
  CHECK(trace->start.environment == example().start.environment);
  REQUIRE(trace->calls.size() == 3);
  CHECK(trace->calls[0].name == "libx \n\x01\x80.so");
  CHECK(!trace->calls[1].name);
  CHECK(trace->calls[1].flags == -2147483647);
  CHECK(trace->calls[1].link_map_id == -1);
  CHECK(trace->calls[2].name == "");
  CHECK(trace->calls[2].inferred);
  CHECK(trace->blind_spots == example().blind_spots);
  CHECK(trace->exit_status == 139);
}

TEST_CASE("what is not UTF-8 is written in hexadecimal") {
  for (std::string bad :
       {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "a\x80"}) {
    Trace trace;
    trace.start.program = bad;
    std::string text = format_trace(trace);
    CHECK(text.find("\"hex\"") != std::string::npos);
    auto back = parse_trace(text);
    REQUIRE(back);
    CHECK(back->start.program == bad);
  }
}

TEST_CASE("a trace without its end, as after kill -9 of cohabit, is read") {
  auto trace = parse_trace(kStart + "{\"call\":\"dlopen\",\"name\":\"a\",\"flags\":2}");
  REQUIRE(trace);
  CHECK(trace->calls.size() == 1);
  CHECK(!trace->exit_status);
}

TEST_CASE("unknown fields and records are skipped") {
  auto trace =
      parse_trace(kStart + "{\"call\":\"dlopen\",\"name\":null,\"flags\":1,\"new\":[{}]}\n" +
                  "{\"weather\":\"fine\"}\n{\"end\":{\"exit_status\":null},\"more\":1}\n");
  REQUIRE(trace);
  CHECK(trace->calls.size() == 1);
}

TEST_CASE("what is wrong is named with its line") {
  CHECK(message("") == "trace file: empty");
  CHECK(message("{}\n").find("line 1: no \"cohabit_trace\"") != std::string::npos);
  CHECK(message("{\"cohabit_trace\":2,\"program\":\"\"}").find("format 2") != std::string::npos);
  CHECK(message(kStart + "\n{\"call\":").find("line 3: not JSON") != std::string::npos);
  CHECK(message(kStart + "7\n").find("line 2: not a JSON object") != std::string::npos);
  auto call = [](const std::string& fields) {
    return message(kStart + "{\"call\":" + fields + "}");
  };
  CHECK(call("\"dlsym\"").find("none of") != std::string::npos);
  CHECK(call("\"dlopen\",\"flags\":1").find("\"name\" is missing") != std::string::npos);
  CHECK(call("\"dlopen\",\"name\":\"a\"").find("\"flags\" is missing") != std::string::npos);
  CHECK(call("\"dlopen\",\"name\":7,\"flags\":1").find("\"name\" is not a string") !=
        std::string::npos);
  CHECK(call("\"dlopen\",\"name\":{\"hex\":\"0g\"},\"flags\":1").find("hex") != std::string::npos);
  CHECK(call("\"dlopen\",\"name\":\"a\\u0000b\",\"flags\":1").find("NUL") != std::string::npos);
  for (const char* flags : {"1.5", "\"1\"", "4294967296", "18446744073709551615", "true"}) {
    CHECK(call(std::string("\"dlopen\",\"name\":\"a\",\"flags\":") + flags) != "");
  }
  CHECK(call("\"dlopen\",\"name\":\"a\",\"flags\":1,\"depth\":1").find("depth") !=
        std::string::npos);
  CHECK(call("\"dlopen\",\"name\":\"a\",\"flags\":1,\"depth\":-1").find("depth") !=
        std::string::npos);
  CHECK(message(kStart + std::string(100000, '[')).find("too deep") != std::string::npos);
  std::string longest(kMaxTraceString + 1, 'a');
  CHECK(call("\"dlopen\",\"name\":\"" + longest + "\",\"flags\":1").find("longer") !=
        std::string::npos);
}

TEST_CASE("no prefix and no changed byte of a trace crashes the reader") {
  std::string text = format_trace(example());
  for (size_t i = 0; i <= text.size(); ++i) (void)parse_trace(text.substr(0, i));
  for (size_t i = 0; i < text.size(); ++i) {
    for (char c : {'\0', '"', '{', ']', '9', '\xff'}) {
      std::string changed = text;
      changed[i] = c;
      (void)parse_trace(changed);
    }
  }
}

}  // namespace
}  // namespace cohabit
