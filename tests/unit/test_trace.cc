#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>

#include "actions/trace_log.h"
#include "actions/trace_merge.h"
#include "actions/trace_program.h"
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

// --- from the raw log to the calls ---

// Writes a log as ld.so (line) and the tracer (call) do.
class Log {
 public:
  Log& line(const std::string& text) {
    text_ += "       7:\t" + text + "\n       7:\t\n";
    return *this;
  }
  Log& call(char kind, const std::string& name, int flags, const std::string& caller = "",
            int tid = 7) {
    text_ += fmt::format("\n#n {} 7 {} {} {} 0 0 {} {} 1\n{}{}/\n", kind, tid, sequence_++, flags,
                         name.size(), caller.size(), name, caller);
    return *this;
  }
  Log& loading(const std::string& name, const std::string& by = "prog") {
    return line("file=" + name + " [0];  dynamically loaded by " + by + " [0]");
  }
  Log& mapping(const std::string& name) {
    return line("file=" + name + " [0];  generating link map");
  }
  Log& init(const std::string& name) { return line("calling init: " + name); }
  Log& opened(const std::string& name) {
    return line("opening file=" + name + " [0]; direct_opencount=1");
  }
  Log& started() { return line("transferring control: prog"); }
  std::string flags() const {
    std::string all;
    for (const auto& c : merged()) all += fmt::format("{}{:x}", all.empty() ? "" : " ", c.flags);
    return all;
  }
  // Every call as "depth name", with "?" when inferred.
  std::string calls() const {
    std::string all;
    for (const auto& c : merged()) {
      all += fmt::format("{}{} {}{}", all.empty() ? "" : ", ", c.depth, c.name.value_or("-"),
                         c.inferred ? "?" : "");
    }
    return all;
  }

 private:
  std::vector<LoaderCall> merged() const {
    TraceMerger merger(true, "prog");
    for (const auto& event : read_log(text_, "#n")) merger.add(event);
    return merger.finish().calls;
  }
  std::string text_;
  int sequence_ = 0;
};

TEST_CASE("a dlopen that fails ends where the next one begins") {
  Log log;
  log.started().call('O', "a", 2).loading("a").call('O', "b", 2).loading("b");
  log.mapping("b").init("/b").opened("/b").call('O', "c", 2).opened("/c.1");
  CHECK(log.calls() == "0 a, 0 b, 0 c");
}

TEST_CASE("a failed inner dlopen leaves the outer one's constructors to it") {
  Log log;
  log.started().call('O', "out", 2).loading("out").mapping("out").init("/dep");
  log.call('O', "gone", 5, "/dep").loading("gone", "/dep").init("/out").opened("/out");
  log.call('O', "next", 2).opened("/next");
  CHECK(log.calls() == "0 out, 1 gone, 0 next");
}

TEST_CASE("an inner dlopen that fails after mapping") {
  Log log;
  log.started().call('O', "out", 2).loading("out").mapping("out").init("/dep");
  log.call('O', "bad", 2, "/dep").loading("bad", "/dep").mapping("bad");
  log.line("file=bad [0];  destroying link map").init("/out").opened("/out");
  log.call('O', "next", 2).opened("/next");
  CHECK(log.calls() == "0 out, 1 bad, 0 next");
}

TEST_CASE("an open of what is loaded but not constructed runs its constructor first") {
  Log log;
  log.started().call('O', "out", 2).loading("out").mapping("out").init("/first");
  log.call('O', "/dep", 2, "/first").init("/dep").call('O', "x", 2, "/dep").opened("/x");
  log.opened("/dep").init("/out").opened("/out").call('O', "next", 2).opened("/next");
  CHECK(log.calls() == "0 out, 1 /dep, 2 x, 0 next");
}

TEST_CASE("calls that only ld.so has seen") {
  Log log;
  log.started().loading("nss.so", "/libc.so.6").mapping("nss.so").init("/nss.so").opened("/nss.so");
  log.call('O', "a", 2).loading("a").mapping("a").init("/a").opened("/gcc").opened("/a");
  log.line("closing file=/nss.so; direct_opencount=1").call('O', "b", 2).opened("/b");
  CHECK(log.calls() == "0 nss.so?, 0 a, 1 /gcc?, 0 /nss.so?, 0 b");
}

TEST_CASE("another thread's call waits for the lock") {
  Log log;
  log.started().call('O', "a", 2).loading("a").mapping("a").init("/a");
  log.call('O', "b", 2, "", 8).call('O', "in", 2, "/a").opened("/in").opened("/a");
  log.loading("b").mapping("b").init("/b").opened("/b");
  CHECK(log.calls() == "0 a, 1 in, 0 b");
}

TEST_CASE("of two threads that ask for the same, the one that goes on was answered") {
  Log loaded;
  loaded.started().call('O', "a", 2).call('O', "a", 0x102, "", 8).opened("/a");
  loaded.call('O', "b", 2, "", 8).opened("/b").opened("/a").call('O', "c", 2).opened("/c");
  CHECK(loaded.calls() == "0 a, 0 b, 0 a, 0 c");
  CHECK(loaded.flags() == "102 2 2 2");
  Log failing;
  failing.started().call('O', "gone", 2).call('O', "gone", 2, "", 8).loading("gone");
  failing.call('O', "b", 2, "", 8).opened("/b").loading("gone").call('O', "c", 2).opened("/c");
  CHECK(failing.calls() == "0 gone, 0 b, 0 gone, 0 c");
  Log others;  // a dlmopen that fails leaves no line, and has nothing to do with what follows
  others.started().call('M', "/gone/libx", 2, "", 8).call('O', "a", 2).opened("/a");
  others.call('O', "/b/libx", 2, "", 9).loading("/b/libx").mapping("/b/libx").opened("/b/libx");
  others.call('O', "c", 2, "", 8).opened("/c");
  CHECK(others.calls() == "0 /gone/libx, 0 a, 0 /b/libx, 0 c");
}

TEST_CASE("what destructors open is inside the dlclose; at exit it is not") {
  Log log;
  log.started().call('C', "/a", 0).line("calling fini: /a [0]").call('O', "x", 2, "/a");
  log.opened("/x").line("file=/a [0];  destroying link map").call('O', "b", 2).opened("/b");
  log.line("calling fini: prog [0]").line("calling fini: /b [0]").call('O', "y", 2, "/b");
  log.opened("/y");
  CHECK(log.calls() == "0 /a, 1 x, 0 b, 0 y");
}

TEST_CASE("names in the log may hold newlines and ld.so's own words") {
  std::string odd = "a\nb [0];  dynamically loaded by c [0]";
  Log log;
  log.started().call('O', odd, 2).loading(odd).mapping(odd).init("/" + odd).opened("/" + odd);
  log.call('O', "b", 2).opened("/b");
  CHECK(log.calls() == "0 " + odd + ", 0 b");
}

TEST_CASE("the kernel's reading of a #! line") {
  auto words = [](const std::string& line) {
    char path[] = "/tmp/cohabit-script-XXXXXX";
    int fd = ::mkstemp(path);
    REQUIRE(::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
    ::close(fd);
    auto result = script_interpreter(path);
    ::unlink(path);
    return fmt::format("{}", fmt::join(result, "|"));
  };
  CHECK(words("#!/bin/sh\n") == "/bin/sh");
  CHECK(words("#! /usr/bin/env  python3 -P \nx") == "/usr/bin/env|python3 -P");
  CHECK(words("#!/bin/sh") == "/bin/sh");
  CHECK(words("#!\n") == "");
  CHECK(words("#!   \n") == "");
  CHECK(words("# no\n") == "");
  CHECK(words("") == "");
}

}  // namespace
}  // namespace cohabit
