// What runs beside the code that starts it: threads, executors, coroutines. Here it runs at once,
// where it is started; what it raises stays with it.
#include "imports/models.h"

namespace cohabit::python {
namespace {

using I = Interpreter;
using A = Arguments;

// What a value of the program gives, one by one; nothing: not known, or it raised.
std::optional<std::vector<Ref>> items_of(I& in, Ref& value) {
  value = value ? in.iterated(value) : nullptr;
  const auto known = value ? in.elements(value) : std::nullopt;
  if (!known) return std::nullopt;
  return std::vector<Ref>(known->begin(), known->end());  // the code that gets them may change it
}

// Null only where the whole process ends by it. `failed`: for what it raises, where somebody may
// ask.
Ref run_aside(I& in, Ref callee, const Arguments& arguments, Instance** failed = nullptr) {
  if (!callee) return in.opaque();
  const I::Catching catching(in, {""}, true);
  Ref result = in.call(callee, arguments);
  if (result) return result;
  if (in.has_ended()) return nullptr;
  if (failed) *failed = in.failed_task();
  in.clear_raised();
  return in.opaque();
}

// start_new_thread(function, args, kwargs)
Ref start_thread(I& in, Ref, const A& a) {
  if (!run_aside(in, a.get(0), in.unpacked(a.get(1), a.get(2)))) return nullptr;
  return in.opaque();
}

// start_joinable_thread(function, handle, daemon)
Ref start_joinable(I& in, Ref, const A& a) {
  return run_aside(in, a.get(0, "function"), {}) ? in.opaque() : nullptr;
}

Ref executor_new(I& in, Ref, const A&) {
  return in.instance_of("Executor");
}

Ref future_of(I& in, Ref result) {
  Instance* future = in.instance_of("Future");
  future->names["result"] = result;
  return future;
}

// submit(function, *args, **kwargs): what it raises comes where its result is asked for.
Ref executor_submit(I& in, Ref, const A& a) {
  Arguments rest(in.arena());
  rest.add(a, 1);
  Instance* failed = nullptr;
  Ref result = run_aside(in, a.get(0), rest, &failed);
  if (failed) return failed;
  return result ? future_of(in, result) : nullptr;
}

// as_completed(futures): all of them, in some order.
Ref as_completed(I& in, Ref, const A& a) {
  Ref items = a.get(0, "fs");
  const auto futures = items_of(in, items);
  if (!futures) return in.raised() ? nullptr : in.opaque();
  Sequence* done = in.list(*futures);
  done->open = holds_more(items);
  return done;
}

// map(function, *iterables): of one iterable; others are not known.
Ref executor_map(I& in, Ref, const A& a) {
  Ref items = a.positional.size() == 2 ? a.get(1) : nullptr;
  const auto each = items_of(in, items);
  if (!each) return in.raised() ? nullptr : in.opaque();
  Sequence* results = in.list({});
  for (Ref item : *each) {
    Ref result = run_aside(in, a.get(0), Arguments(in.arena(), {item}));
    if (!result) return nullptr;
    results->items.push_back(result);
  }
  results->open = holds_more(items);
  return results;
}

Ref future_result(I& in, Ref self, const A&) {
  if (in.raises_for(static_cast<Instance*>(self))) return nullptr;
  Ref result = static_cast<Instance*>(self)->names.get("result");
  return result ? result : in.opaque();
}

Ref future_exception(I& in, Ref self, const A&) {
  if (!in.raises_for(static_cast<Instance*>(self))) return in.opaque();
  Ref error = in.raised()->value;
  in.clear_raised();
  return error ? error : in.opaque();
}

// What awaiting it gives; what is no coroutine of a function that is known is not followed.
Ref awaited(I& in, Ref value) {
  auto* coroutine = as<Instance>(value, Type::kInstance);
  return coroutine ? in.await(coroutine) : in.opaque();
}

Ref run_coroutine(I& in, Ref, const A& a) {
  return awaited(in, a.get(0, "main"));
}

Ref loop_new(I& in, Ref, const A&) {
  return in.instance_of("EventLoop");
}

Ref loop_run(I& in, Ref, const A& a) {
  return awaited(in, a.get(0, "future"));
}

Ref create_task(I& in, Ref, const A& a) {
  const I::Early early(in);
  Ref task = a.get(0, "coro");
  if (!task) task = a.get(0, "fut");
  if (task && task->type == Type::kInstance &&
      static_cast<Instance*>(task)->of == in.builtin_class("Future"))
    return task;
  Ref result = awaited(in, task);
  return result ? future_of(in, result) : in.failed_task();
}

// asyncio.wait(tasks): what they raise stays with them.
Ref wait_for_tasks(I& in, Ref, const A& a) {
  Ref items = a.get(0, "fs");
  const auto tasks = items_of(in, items);
  if (!tasks) return in.raised() ? nullptr : in.opaque();
  Sequence* done = in.list(*tasks, Type::kSet);
  Sequence* pending = in.list({}, Type::kSet);
  const bool waits_for_all = a.positional.size() == 1 && a.keywords.empty() && !a.open;
  done->open = holds_more(items);
  done->may_lack = !waits_for_all;
  pending->open = done->open || !waits_for_all;
  return future_of(in, in.list({done, pending}, Type::kTuple));
}

Ref gather(I& in, Ref, const A& a) {
  const I::Early early(in);
  Sequence* results = in.list({});
  const Ref kept = a.get(SIZE_MAX, "return_exceptions");
  const auto are_kept = kept ? in.truth(kept) : std::optional(false);
  Instance* failed = nullptr;  // the first one; the others run all the same
  for (Ref one : a.positional) {
    Ref result = awaited(in, one);
    if (!result && are_kept == std::optional(true)) {
      Instance* task = in.failed_task();
      if (!task) return nullptr;
      result = future_exception(in, task, {});
    }
    if (!result) {
      Instance* task = in.failed_task();
      if (!task) return nullptr;
      if (!failed) failed = task;
      result = in.opaque();
    }
    results->items.push_back(result);
  }
  results->open = a.open;
  return failed && are_kept ? failed : future_of(in, results);
}

// to_thread(function, *args, **kwargs); run_in_executor(executor, function, *args)
Ref to_thread(I& in, Ref, const A& a) {
  const I::Early early(in);
  Arguments rest(in.arena());
  rest.add(a, 1);
  Ref result = a.get(0) ? in.call(a.get(0), rest) : in.opaque();
  return result ? future_of(in, result) : in.failed_task();
}

Ref run_in_executor(I& in, Ref, const A& a) {
  Arguments rest(in.arena());
  rest.add(a, 1);
  return to_thread(in, nullptr, rest);
}

// reduce(function, iterable, initial)
Ref reduce(I& in, Ref, const A& a) {
  Ref items = a.get(1);
  const auto each = items_of(in, items);
  if (!each || holds_more(items)) return in.raised() ? nullptr : in.opaque();
  Ref result = a.get(2, "initial");
  for (Ref item : *each) {
    result = result ? in.call(a.get(0), Arguments(in.arena(), {result, item})) : item;
    if (!result) return nullptr;
  }
  return result ? result : in.opaque();
}

constexpr ModelRow kRows[] = {
    {"_thread.start_new_thread", start_thread},
    {"_thread.start_new", start_thread},
    {"_thread.start_joinable_thread", start_joinable},
    {"concurrent.futures.thread.ThreadPoolExecutor", executor_new},
    {"Executor.submit", executor_submit},
    {"Executor.map", executor_map},
    {"concurrent.futures._base.as_completed", as_completed},
    {"Future.result", future_result},
    {"Future.exception", future_exception},
    {"asyncio.runners.run", run_coroutine},
    {"asyncio.events.get_event_loop", loop_new},
    {"asyncio.events.new_event_loop", loop_new},
    {"asyncio.events.get_running_loop", loop_new},
    {"EventLoop.run_until_complete", loop_run},
    {"EventLoop.create_task", create_task},
    {"EventLoop.run_in_executor", run_in_executor},
    {"asyncio.tasks.create_task", create_task},
    {"asyncio.tasks.ensure_future", create_task},
    {"asyncio.tasks.wait_for", create_task},
    {"asyncio.tasks.gather", gather},
    {"asyncio.tasks.wait", wait_for_tasks},
    {"asyncio.threads.to_thread", to_thread},
    {"_functools.reduce", reduce},
};

}  // namespace

std::span<const ModelRow> task_models() {
  return kRows;
}

}  // namespace cohabit::python
