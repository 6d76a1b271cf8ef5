#include "actions/trace_merge.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/tree.h"
#include "facts/elf/object.h"

namespace cohabit {
namespace {

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

bool TraceMerger::is_open(CallKind kind) {
  return kind == CallKind::kDlopen || kind == CallKind::kDlmopen;
}

// Calls with these arguments fail before ld.so writes a line (dlfcn/dlopen.c, dlfcn/dlmopen.c,
// _dl_open).
bool TraceMerger::fails_early(const LoaderCall& call) {
  constexpr int kKnown =
      RTLD_BINDING_MASK | RTLD_NOLOAD | RTLD_DEEPBIND | RTLD_GLOBAL | RTLD_NODELETE;
  if (!is_open(call.kind)) return false;
  if ((call.flags & RTLD_BINDING_MASK) == 0 || (call.flags & ~kKnown) != 0) return true;
  return call.kind == CallKind::kDlmopen && call.link_map_id != LM_ID_BASE &&
         (!call.name || (call.flags & RTLD_GLOBAL));
}

// --- what the events mean ---

std::string TraceMerger::absolute(const std::string& path) const {
  return path.starts_with('/') ? path : start_.cwd + "/" + path;
}

TraceMerger::File TraceMerger::read_file(const std::string& l_name) const {
  const auto file = Tree().map(absolute(l_name));
  if (!file) return {"", true, false, true};
  const elf::Object object = elf::parse(file->bytes());
  return {std::string(object.soname.value_or("")), object.has_constructor, object.symbolic, false};
}

// Could ld.so have found the loaded object under a name that it did not know it by? By a link,
// then.
bool TraceMerger::may_be_same(const LoaderCall& call, const std::string& loaded) const {
  if (names_fit(call.name, loaded)) return true;
  if (!call.name) return false;
  const std::string asked(base_name(*call.name)), file(base_name(loaded));
  const auto stem = [](const std::string& name) { return name.substr(0, name.find(".so")); };
  const File there = read_file(loaded);
  if (stem(asked) == stem(file) || *call.name == there.soname || there.is_gone) return true;
  const bool bare = call.name->find('/') == std::string::npos;
  const std::string beside = loaded.substr(0, loaded.size() - file.size()) + asked;
  std::error_code ignored;
  return std::filesystem::equivalent(absolute(bare ? beside : *call.name), absolute(loaded),
                                     ignored);
}

bool TraceMerger::names_fit(const std::optional<std::string>& asked, const std::string& loaded) {
  if (!asked) return loaded.empty();
  return *asked == loaded || base_name(*asked) == base_name(loaded);
}

// Of calls that are alike, of two threads, ld.so's log does not say whose it has answered.
bool TraceMerger::may_be_answered_for(const Call& waiting, const Call& answered) const {
  // A dlmopen may fail without a line of the log: one that waits need not have been answered.
  return answered.answered && !answered.call.inferred && answered.position > waiting.recorded &&
         answered.call.kind == waiting.call.kind && answered.call.kind != CallKind::kDlmopen &&
         answered.call.name == waiting.call.name &&
         (!answered.told_caller || answered.call.caller == waiting.call.caller);
}

// The thread makes its next call: what waits of it has ended, without a constructor that could have
// called us. Either it has failed, or what was taken for another thread's answer was its own: the
// two change places.
void TraceMerger::end_calls_of(int64_t tid) {
  for (const size_t call : waiting_) {
    if (calls_[call].tid != tid) continue;
    for (auto& [other_thread, other] : last_of_) {
      if (other_thread == tid || !may_be_answered_for(calls_[call], calls_[other])) continue;
      Call &waiting = calls_[call], &answered = calls_[other];
      std::swap(waiting.tid, answered.tid);
      std::swap(waiting.recorded, answered.recorded);
      std::swap(waiting.call.flags, answered.call.flags);
      std::swap(waiting.call.caller, answered.call.caller);
      std::swap(waiting.call.cwd, answered.call.cwd);
      other = call;  // it is the other thread's that waits
      break;
    }
  }
  std::erase_if(waiting_, [&](size_t call) { return calls_[call].tid == tid; });
}

void TraceMerger::add_call(const TracerRecord& record) {
  candidate_.clear();
  reopened_ = kNone;
  end_calls_of(record.tid);
  threads_ |= record.tid != record.pid;
  const bool stranger = is_strangers(record.tid);
  if (!stranger) pop_finished();

  Call call;
  call.tid = record.tid;
  call.call.kind = record.kind == 'O'   ? CallKind::kDlopen
                   : record.kind == 'M' ? CallKind::kDlmopen
                                        : CallKind::kDlclose;
  call.call.name = record.texts[0];
  call.call.flags = static_cast<int>(record.numbers[0]);
  (call.call.kind == CallKind::kDlclose ? call.call.ns : call.call.link_map_id) = record.numbers[1];
  call.call.caller = record.texts[1].value_or("");
  call.call.cwd = record.texts[2].value_or("");
  call.recorded = now_;
  calls_.push_back(call);
  size_t index = calls_.size() - 1;
  last_of_[record.tid] = index;
  if (!fails_early(call.call)) waiting_.push_back(index);
  if (!stranger) place(index);
}

// Does another thread run the innermost call? Then a new record may stand anywhere in it. Of a call
// that was not seen we do not know who runs it.
bool TraceMerger::is_strangers(int64_t tid) const {
  if (frames_.empty()) return false;
  const bool unknown = calls_[frames_.back().call].tid == 0;
  return unknown ? threads_ : !may_nest(tid);
}

void TraceMerger::loading(const std::string& name, int64_t ns, const std::string& by,
                          int64_t by_ns) {
  candidate_.clear();
  reopened_ = kNone;
  announced_ = name;
  pop_finished();
  auto asks = [&](const Call& call) { return is_open(call.call.kind) && call.call.name == name; };
  size_t call = find_waiting([&](const Call& c) { return asks(c) && c.call.caller == by; });
  if (call == kNone) call = find_waiting(asks);
  if (call != kNone) {
    answer(call);
  } else {
    // A dlopen stays in the namespace of its caller.
    call = infer(ns == by_ns ? CallKind::kDlopen : CallKind::kDlmopen, name);
    if (ns != by_ns) calls_[call].call.link_map_id = namespaces_.contains(ns) ? ns : LM_ID_NEWLM;
    namespaces_.insert(ns);
  }
  // Where a library wraps dlopen, the tracer saw the wrapper's caller, and glibc the wrapper.
  calls_[call].told_caller = true;
  calls_[call].call.caller = by;
  calls_[call].call.caller_ns = by_ns;
  push(call, true);
}

// A link map without a reason given before: dlmopen of a path.
void TraceMerger::mapping(const std::string& name, int64_t ns) {
  const bool announced = std::exchange(announced_, std::nullopt) == name;
  if (name.find('/') != std::string::npos) mapped_.insert(name);
  if (!frames_.empty() && frames_.back().opens) frames_.back().mapped = true;
  if (announced || starting_) return;
  pop_finished();
  size_t call = find_waiting(
      [&](const Call& c) { return c.call.kind == CallKind::kDlmopen && c.call.name == name; });
  if (call != kNone) {
    answer(call);
  } else {
    call = infer(CallKind::kDlmopen, name);
    calls_[call].call.link_map_id = namespaces_.contains(ns) ? ns : LM_ID_NEWLM;
  }
  namespaces_.insert(ns);
  push(call, true);
  frames_.back().mapped = true;
}

// Does "opening file=NAME" end the innermost call, which has run no constructor? Then its object
// was loaded already. Or has it failed, and the line ends the call around it?
bool TraceMerger::ends_unconstructed(const std::string& name) const {
  if (frames_.empty()) return false;
  const Frame& frame = frames_.back();
  if (!frame.opens || frame.in_code || frame.failed) return false;
  const LoaderCall& call = calls_[frame.call].call;
  bool around = frames_.size() > 1 && frames_[frames_.size() - 2].last == name;
  if (around) return names_fit(call.name, name);
  // A failed open leaves no line, and who was not seen opening it is not seen to go on.
  return frame.mapped || may_be_same(call, name);
}

void TraceMerger::opened(const std::string& name) {
  candidate_.clear();
  reopened_ = kNone;
  if (ends_unconstructed(name)) return pop();
  pop_finished();
  auto opens = [](const Call& call) { return is_open(call.call.kind); };
  // The constructor of the opened object comes last, if it has one and did not run before; else its
  // name says that this is the end.
  bool ends_frame = false;
  if (!frames_.empty() && frames_.back().opens) {
    const Frame& frame = frames_.back();
    ends_frame = frame.last == name || (may_be_same(calls_[frame.call].call, name) &&
                                        (!frame.mapped || !read_file(name).has_constructor));
  }
  size_t call =
      find_waiting([&](const Call& c) { return opens(c) && names_fit(c.call.name, name); });
  if (call == kNone && !ends_frame)
    call = find_waiting([&](const Call& c) { return opens(c) && may_be_same(c.call, name); });
  if (call != kNone) {
    answer(call);
  } else if (ends_frame) {
    pop();
  } else {
    reopened_ = infer(CallKind::kDlopen, name);
  }
}

// Did this call, which has mapped nothing, find what is loaded under another path and waits for its
// constructors? Or has it failed?
bool TraceMerger::found_loaded(const Frame& frame) const {
  const LoaderCall& call = calls_[frame.call].call;
  std::error_code error;
  return !call.inferred && !(call.flags & RTLD_NOLOAD) && call.name &&
         call.name->find('/') != std::string::npos &&
         std::filesystem::exists(absolute(*call.name), error);
}

void TraceMerger::constructing(const std::string& name) {
  candidate_.clear();
  reopened_ = kNone;
  const Frame* top = frames_.empty() ? nullptr : &frames_.back();
  if (!top || !top->opens || top->in_code || top->failed || !(top->mapped || found_loaded(*top))) {
    pop_finished();
    // An object that is loaded but not yet constructed, opened by a constructor that runs earlier.
    size_t call =
        find_waiting([&](const Call& c) { return is_open(c.call.kind) && !is_strangers(c.tid); });
    if (call != kNone) {
      answer(call);
      push(call, true);
    }
  }
  if (!frames_.empty()) {
    frames_.back().in_code = true;
    frames_.back().last = name;
  } else if (starting_) {
    start_constructor_ = name;
  }
}

void TraceMerger::destructing(const std::string& name, int64_t ns) {
  reopened_ = kNone;
  if (name.empty()) saw_exit_ = true;
  pop_finished();
  if (!frames_.empty() && !frames_.back().opens) {
    frames_.back().last = name;
    return;
  }
  size_t call = find_waiting(
      [&](const Call& c) { return c.call.kind == CallKind::kDlclose && c.call.name == name; });
  if (call != kNone) {
    calls_[call].call.ns = ns;
    answer(call);
    push(call, false);
    frames_.back().in_code = true;
    frames_.back().last = name;
  } else if (candidate_.empty()) {
    candidate_ = name;
    candidate_position_ = now_;
    candidate_ns_ = ns;
  }
}

void TraceMerger::closing(const std::string& name) {
  candidate_.clear();
  reopened_ = kNone;
  pop_finished();
  size_t call = find_waiting([&](const Call& c) {
    return c.call.kind == CallKind::kDlclose && c.call.name.value_or(name) == name;
  });
  if (call == kNone) {
    infer(CallKind::kDlclose, name);
  } else {
    if (!calls_[call].call.name) calls_[call].call.name = name;
    calls_[call].still_open = true;
    answer(call);
  }
}

// The dlclose that has unmapped the object, and nothing before it; kNone: none is under way.
size_t TraceMerger::closed_by(const std::string& name) {
  const auto is_close = [](const Call& c) { return c.call.kind == CallKind::kDlclose; };
  size_t call = find_waiting([&](const Call& c) { return is_close(c) && c.call.name == name; });
  if (call == kNone) call = find_waiting(is_close);
  if (call != kNone) {
    answer(call);
    if (!calls_[call].call.name) calls_[call].call.name = candidate_.empty() ? name : candidate_;
  } else if (!candidate_.empty()) {
    call = infer(CallKind::kDlclose, candidate_);
  }
  if (call == kNone || candidate_.empty()) return call;
  calls_[call].call.ns = candidate_ns_;
  calls_[call].position = candidate_position_;
  candidate_.clear();
  return call;
}

void TraceMerger::unmapping(const std::string& name, int64_t ns) {
  if (frames_.empty() || frames_.back().opens) {
    if (!candidate_.empty()) pop_finished();
    const size_t call = closed_by(name);
    if (call == kNone) {
      if (!frames_.empty() && !frames_.back().in_code) frames_.back().failed = true;
      return;
    }
    push(call, false);
  }
  Frame& frame = frames_.back();
  frame.unmapping = true;
  frame.in_code = false;
  Call& close = calls_[frame.call];
  if (close.call.name == name) {
    close.unmapped = true;
  } else {
    close.others.emplace_back(name, ns);
  }
}

// --- the calls and the stack of those that run ---

std::string TraceMerger::plain(std::string_view name) const {
  return name == program_name_ || name == "<program name unknown>" ? "" : std::string(name);
}

// Can this thread be the one that runs the innermost call?
bool TraceMerger::may_nest(int64_t tid) const {
  if (frames_.empty()) return true;
  int64_t runs = calls_[frames_.back().call].tid;
  return runs == 0 || tid == 0 || runs == tid;
}

size_t TraceMerger::infer(CallKind kind, const std::string& name) {
  Call call;
  call.call.kind = kind;
  call.call.name = name;
  call.call.flags = kind == CallKind::kDlclose ? 0 : RTLD_NOW;
  call.call.inferred = true;
  call.tid = frames_.empty() ? 0 : calls_[frames_.back().call].tid;
  call.answered = true;
  calls_.push_back(call);
  place(calls_.size() - 1);
  return calls_.size() - 1;
}

size_t TraceMerger::inferred_in_progress() const {
  if (frames_.empty() || !calls_[frames_.back().call].call.inferred) return kNone;
  return frames_.back().call;
}

void TraceMerger::place(size_t call) {
  Call& c = calls_[call];
  c.placed = true;
  c.position = now_;
  c.call.depth = static_cast<int>(frames_.size());
  c.call.during_start = starting_;
  c.call.constructor = !frames_.empty() ? frames_.back().last : starting_ ? start_constructor_ : "";
}

void TraceMerger::answer(size_t call) {
  std::erase(waiting_, call);
  calls_[call].answered = true;
  place(call);
}

void TraceMerger::push(size_t call, bool opens) {
  Frame frame;
  frame.call = call;
  frame.opens = opens;
  frames_.push_back(frame);
}

void TraceMerger::pop() {
  frames_.pop_back();
  if (!frames_.empty()) return;
  // Calls of other threads that waited for the lock and may leave no line.
  for (size_t call : waiting_) {
    if (!calls_[call].placed) place(call);
  }
}

// A call that has run no constructor, and is not heard of any more, has failed; a dlclose that is
// past its destructors runs no code any more.
void TraceMerger::pop_finished() {
  while (!frames_.empty()) {
    const Frame& frame = frames_.back();
    if (frame.opens ? frame.in_code : !frame.unmapping) break;
    settle(frame, calls_[frame.call].call);
    pop();
  }
}

void TraceMerger::settle(const Frame& frame, LoaderCall& call) {
  if (call.inferred && frame.opens && !frame.mapped && !frame.in_code) call.flags |= RTLD_NOLOAD;
}

template <class Matches>
size_t TraceMerger::find_waiting(Matches matches) const {
  for (size_t call : waiting_) {
    if (may_nest(calls_[call].tid) && matches(calls_[call])) return call;
  }
  return kNone;
}

}  // namespace cohabit
