// The abstract interpreter: runs module code as CPython would, as far as values are known.
//
// It exists to know which modules are imported and which libraries are opened, in which order.
// Everything that is decided by the files, the interpreter's version and the environment variables
// is computed; the rest is opaque. Where a condition is opaque, the branch that does less is taken
// and the point is noted. Functions that are called on import are run too, within a budget.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "base/redaction.h"
#include "imports/block_facts.h"
#include "imports/native_names.h"
#include "imports/plan.h"
#include "imports/plan_cache.h"
#include "imports/values.h"

namespace cohabit::python {

enum class Flow : uint8_t { kNext, kBreak, kContinue, kReturn, kRaise };

struct Raised {
  Class* type = nullptr;  // null: opaque
  Ref value = nullptr;
  std::string message;
  std::string cause;        // see Plan::failure_cause
  bool for_import = false;  // the cause is an import that failed
  std::string file;
  uint32_t line = 0;
  bool declared = false;     // the program itself says that it does not go with this version
  bool refused = false;      // the loader did not take a library
  bool certain = false;      // no gap in what we know
  bool in_import = false;    // the code of a module, not the program's own, was running
  bool left = false;         // a generator is left where it yielded: nothing of it runs any more
  bool doubted = false;      // by code that may not have been reached
  bool of_consumer = false;  // by the body of a with statement, through the generator
  // While it is handled:
  size_t handled_in = 0;       // the depth of frames
  bool failed_import = false;  // it is an ImportError
};

std::string text_of_error(const Raised& raised);  // "ImportError: cannot import name 'x'"
// Whether a constant (None, True, 1, "x") is this value.
bool is_constant(const Expr* expression, Ref value);

class Interpreter {
 public:
  static constexpr size_t kMostText = 4 << 20;                // bytes of one string
  static constexpr size_t kMostItems = 100'000;               // of one sequence
  static constexpr size_t kMostRounds = 4096;                 // of one loop
  static constexpr uint64_t kMostMemory = uint64_t{1} << 30;  // bytes of all values, about

  Interpreter(Finder& finder, Images& images, const Distributions& distributions,
              NativeLoader& loader, const PlanRequest& request, PlanCache& cache);
  Plan run();

  // --- making values
  template <class T, class... Args>
  T* make(Args&&... args) {
    if constexpr (std::is_constructible_v<T, Arena&, Args...>) {
      return arena_.make<T>(arena_, std::forward<Args>(args)...);
    } else {
      return arena_.make<T>(std::forward<Args>(args)...);
    }
  }
  Arena& arena() { return arena_; }
  Ref none() { return none_; }
  // Of a module that is not there, which the program may want (lacking.cc).
  Ref none_for_missing(const std::string& missing);
  Ref boolean(bool value) { return value ? true_ : false_; }
  Ref boolean(std::optional<bool> value) { return value ? boolean(*value) : opaque(); }
  // The same as something that may be another one; what is neither a number nor a text stays, and
  // an object too, which is told to be in doubt from then on.
  Ref doubt(Ref value);
  Ref doubt(Ref value, const Value* because) { return because->doubted ? doubt(value) : value; }
  Ref integer(int64_t value) { return make<Int>(Type::kInt, value); }
  // Opaque when it is too long: programs can double a string in a loop.
  Ref string(std::string_view text) {
    return text.size() > kMostText ? opaque_ : make<Str>(Type::kStr, keep(text));
  }
  // The same of a text that lives as long as we do: of the source, of another value.
  Ref constant(std::string_view text) { return make<Str>(Type::kStr, text); }
  Ref path(std::string_view text) {
    return text.size() > kMostText ? opaque_ : make<Str>(Type::kPath, keep(text));
  }
  // Adds as many as a sequence may hold; the rest makes it open.
  void append(Sequence* sequence, std::span<const Ref> items);
  void append(Sequence* sequence, Ref item) { append(sequence, {&item, 1}); }
  Ref opaque() { return opaque_; }
  Ref opaque(std::string_view name) { return make<Opaque>(keep(name)); }
  // The name "a.b".
  Ref opaque(std::string_view a, std::string_view b) { return make<Opaque>(keep_dotted(a, b)); }
  Sequence* list(std::span<const Ref> items, Type type = Type::kList);
  Sequence* list(std::initializer_list<Ref> items, Type type = Type::kList) {
    return list(std::span(items.begin(), items.size()), type);
  }
  Instance* instance_of(std::string_view builtin_class);
  Class* builtin_class(std::string_view name);  // null if there is none
  // A text that lives as long as we do.
  std::string_view keep(std::string_view text) { return arena_.copy(text); }
  std::string_view keep_dotted(std::string_view a, std::string_view b);  // "a.b"

  // --- operations; null: raised
  Ref attribute(Ref object, std::string_view name);
  Ref class_attribute(const Class* type, std::string_view name) const;
  // Null without raising when the attribute is certainly absent.
  Ref find_attribute(Ref object, std::string_view name, bool* raised);
  // All attributes are known; those of its class are added here:
  bool is_known(const Instance* instance) const;
  void add_names_of(const Class* type, std::unordered_set<std::string_view>& names) const;
  // `name` must live as long as we do.
  bool set_attribute(Ref object, std::string_view name, Ref value);
  Ref call(Ref callee, const Arguments& arguments);
  Ref subscript(Ref object, Ref key);
  bool set_item(Ref object, Ref key, Ref value);
  std::optional<bool> truth(Ref value);
  std::optional<bool> equal(Ref a, Ref b);
  std::optional<bool> compare(Operator op, Ref a, Ref b);
  std::optional<bool> contains(Ref container, Ref item);
  Ref binary(Operator op, Ref a, Ref b);
  // Known elements; nothing if the value is opaque. An open sequence gives what is known.
  // What it shows stays readable while the value changes. Null is opaque.
  std::optional<std::span<const Ref>> elements(Ref value);
  // What is gone over once as something that can be repeated. Null: raised.
  Ref iterated(Ref value);
  Ref iterator_over(Ref value);                    // iter(value)
  Ref next_of(Iterator* iterator, Ref otherwise);  // next(iterator, otherwise)
  static Ref dict_get(const Dict* dict, Ref key);  // null: certainly or possibly absent, see open
  static Ref dict_get(const Dict* dict, std::string_view text);
  void dict_set(Dict* dict, Ref key, Ref value);
  void dict_set(Dict* dict, std::string_view text, Ref value);
  void dict_update(Dict* dict, Ref other);
  Dict* variables_of(Module* module);
  void dict_erase(Dict* dict, Ref key);
  std::optional<std::string_view> display(Ref value);  // str()
  std::optional<bool> is_instance(Ref value, Ref types);
  std::optional<bool> is_subclass(Class* type, Ref types);

  // What the generated __init__ of the instance's data class does.
  bool fill_data_class(Instance* instance, const Arguments& arguments);

  // What is asked for later, or only in part, or elsewhere runs at once here (items of generator
  // expressions, tasks): while it lives, what fails may not do so.
  class Early {
   public:
    explicit Early(Interpreter& in) : in_(in) { in.early_++; }
    Early(const Early&) = delete;
    ~Early() { in_.early_--; }

   private:
    Interpreter& in_;
  };

  // --- exceptions
  Ref raise(std::string_view builtin, std::string message);           // always null
  Ref raise_certain(std::string_view builtin, std::string message);   // no gap in what we know
  Ref raise_declared(std::string_view builtin, std::string message);  // see Raised::declared
  Ref raise_exit(Ref status);                                         // SystemExit; null or None: 0
  // The process ends by `call`, which no handler can catch: nothing more is run.
  Ref end_process(std::string call);
  void clear_raised() { raised_.reset(); }
  const std::optional<Raised>& raised() const { return raised_; }
  bool raised_is(std::string_view builtin) const;

  // --- modules
  Ref import_dotted(std::string_view name);            // "a.b": returns the module a.b
  Ref import_from(Ref module, std::string_view name);  // from module import name
  // The absolute name that a relative one means; nothing if it goes beyond the top.
  std::optional<std::string> absolute_name(Module* from, uint32_t level, std::string_view name);
  Ref loaded_module(std::string_view name);                    // sys.modules.get(name)
  std::optional<ModuleSpec> find_spec(std::string_view name);  // may import the parents; may raise
  Ref load_spec(const ModuleSpec& spec);
  Ref run_file(Module* module);
  // exec(): the code's names end in `names`, or in the running module when there is none.
  Ref run_text(std::string_view code, Dict* names);
  // eval(): the value of an expression, with the names of what runs.
  Ref evaluate_text(std::string_view code);
  // A call that is made later, as functools.partial keeps it ("func", "args", "keywords"): of these
  // arguments, without the first `left_out`.
  Instance* call_for_later(std::string_view type, Ref callee, const Arguments& arguments,
                           size_t left_out = 0);
  // f(*positional, **keywords); values that are no tuple and no dictionary give nothing.
  Arguments unpacked(Ref positional, Ref keywords);
  // It is given to code that is not followed, which may call what is the program's own in it.
  void let_out(Ref value);
  // What a coroutine gives, whose body is run for that, or a task that was.
  Ref await(Instance* value);
  // A task that has failed by what is raised: it is raised where the task is awaited, if it is.
  // Null: it is raised on.
  Instance* failed_task();
  bool raises_for(const Instance* task);  // it has failed, and raised so
  bool has_ended() const { return ended_.has_value(); }
  Ref run_module(Module* module);  // parses and runs a module that was made elsewhere

  // --- the examined world
  Finder& finder() { return finder_; }
  const Tree& tree() { return finder_.tree(); }
  const Distributions& distributions() { return distributions_; }
  const PlanRequest& request() { return request_; }
  Dict* sys_modules() { return sys_modules_; }
  Dict* environment() { return environment_; }
  void note_variable_set(Ref key, Ref value);
  Ref value_of_variable(std::string_view name, Ref value);
  Sequence* sys_path() { return sys_path_; }
  // The program's current directory, as far as it is known: files without a process have none, and
  // os.chdir may lead anywhere.
  std::optional<std::string> working_directory;
  bool has_moved = false;  // by os.chdir
  // An absolute path for what may be a relative one; nothing if that is not known.
  std::optional<std::string> absolute(std::string_view path) const;
  uint32_t processes_started = 0;            // which may install what is missing
  bool may_install = false;                  // one that does was started
  void note_written(std::string_view path);  // by the program; it may be a module
  // What the program makes, a file or a directory, and what may stand there because of it.
  void note_made(std::string_view path);
  bool may_be_made(std::string_view path) const;
  static constexpr int kRtldNow = 2;
  int dlopen_flags = kRtldNow;
  // A call of dlopen by code of `caller` (a path). Null if it failed; it then raised OSError.
  Ref open_library(const std::optional<std::string>& name, int flags, const std::string& caller);
  size_t open_count() const { return plan_.opens.size(); }
  // What stands for the library that was opened last, by which has_symbol() knows it.
  Ref last_library();
  // Whether it has the symbol; nothing: not known.
  std::optional<bool> has_symbol(std::string_view library, std::string_view symbol);
  // Path of the loaded extension module or library that a dotted native name belongs to.
  std::string library_of(std::string_view native_name);
  FileStrings* strings_in(const std::string& library);  // null: it cannot be read
  Undecided& undecided(std::string what);
  // The program asks whether a key is in a dictionary: of some it depends how it goes on.
  void observe(const Dict* dict, Ref key);
  // What goes over all variables asks for each of them.
  void observe_all(const Dict* dict);
  // What str() makes of it, if a method of its class in Python does, else itself. Null: raised.
  Ref shown(Ref value);
  // After an import by this name failed: opaque if another name may be meant, else null.
  Ref forgive_import(Ref name);
  // Its items one by one, while `take` says kNext. `generator` has not run yet.
  Flow each(Iterator* generator, const std::function<Flow(Ref)>& take) {
    return run_generator(generator, take);
  }
  Scope* scope() { return frames_.empty() ? nullptr : frames_.back().scope; }
  Module* current_module() { return frames_.empty() ? nullptr : frames_.back().scope->module; }
  Module* module_of_frame(size_t depth);
  size_t frame_count() const { return frames_.size(); }
  Scope* scope_of_frame(size_t number) { return frames_[number].scope; }  // 0: the outermost
  Module* make_module(const ModuleSpec& spec);                            // without its names
  Namespace& builtins() { return builtins_; }
  void count_effect() { effects_++; }
  // Whether the program has a handler for this error around what runs now: one that names it, or
  // in the same module one that takes every error. Where it has none, an error that we think we see
  // is likelier a gap in what we know.
  bool expects(std::string_view error) const { return waits_for(error, false); }
  // What is called now may raise this, which is not known: of a program that expects it, what comes
  // behind is in doubt.
  void may_raise(std::string_view error);
  // While it lives, these errors are expected.
  class Catching {
   public:
    // `here`: not what modules raise that are imported meanwhile.
    Catching(Interpreter& in, std::vector<std::string_view> errors, bool here = false);
    Catching(Interpreter& in, std::vector<std::string_view> errors,
             std::vector<std::string_view> passed_on)
        : Catching(in, std::move(errors)) {
      in_.catching_.back().passed_on = std::move(passed_on);
    }
    ~Catching();
    Catching(const Catching&) = delete;

   private:
    Interpreter& in_;
    size_t frames_;
    bool doubted_ = false;
  };

 private:
  friend class Setup;
  // A scope for as long as something runs in it. Most are used again then: calls are many, and
  // memory that is touched once costs more than they do.
  class RunningScope {
   public:
    explicit RunningScope(Interpreter& in);
    ~RunningScope();
    RunningScope(const RunningScope&) = delete;
    Scope* operator->() const { return scope_; }
    Scope* get() const { return scope_; }

   private:
    Interpreter& in_;
    Scope* scope_;
  };
  // Likewise of the arguments of a call.
  class CallArguments {
   public:
    explicit CallArguments(Interpreter& in);
    ~CallArguments();
    CallArguments(const CallArguments&) = delete;
    Arguments& operator*() const { return arguments_; }

   private:
    Interpreter& in_;
    Arguments& arguments_;
  };
  // The scope around a function that is made in `current`; it and those around it are not used
  // again.
  static Scope* capture(Scope* current);
  // What is done with a value that a generator yields. It ends the generator by anything but kNext
  // and kContinue.
  using Taker = std::function<Flow(Ref)>;
  struct Consumer;
  // Whether what runs now is reached at all: a branch was skipped that may have left the function,
  // by an error that is expected, or the round of a loop; or have ended the program.
  struct Doubt {
    bool returned = false, raised = false, left_loop = false, left_round = false;
    bool ended = false;  // also for who calls
    bool left() const { return returned || raised || left_loop || left_round; }
    bool any() const { return left() || ended; }
  };
  struct Frame {
    Scope* scope;
    uint32_t line = 0;
    Ref returned = nullptr;
    bool may_return = false;       // a value, in a branch that was skipped
    Consumer* consumer = nullptr;  // of the generator that runs in it
    Doubt doubt = {};
  };

  // While it lives, what the running function raises by itself is its own decision about versions,
  // if this is what the condition is about.
  class VersionCheck {
   public:
    VersionCheck(Interpreter& in, const Expr& condition);
    ~VersionCheck() { in_.version_check_ = before_; }
    VersionCheck(const VersionCheck&) = delete;

   private:
    Interpreter& in_;
    size_t before_;
  };
  class EndlessLoop;
  // Around a loop, see Doubt.
  class Round {
   public:
    explicit Round(Interpreter& in)
        : in_(in), depth_(in.frames_.size()), before_(in.frames_.back().doubt) {}
    ~Round() { end(); }
    void end();
    Round(const Round&) = delete;

   private:
    Interpreter& in_;
    size_t depth_;
    Doubt before_;
  };
  bool checks_version() const { return version_check_ == frames_.size(); }

  // lacking.cc
  // While it lives, a branch runs that was chosen by what a failed import has left. Null: it was
  // not.
  class BehindLacking {
   public:
    BehindLacking(Interpreter& in, const Raised* error);
    BehindLacking(const BehindLacking&) = delete;
    ~BehindLacking();

   private:
    Interpreter& in_;
    bool is_behind_;
  };
  struct Lacking {
    const Raised* error;  // of lacks_
    const Scope* scope;
  };
  bool in_doubt() const;
  bool may_come(const Raised& failed);
  Ref plainly(Ref value);
  Ref lacking_copy(Ref value, const Raised* error);
  void mark_left_values(const Raised& caught, Block attempted, Block handler);
  const Raised* lacking_in(const Expr& condition, Ref value);
  Ref follows_lacking(Ref answer, const Value* because);
  Ref returned_for_lack(Ref value);
  void note_lack(Raised& raised, const Value* value) const;
  Ref raise_lacking(const Value* value, std::string_view builtin, std::string message);

  // execute.cc
  Flow execute(Block block);
  Flow execute(const Stmt& statement);
  Flow execute_if(const Stmt& statement);
  Flow execute_guessed(Block block, uint32_t line);
  Flow forgive_doubted(Block rest);
  void skip(Block block, uint32_t line, std::string_view why, bool only_empty = false);
  Flow execute_in_doubt(const Stmt& statement, bool body);
  void doubt_assigned(Block block);
  Ref value_at(const BlockFacts::Place& place);
  void set_at(const BlockFacts::Place& place, Ref value);
  void doubt_within(const BlockFacts::AssignedWithin& assigned);
  void doubt_items(Ref container);
  Ref doubt_replaced(Ref value);
  Ref data_of(Ref owner, std::string_view name) const;
  void add_doubt(Block skipped);
  // endings.cc
  struct Ends {
    bool by_error = false;        // SystemExit, which a handler may take
    bool at_once = false;         // os._exit
    size_t functions_left = 200;  // that are looked into
    int asked = 0;
  };
  void find_ends(Block block, const Function* in, int depth, Ends& found);
  void find_ends(const Expr& call, const Function* in, int depth, Ends& found);
  void find_ends(Ref called, int depth, Ends& found);
  Ref named_in(const Expr& name, const Function* in);
  const Ends& ends_in(Block block);
  void may_end(const Ends& ends);
  void may_end(const Expr& skipped);
  void leave_frame();
  // execute.cc
  void skip_handlers(const Stmt& statement);
  bool forgive_exit();
  bool forgive_operand();
  std::optional<bool> guess_again(const Expr& condition);
  Flow execute_while(const Stmt& statement);
  Flow execute_else(const Stmt& loop, Round& round);
  Flow execute_try(const Stmt& statement);
  Flow handle_group(const Stmt& statement);
  Flow execute_import(const Stmt& statement);
  Flow execute_import_from(const Stmt& statement);
  Ref own_import();
  Ref import_by_statement(std::string_view name, std::span<const Alias> names, uint32_t level);
  Ref import_listed(Module* module, std::string_view name);
  Flow execute_star_import(Ref module);
  Flow execute_raise(const Stmt& statement);
  Flow raise_if_expected();
  bool handles_here() const;
  const Raised* behind_here() const;
  bool is_refusal() const;
  void note_refusal(Raised& raised) const;
  Flow execute_function(const Stmt& statement);
  Flow execute_class(const Stmt& statement);
  Flow execute_augmented(const Stmt& statement);
  Flow execute_delete(const Stmt& statement);
  Flow execute_expression(const Expr& expression);
  std::optional<bool> handler_matches(const Handler& handler);
  void guess_target(const Expr* target);
  void guess_names(Block block);
  void forget_collected(Block block, bool only_empty = false);
  void note_registered_in(const BlockFacts& skipped);
  void note_registered(Ref key);  // sys.modules has one by this name, perhaps; null: by any
  bool may_be_registered(std::string_view name) const;
  bool may_be_made_by_its_package(std::string_view name) const;
  Ref value_named(const Expr& expression);
  void expect_names(const BlockFacts& skipped);
  void note_skipped(Block block, uint32_t line, std::string_view why);
  bool would_load(const Stmt& statement);
  void set_variable(Module& module, std::string_view name, Ref value);
  bool assign(const Expr& target, Ref value);
  void bind(std::string_view name, Ref value);
  bool assign_slice(Ref object, const Expr& slice, Ref value);
  bool delete_target(const Expr& target);
  // The whole plan has used up what it may: nothing more is run.
  bool exhausted() const;
  bool is_full() const { return arena_.bytes() + made_bytes_ > kMostMemory; }
  bool unpack(const Expr& target, Ref value);
  Ref decorate(const Stmt& statement, Ref value);

  // iteration.cc
  Flow execute_for(const Stmt& statement);
  Flow loop_over_unknown(const Stmt& statement);
  // A loop closes the generator when it ends; what the body of a with statement raises is raised in
  // the generator; next() leaves it where it is.
  enum class Asking : uint8_t { kLoop, kContext, kNext };
  // How it ended: kNext by itself, kRaise by an error, else as `take` said. `result`: what it
  // returned.
  Flow run_generator(Iterator* generator, const Taker& take, Asking asking = Asking::kLoop,
                     Ref* result = nullptr);
  Sequence* collect(Iterator* iterator);
  bool is_enumeration(const Class* type);
  Sequence* members_of(Class* type);
  std::span<const Ref> take_rest(Iterator* iterator);
  Ref close(const Consumer& consumer);
  Ref yield(Ref value);
  Ref evaluate_yield(const Expr& expression);

  // contexts.cc
  Flow execute_with(const Stmt& statement);
  Flow execute_with(const Stmt& statement, size_t first);
  Flow suppress(Flow flow, Ref types);
  Iterator* generator_of(Instance* manager) const;
  Flow go_through(Iterator* generator, const Taker& body);
  Flow leave(Instance* manager, Flow flow, bool is_async = false);
  Ref awaited(Ref result, bool is_async);

  // patterns.cc
  Flow execute_match(const Stmt& statement);
  Flow skip_cases(const Stmt& statement, size_t first);
  std::optional<bool> matches(const Expr& pattern, Ref subject);
  std::optional<bool> matches_one_of(const Expr& pattern, Ref subject);
  std::optional<bool> matches_sequence(const Expr& pattern, Ref subject);
  std::optional<bool> matches_mapping(const Expr& pattern, Ref subject);
  std::optional<bool> matches_class(const Expr& pattern, Ref subject);

  // evaluate.cc
  Ref evaluate(const Expr& expression);
  Ref evaluate_name(const Expr& expression);
  Ref evaluate_call(const Expr& expression);
  Ref evaluate_compare(const Expr& expression);
  std::optional<bool> compare_by_methods(Operator op, Ref a, Ref b);
  Ref compute(Operator op, Ref a, Ref b);
  Ref repeated(std::string_view text, int64_t times);
  Ref evaluate_bool(const Expr& expression);
  Ref evaluate_joined(const Expr& expression);
  Ref evaluate_sequence(const Expr& expression, Type type);
  Ref evaluate_dict(const Expr& expression);
  Ref evaluate_unary(const Expr& expression);
  Ref evaluate_comprehension(const Expr& expression);
  void bind_named(const Expr& expression, const Scope& inside, bool is_generator);
  bool comprehend(const Expr& expression, size_t clause, Sequence* result, Dict* dict);
  Ref evaluate_slice(Ref object, const Expr& slice);
  Ref lambda(const Expr& expression);
  bool gather_arguments(const Expr& expression, Arguments& arguments);
  Ref find_name(std::string_view name);

  // calls.cc
  Ref call_function(Function* function, const Arguments& arguments);
  // With a consumer the body of a generator function is run, else it gives a generator.
  // `is_awaited`: an async function's body is run, else its call gives a coroutine.
  Ref run_function(Function* function, const Arguments& arguments, Consumer* consumer = nullptr,
                   bool is_awaited = false);
  Ref returned_for_nothing(Ref result);
  bool bind_parameters(Function* function, const Arguments& arguments, Scope* scope);
  bool takes_keywords(const Function& function, const Arguments& arguments,
                      const std::vector<bool>& used);
  Ref instantiate(Class* type, const Arguments& arguments);
  Str* text_of_instance(Class* type, const Arguments& arguments);
  // An instance of a subclass of str as that text, where its class has none of these methods.
  Ref plain_text(Ref value, std::initializer_list<std::string_view> methods) const;

  // callbacks.cc
  struct LetOut;
  bool may_let_out();
  void let_out(const Arguments& arguments);
  void let_out_code(const Arguments& arguments);
  void let_out(Ref value, LetOut& out);
  void let_out_methods(Class* type, Instance* self, LetOut& out);
  void may_run(Function* function, const Arguments& given, LetOut& out);
  void may_run(const Expr& call, LetOut& out);
  void may_run_calls(Block skipped, bool only_empty);
  void may_run_calls(const Expr& skipped);
  void fill(Ref container, const LetOut& out);
  void fill_any_item(const Expr& item, const LetOut& out);
  void fill_by(const Function& function, const Arguments& given, const LetOut& out);
  void set_any_name(const Expr& call);
  void add_functions(Block block, Scope* scope, LetOut& out);
  void let_out_special(Instance* instance);
  void let_out_metaclass(Class* type);
  void note_given(const Function& to, const Arguments& arguments, bool is_followed);
  void let_out_given();

  // data_classes.cc
  // `init`: the class's own before it was decorated, which stays; null: none.
  void complete_data_class(Class* type, const Stmt& statement, Ref init);
  bool is_typing(const Class& type, std::string_view annotation, std::string_view form);
  Ref construct_builtin(Class* type, const Arguments& arguments, bool* done);
  Ref call_opaque(Opaque* callee, const Arguments& arguments);
  void hand_over(const Arguments& arguments);
  Ref unless_generator_raised(Ref result);
  Ref call_model(const Model& model, const Arguments& arguments);
  Ref instance_attribute(Instance* object, std::string_view name, bool* raised);
  Ref module_attribute(Module* module, std::string_view name, bool* raised);
  Ref bind_method(Ref found, Ref self, Class* type);
  Ref ask_descriptor(Instance* descriptor, Ref self, Class* type);
  Ref own_method(Ref object, std::string_view name);
  Ref own_operator(Ref object, Operator op, bool in_place = false);
  bool tell_names(Class* type);
  Ref setter_of(Ref place);
  bool refuses_attribute(Ref object, std::string_view name);
  Ref builtin_method(Ref object, std::string_view name);
  Ref method_of(std::string_view type, std::string_view name, Ref object);
  bool is_open(const Class* type) const;
  bool is_open_beside_module(const Class* type) const;
  bool derives_from(const Class* type, const Class* base) const;
  // Whether objects of this class are equal only to themselves.
  bool has_identity(const Class* type) const;

  // modules.cc
  Ref import_one(std::string_view name, Ref parent);
  Ref load_source(Module* module);
  Ref load_script(Module* module);
  Ref refuse_source(const Module& module, std::string_view problem, uint32_t line);
  Ref load_native(Module* module);
  std::string source_beside(const ModuleSpec& spec);  // what mypyc has made it of; empty: none
  Module* library_around(const ModuleSpec& wanted);
  void import_for_library(const NativeStrings& strings);
  Ref run_source_of(Module* native, const std::string& path);
  bool may_need(const std::string& native, std::string_view wanted);
  const NativeStrings* strings_of(const ModuleSpec& spec);
  std::optional<ModulesInside> modules_inside(const ModuleSpec& spec);
  bool needs_back(const std::string& name, const Module& importer);
  Ref import_below_replaced(std::string_view name, Ref parent);
  bool may_be_native_name(const Module& package, std::string_view name);
  // What is raised is an ImportError, or one of its kind, or certain, and no handler waits for it.
  bool is_unawaited_failure() const;
  const std::string_view* name_of_loaded(Instance* value);
  Ref raise_no_name(Ref value, std::string_view name);
  Ref submodule_of_replaced(Ref value, std::string_view name);
  std::optional<ModuleSpec> find_from_loaded(std::string_view name);
  // What they give; null: nothing, or it raised. Where it is not known whether one of them has the
  // name that is a point, and what it gives opaque; with `is_unsure` that is told and no more.
  Ref ask_custom_finders(std::string_view name, Ref parent, bool before, bool* is_unsure = nullptr);
  Ref ask_path_hooks(std::string_view name, Ref parent);
  Ref found_or_not(std::string_view name, std::string_view whether);
  // What may have brought a module that is not found where its path is known; empty: nothing.
  std::string_view may_be_elsewhere(std::string_view name);
  // Whether the models of modules of this name are meant for it.
  bool has_models(const Module& module);
  Brings& brings();
  bool fails_for_shadows(std::string_view name);
  bool fails_for_missing(const NativeStrings& strings, const std::string& native);
  // missing_names.cc
  struct NamingFiles {
    size_t open = 0;                         // the plan's, of the module
    const NativeStrings* strings = nullptr;  // of the module's own file
    bool is_sought = false;                  // what follows is
    bool known = false;
    std::vector<FileStrings*> files;
    uint64_t size = 0;                                    // bytes of them all
    std::unordered_map<std::string_view, bool> may_make;  // asked of all files
    std::unordered_set<std::string_view> own;             // strings->names, after a few questions
    int asked = 0;
    bool has_own(std::string_view name);
  };
  // Whether a name that we do not know of may be there. `error` is raised for it if not.
  bool may_have(Module& module, std::string_view name, std::string_view error);
  bool is_given(Module& module, std::string_view name);
  bool may_give(const Module& module, std::string_view name);
  static bool may_join(NamingFiles& naming, std::string_view name);
  bool interpreter_lacks(Module& module, std::string_view name);
  bool may_name_in_source(Module& module, std::string_view name);
  bool may_name_in_native_code(std::string_view name);  // of the interpreter
  bool is_surely_without(Module& module, std::string_view name);
  bool is_refused(const Module& module, std::string_view name) const;
  bool may_name(const Module& native, std::string_view name, std::string_view error);
  NamingFiles& naming_of(const Module& native);
  void find_files(NamingFiles& naming, const Module& native);
  std::pair<std::string, uint32_t> place_of_refusal(Ref hook);
  // typed_names.cc
  struct TypedName {
    std::string module, name;
  };
  std::optional<TypedName> typed_name(const ModuleSpec& file, std::string_view name, int& left);
  const Syntax* stub_of(const ModuleSpec& file);
  bool serves_on_demand(Ref module, std::string_view name) const;
  // What `full`, which is `module`, gives for a name that it has not yet; null: it does not say.
  Ref import_served(Ref module, const std::string& full, std::string_view name);
  Ref load_by_custom(std::string_view name, Ref spec);
  Ref execute_by_custom(Ref module, Instance* spec);
  Module* new_module(const ModuleSpec& spec);
  // The version of the one distribution that provides this package; for modules whose native part
  // tells __version__.
  Ref installed_version(const Module& module);
  void note_wanted(std::string_view name);
  void install_models(Module* module);
  void install_values(Module* module);
  std::vector<std::string> search_of(Ref parent, std::string_view name);
  const Syntax* parse(const std::string& path);
  const Syntax* parse_text(std::string_view code);
  bool ends_start(uint64_t guesses);
  void start_up();
  void run_program();
  void add_shell_names(Module* module);
  std::optional<ModuleSpec> find_main(const std::string& name);
  // type_errors.cc
  const Class* known_metaclass(const Class* type, int depth = 0);
  bool refuse_subscript(Ref object);
  bool refuse_union(Ref a, Ref b);
  bool keeps_annotations();
  bool evaluate_annotations(const Stmt& function);

  bool is_standard(const Module* module) const;
  bool is_known_to_be_unbound(std::string_view name);
  bool is_installed(const Module* module) const;  // below a site directory
  bool is_own_code(const Module* module) const {
    return module && !is_standard(module) && !is_installed(module);
  }
  const Frame* frame_of_point() const;
  void note(PlanEvent::Kind kind, size_t index);
  void note_sought(PlanEvent::Kind kind, std::string_view name);
  void note_variable_asked(std::string_view name);
  void finish(const std::vector<Ref>& path);
  void conclude();
  void hide_secrets();
  bool is_importing() const;
  bool ends_by_exit() const { return ended_ || raised_is("SystemExit"); }
  bool is_own_exit();

  Finder& finder_;
  Images& images_;
  const Distributions& distributions_;
  NativeLoader& loader_;
  const PlanRequest& request_;
  const Redaction redaction_;
  PlanCache& cache_;
  Plan plan_;

  Arena arena_;  // of all values and scopes
  std::deque<ModuleSpec> specs_;
  std::deque<std::unique_ptr<Syntax>> made_;  // from text that is no file
  KnownBlocks blocks_;
  Ref none_, true_, false_, opaque_;
  Namespace builtins_{arena_};
  Namespace internal_{arena_};  // classes that no program can name: ModuleSpec
  Dict* sys_modules_ = nullptr;
  Dict* environment_ = nullptr;
  Sequence* sys_path_ = nullptr;
  Sequence* meta_path_ = nullptr;
  Ref path_finder_ = nullptr;                                    // in it
  std::vector<std::pair<Ref, std::string_view>> asked_finders_;  // and for what, innermost last
  std::vector<Frame> frames_;
  std::vector<Scope*> spare_scopes_;
  std::deque<Arguments> call_arguments_;  // of the calls that run, outermost first; then spare ones
  size_t calls_ = 0;
  std::optional<Raised> raised_;
  std::optional<Raised> ended_;   // by what the process is over
  std::vector<Raised> handling_;  // for a bare raise
  std::deque<Raised> lacks_;      // failed imports that have left something
  std::unordered_map<const Value*, const Raised*> lacked_;  // of values that are lacking
  std::vector<Lacking> behind_lacking_;
  struct FailedTask {
    Raised error;
    bool is_asked = false;
  };
  std::deque<FailedTask> failed_tasks_;
  std::unordered_map<const Stmt* const*, Ends> known_ends_;    // by where a block stands
  std::unordered_map<const Value*, size_t> failed_task_at_;    // by its Future
  int early_ = 0;                                              // see Early
  std::unordered_map<std::string, std::string> native_paths_;  // module name -> file
  // The outermost names of packages whose modules may have been given any name.
  std::unordered_set<std::string_view> loose_packages_;
  // What sys.modules may have by now: whole names, "outermost." for any in a package, "" for any.
  std::unordered_set<std::string> registered_;
  std::unordered_map<std::string, NamingFiles> naming_files_;  // by path
  std::vector<const Module*> native_modules_;
  std::optional<std::vector<std::string>> interpreter_names_;  // once asked for; empty: not known
  uint64_t steps_ = 0, step_limit_ = 0;
  uint64_t effects_ = 0;
  uint64_t guesses_ = 0;     // branches that were guessed, functions that were not run
  uint64_t made_bytes_ = 0;  // of the trees of made_, about
  int depth_ = 0;
  int calls_deep_ = 0;  // calls in calls, also where no function runs
  int running_generators_ = 0;
  bool asks_for_refusal_ = false;
  bool returned_in_doubt_ = false;  // the function that ended last may have done so before
  std::unordered_map<std::string, uint32_t> missed_;  // modules; processes_started then
  std::set<std::string> written_;                     // files of Python, without directory and end
  std::set<std::string> made_paths_;                  // absolute
  bool has_own_code_ = false;  // a module of the program's own has run, from a file
  uint64_t let_out_work_ = 0;
  bool let_out_is_over_ = false;
  std::vector<Ref> given_;         // the program's own functions that libraries have, and may call
  bool has_shadows_ = false;       // files of the user's that are named as standard modules
  bool generator_raised_ = false;  // one that elements() has run: the call that asked raises
  struct Expected {
    std::vector<std::string_view> errors;
    int module_depth;
    bool here;
    std::vector<std::string_view> passed_on;  // of these: by who expects them
  };
  // `to_go_on`: not to pass it on.
  bool waits_for(std::string_view error, bool to_go_on) const;
  std::vector<Expected> catching_;
  int module_depth_ = 0;
  size_t version_check_ = SIZE_MAX;  // the depth of frames at which a version was compared
  bool started_ = false;             // start-up is over
  std::unordered_map<std::string, size_t> undecided_at_;  // of the plan's points
  std::vector<std::string> variables_set_;
  std::map<std::string, std::string> secrets_set_;  // of them, those whose names tell of secrets
  // By name: the first installed module that asked for it, and the line.
  std::map<std::string, std::pair<std::string, uint32_t>, std::less<>> variables_asked_;
  std::unordered_set<std::string> wanted_;  // "importer name", noted already
};

// What the interpreter itself computes, see models.h.
struct ModelRow {
  std::string_view name;  // full: "posixpath.join", "Path.parent()"
  ModelFunction function;
};
const ModelRow* find_model(std::string_view dotted);                        // null: none
const ModelRow* find_model(std::string_view owner, std::string_view name);  // "posixpath", "join"
// All functions of a module: "sys", "posix".
std::vector<const ModelRow*> models_of(std::string_view module);

}  // namespace cohabit::python
