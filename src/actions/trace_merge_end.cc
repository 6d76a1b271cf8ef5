// What a merged trace says in the end: the calls in their order, and what it cannot know.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>
#include <system_error>

#include "actions/trace_merge.h"

namespace cohabit {

TraceMerger TraceMerger::after_exec() const {
  TraceMerger next(with_loader_log_, program_name_);
  next.start_constructor_ = start_constructor_;
  return next;
}

TraceMerger TraceMerger::after_fork() const {
  TraceMerger child = *this;
  child.start_.forked = true;
  child.first_sequence_ = child.last_sequence_ = -1;
  child.records_ = 0;
  child.calls_before_fork_ = child.calls_.size();
  return child;
}

void TraceMerger::describe_blind_spots(Trace& trace) const {
  auto& spots = trace.blind_spots;
  if (!with_loader_log_) {
    spots.push_back(
        "LD_DEBUG or LD_DEBUG_OUTPUT was set, so ld.so's own log was left alone: calls that the "
        "tracer does not see (inside libc, from objects opened with RTLD_DEEPBIND, in other "
        "namespaces) are missing, and calls made by constructors stand behind the call that runs "
        "them at depth 0");
    return;
  }
  if (int64_t lost = last_sequence_ + 1 - first_sequence_ - records_; records_ > 0 && lost > 0) {
    spots.push_back(fmt::format("{} records of the tracer could not be written", lost));
  }
  if (log_ended_) {
    spots.push_back(
        "the program uses the descriptor of ld.so's log for a file of its own, so that log was "
        "ended: calls after it that the tracer does not see are missing");
  }
  if (log_closed_ > 0) {
    spots.push_back(fmt::format(
        "the program closed the descriptors of the log {} times: what ld.so said between that and "
        "the next call of the program, about calls inside libc, is missing",
        log_closed_));
  }
  if (!successor_.empty())
    spots.push_back(fmt::format(
        "the process then replaced itself by {} without the tracer (LD_PRELOAD was set anew): what "
        "that opens is not recorded",
        successor_));
  std::string gone;
  for (const std::string& path : mapped_) {
    // Others were named from a directory of that time, or by what only ld.so makes of them.
    if (!path.starts_with('/') || path.find('$') != path.npos) continue;
    if (std::error_code error; !std::filesystem::exists(path, error))
      gone += (gone.empty() ? "" : ", ") + path;
  }
  if (!gone.empty())
    spots.push_back("mapped by the program, and gone since, so that no simulation can open them: " +
                    gone);
  size_t inferred = 0, silent = 0, too_long = 0;
  std::string deep;
  for (const Call& c : calls_) {
    inferred += c.call.inferred;
    too_long += c.call.name && c.call.name->size() > kMaxTraceString;
    bool newline = c.call.name && c.call.name->find('\n') != std::string::npos;
    silent += !c.answered && c.call.kind == CallKind::kDlopen && !fails_early(c.call) && !newline;
    if (is_open(c.call.kind) && (c.call.flags & RTLD_DEEPBIND) && c.call.name) {
      deep += (deep.empty() ? "" : ", ") + *c.call.name;
    }
  }
  if (!deep.empty()) {
    spots.push_back(
        "objects opened with RTLD_DEEPBIND call libc's dlopen past the tracer, so what they open "
        "is "
        "inferred from ld.so's log: " +
        deep);
  }
  if (inferred > 0) {
    spots.push_back(fmt::format(
        "inferred from ld.so's log: {} call{}. Flags are those that had an effect, the caller is "
        "unknown where the object was loaded already, and calls like these that had no effect at "
        "all are missing",
        inferred, inferred == 1 ? "" : "s"));
  }
  if (too_long > 0) {
    spots.push_back(
        fmt::format("{} calls have names of more than {} bytes, which no path has: they "
                    "failed and are left out",
                    too_long, kMaxTraceString));
  }
  if (silent > 1) {
    spots.push_back(fmt::format(
        "ld.so's log says nothing about {} calls: the program may have closed it, or was ended in "
        "them; calls inside libc may be missing",
        silent));
  }
}

namespace {

// What had outlived its last dlclose goes with another one: written as a call of its own behind it.
LoaderCall release(const LoaderCall& by, const std::string& name, int64_t ns) {
  LoaderCall call;
  call.kind = CallKind::kDlclose;
  call.name = name;
  call.ns = ns;
  call.depth = by.depth;
  call.constructor = by.constructor;
  call.during_start = by.during_start;
  call.inferred = true;
  call.unmapped = true;
  return call;
}

}  // namespace

Trace TraceMerger::finish() const {
  Trace trace;
  trace.start = start_;
  std::vector<size_t> order(calls_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto position = [&](size_t i) { return calls_[i].placed ? calls_[i].position : now_; };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return position(a) < position(b); });
  std::string cwd = start_.cwd;
  int deepest = 0;
  std::vector<const Frame*> running(calls_.size());
  std::set<std::pair<std::string, int64_t>> outliving;  // closed for the last time, and still there
  for (const Frame& frame : frames_) running[frame.call] = &frame;
  for (size_t i : order) {
    LoaderCall call = calls_[i].call;
    if (call.name && call.name->size() > kMaxTraceString) continue;
    if (running[i]) settle(*running[i], call);
    const bool told = with_loader_log_ && log_closed_ == 0 && !call.inferred && call.name;
    if (call.kind == CallKind::kDlclose && told && !calls_[i].still_open)
      call.unmapped = calls_[i].unmapped;
    if (call.cwd == cwd) {
      call.cwd.clear();
    } else if (!call.cwd.empty()) {
      cwd = call.cwd;
    }
    call.depth = std::min({call.depth, deepest, kMaxCallDepth});
    deepest = call.depth + 1;
    if (call.kind == CallKind::kDlclose && call.name) {
      const std::pair object(*call.name, call.ns);
      outliving.erase(object);
      if (call.unmapped == false) outliving.insert(object);
    }
    trace.calls.push_back(std::move(call));
    for (const auto& [name, ns] : calls_[i].others)
      if (outliving.erase({name, ns}) > 0)
        trace.calls.push_back(release(trace.calls.back(), name, ns));
  }
  describe_blind_spots(trace);
  return trace;
}

}  // namespace cohabit
