// Plans of imports that are kept from one run of doctor to the next, in the user's cache directory.
//
// A plan is a fact about files: it is taken again only while everything that it was worked out from
// is unchanged (watched_files.h), and never instead of a judgement. What ld.so would answer to its
// opens is simulated anew each time; where an answer differs, the plan is made anew. A file that is
// damaged, another user's, or of another build of Cohabit is none. What cannot be written is not
// kept, which nobody needs to know.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/touch_log.h"
#include "base/tree.h"
#include "base/watched_files.h"
#include "facts/python/distributions.h"
#include "facts/python/interpreter.h"
#include "imports/plan.h"

namespace cohabit {

class KeptPlans {
 public:
  // Those of one environment on this machine. Null: the user has no place for them, or does not
  // want them (COHABIT_NO_CACHE).
  static std::unique_ptr<KeptPlans> open(const Interpreter& python,
                                         const Distributions& distributions);

  // The machine's files: plans are made from these, so that what they ask is known.
  const Tree& tree() const { return tree_; }
  std::optional<python::Plan> find(const python::PlanRequest& request) const;
  void add(const python::PlanRequest& request, const python::Plan& plan);
  // It does not hold: nobody needs to try it again.
  void forget(const python::PlanRequest& request);
  // Writes them down, if there are new ones, while the caller goes on.
  void begin_saving();
  void wait();  // until they are written
  // All are written down when it returns.
  void save();

 private:
  using Plans = std::unordered_map<std::string, std::string>;  // by digest of the request: as bytes

  KeptPlans(std::string file, std::string key);
  void read();
  void write(const Plans& plans) const;

  std::string file_, key_;
  int64_t start_ = 0;
  TouchLog log_{TouchLog::Of::kPaths};
  Tree tree_;
  WatchedFiles files_;
  Plans plans_;
  bool is_new_ = false;
  std::future<void> writing_;  // last, so that it ends first
};

}  // namespace cohabit
