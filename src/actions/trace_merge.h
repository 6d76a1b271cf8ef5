// From the raw log of one process to its calls.
//
// The tracer sees the start of each call and nothing else; ld.so's log sees what came of it, and
// the calls that the tracer cannot see (inside libc; from objects that were opened with DEEPBIND
// or live in another namespace). What ties them together (glibc 2.36, elf/dl-open.c; the messages
// are the same from 2.17 to 2.42):
//
//   "file=N [ns];  dynamically loaded by C [ns]"  a dlopen whose name matched nothing loaded. Not
//       printed for dlmopen with a path
//   "file=N [ns];  generating link map"           it has found a file
//   "calling init: L"                             from here on that dlopen cannot fail, and calls
//       can be nested in it. The constructor of the opened object itself comes last
//   "opening file=L [ns]; direct_opencount=n"     the end of a successful dlopen, after its
//       constructors; all there is for an object that was loaded already
//   "closing file=L; ..."                         all of a dlclose of an object still in use
//   "calling fini: L [ns]" ... "file=L [ns];  destroying link map"   a dlclose that unloads. At
//   exit
//       only the first is printed; of a failed dlopen only the last
//
// A failed dlopen prints no end. It has ended when its thread makes the next call, or an outer call
// goes on, although it has run no constructor. One that the tracer did not see, and that mapped
// nothing, is written down as RTLD_NOLOAD: a library that is there was only asked for
// (elf/dl-load.c leaves before the link map is made), and one that is not there comes to the same.
// Loading is under a lock, so the log's order is the lock's order; the tracer's record comes before
// the lock is taken, so another thread's record may stand inside a call.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actions/trace_log.h"
#include "facts/trace/trace.h"

namespace cohabit {

class TraceMerger {
 public:
  // `with_loader_log` is false when ld.so's log was not ours to take. `program_name` is argv[0],
  // which ld.so writes where the link map has "", the program's name.
  TraceMerger(bool with_loader_log, std::string program_name)
      : with_loader_log_(with_loader_log), program_name_(std::move(program_name)) {}

  void add(const LogEvent& event);
  // A process that has replaced itself by exec goes on in a new merger, which begins late: at the
  // tracer's first record.
  TraceMerger after_exec() const;
  // A child made by fork has its parent's past.
  TraceMerger after_fork() const;

  bool started() const { return saw_start_; }
  // The process is another program from here on, in which the tracer does not run.
  void become(std::string program) { successor_ = std::move(program); }
  const std::string& successor() const { return successor_; }
  // What ld.so calls the program; empty: it did not come so far.
  const std::string& program() const { return initialized_; }
  // A forked child that has made no call.
  bool idle_since_fork() const { return start_.forked && calls_.size() == calls_before_fork_; }
  // The program's destructors ran: it ended by exit, not by _exit, exec or a signal.
  bool saw_exit() const { return saw_exit_; }
  // Calls and blind spots, and the start facts that the process itself wrote down.
  Trace finish() const;

 private:
  struct Call {
    LoaderCall call;
    size_t position = 0;       // of the event at which ld.so took the call up
    int64_t tid = 0;           // 0 unknown
    bool placed = false;       // position and depth are known
    size_t recorded = 0;       // the event of the tracer's record
    bool answered = false;     // ld.so's log shows something of it
    bool told_caller = false;  // and says who made it
    bool still_open = false;   // dlclose: others have it open
    bool unmapped = false;     // dlclose: the object itself went
    std::vector<std::pair<std::string, int64_t>> others;  // dlclose: what else went, and where from
  };
  struct Frame {  // a call that is running
    size_t call = 0;
    bool opens = true;       // dlopen or dlmopen; else dlclose
    bool mapped = false;     // dlopen: has mapped a file, so it will run constructors or fail
    bool failed = false;     // dlopen: is unmapping what it has mapped
    bool in_code = false;    // runs constructors or destructors
    bool unmapping = false;  // dlclose, past its destructors
    std::string last;        // the object whose constructor or destructor runs
    std::string scope_of;    // the opened object, once ld.so shows its scopes
  };

  void add_record(const TracerRecord& record);
  void add_call(const TracerRecord& record);
  void end_calls_of(int64_t tid);
  bool may_be_answered_for(const Call& waiting, const Call& answered) const;
  void add_line(std::string_view line);
  bool add_file_line(std::string_view line);
  bool add_code_line(std::string_view line);
  void add_flag_line(std::string_view line);

  void loading(const std::string& name, int64_t ns, const std::string& by, int64_t by_ns);
  void mapping(const std::string& name, int64_t ns);
  bool ends_unconstructed(const std::string& name) const;
  bool found_loaded(const Frame& frame) const;
  void opened(const std::string& name);
  void constructing(const std::string& name);
  void destructing(const std::string& name, int64_t ns);
  void closing(const std::string& name);
  void unmapping(const std::string& name, int64_t ns);
  size_t closed_by(const std::string& name);

  static bool is_open(CallKind kind);
  static bool fails_early(const LoaderCall& call);
  // Could a dlopen of `asked` have given `loaded`? A soname need not look like the file.
  static bool names_fit(const std::optional<std::string>& asked, const std::string& loaded);
  bool may_be_same(const LoaderCall& call, const std::string& loaded) const;
  std::string absolute(const std::string& path) const;
  struct File {
    std::string soname;
    bool has_constructor = true, symbolic = false, is_gone = false;
  };
  File read_file(const std::string& l_name) const;  // as it is there now
  std::string plain(std::string_view name) const;
  bool may_nest(int64_t tid) const;
  size_t infer(CallKind kind, const std::string& name);
  size_t inferred_in_progress() const;
  void place(size_t call);
  void answer(size_t call);
  void push(size_t call, bool opens);
  void pop();
  void pop_finished();
  bool is_strangers(int64_t tid) const;
  static void settle(const Frame& frame, LoaderCall& call);
  template <class Matches>
  size_t find_waiting(Matches matches) const;
  void describe_blind_spots(Trace& trace) const;

  static constexpr size_t kNone = static_cast<size_t>(-1);

  bool with_loader_log_;
  std::string program_name_;
  bool starting_ = true, saw_start_ = false, saw_exit_ = false;
  size_t now_ = 0;  // the number of the event
  StartFacts start_;
  std::string start_constructor_, initialized_, successor_;
  std::vector<Call> calls_;
  std::vector<size_t> waiting_;  // seen by the tracer, not yet by ld.so
  std::vector<Frame> frames_;
  std::map<int64_t, size_t> last_of_;  // thread: its newest call
  size_t reopened_ = kNone;            // an inferred call that has ended: lines about it may follow
  // The name that the next link map is made for, if it is one with a known reason.
  std::optional<std::string> announced_;
  bool threads_ = false;   // more than one makes calls
  std::string candidate_;  // first of a run of destructors: at exit, or an unseen dlclose
  size_t candidate_position_ = 0;
  int64_t candidate_ns_ = 0;
  std::set<int64_t> namespaces_{0};
  std::set<std::string> mapped_;  // paths that were mapped, as they were asked for
  size_t calls_before_fork_ = 0;
  int log_closed_ = 0;      // times that the program closed the log
  bool log_ended_ = false;  // ld.so's, because the program wanted its descriptor
  int64_t first_sequence_ = -1, last_sequence_ = -1, records_ = 0;
};

}  // namespace cohabit
