// Single changes first; where none is enough, pairs of those that help, then a third added to the
// best pair. A change is judged on an order by simulating that order's calls again, which costs
// milliseconds: images and most bindings are shared (sim/binding_cache.h). The plan of the imports
// is made again only where a library can be opened that could not before. Several orders are judged
// at the same time, each thread with images of its own (a lane); nothing that is found depends on
// how many there are.
#include "repair/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/together.h"
#include "repair/clashes.h"
#include "repair/proposals.h"
#include "sim/mapped_files.h"

namespace cohabit {
namespace {

constexpr size_t kMostHelpful = 12;
constexpr size_t kMostAlternatives = 4;
constexpr size_t kMostPaths = 8;  // that are looked at for a library that is missing next

// The smallest first, then the safest.
std::tuple<size_t, int> rank_of(const Repair& repair) {
  return {repair.size(), risk_of(repair)};
}

bool adds_library_path(const Repair& repair) {
  return std::any_of(repair.variables.begin(), repair.variables.end(), [](const auto& variable) {
    return variable.first == "LD_LIBRARY_PATH" && !variable.second.empty();
  });
}

bool is_before(const Repair& a, const Repair& b) {
  return rank_of(a) < rank_of(b);
}

class Search {
 public:
  Search(const std::vector<RepairFacts>& lanes, std::vector<Order>& orders, const MoreOrders& more,
         const Planner& planner)
      : lanes_(lanes),
        orders_(orders),
        more_(more),
        asked_(orders.size() + more.asked.size()),
        planner_(planner) {}

  SearchResult run();

 private:
  using Indices = std::vector<size_t>;

  // An order without any repair.
  struct AsItIs {
    Judgement judgement;
    std::vector<Finding> findings;
    Clashes clashes;
    std::vector<Repair> proposals;
    std::vector<std::string> mapped;
  };
  // An order with a repair.
  struct Repaired {
    Judgement judgement;
    size_t simulations = 0;
    bool asked = false;  // else it was judged ahead, and nobody wanted to know
  };
  using ByOrder = std::vector<std::optional<Repaired>>;

  void judge_as_they_are();
  void judge_more(const std::vector<std::vector<std::string>>& more);
  AsItIs look_at(size_t order, size_t lane);
  void add(size_t order, AsItIs found);
  ByOrder& known_of(const Repair& repair);
  const Judgement& judge_with(const Repair& repair, size_t order);
  void judge_ahead(const Repair& repair, const Indices& orders);
  Repaired make_judgement(const Repair& repair, size_t order, size_t lane) const;
  bool may_be_clean(const Repair& repair, size_t order) const;
  bool is_judged_clean(const Repair& repair, size_t order);
  bool clean(const Repair& repair, const Indices& orders);
  uint64_t weight(const Repair& repair, const Indices& orders);
  // True: it repairs the orders asked for, was not tried before, and is kept.
  bool consider(const Repair& repair);
  bool has_every_order() const;
  bool helps(const Repair& repair);
  std::vector<Repair> helpful(const std::vector<Repair>& repairs);
  void extend_library_paths();
  void search_launch();
  void search_safest_pairs();
  void search_pairs(const std::vector<Repair>& parts);
  void search_third(const std::vector<Repair>& parts);
  void search_order();
  void add_partial();
  void add_processes();
  void finish();

  const std::vector<RepairFacts>& lanes_;
  std::vector<Order>& orders_;
  const MoreOrders& more_;
  size_t asked_;
  const Planner& planner_;
  SearchResult result_;
  Indices unsound_, unsound_asked_, sound_, sound_asked_;
  std::unordered_map<std::string, ByOrder> judged_;  // by the repair's spec
  std::vector<Clashes> clashes_;                     // by order
  std::vector<Repair> proposals_, tried_;
};

Search::AsItIs Search::look_at(size_t order, size_t lane) {
  orders_[order].lane = lane;
  const JudgedProcess process(lanes_[lane], orders_[order]);
  const auto mapped = sim::mapped_files(process.simulation());
  AsItIs found{
      judge(process), process.findings(), Clashes(process), {}, {mapped.begin(), mapped.end()}};
  if (!found.judgement.clean()) found.proposals = propose_repairs(process);
  return found;
}

void Search::add(size_t order, AsItIs found) {
  result_.judged++;
  if (found.judgement.clean()) {
    sound_.push_back(order);
    if (order < asked_) sound_asked_.push_back(order);
  } else {
    unsound_.push_back(order);
    if (order < asked_) unsound_asked_.push_back(order);
  }
  result_.before.push_back(std::move(found.judgement));
  result_.findings.push_back(std::move(found.findings));
  result_.mapped.push_back(std::move(found.mapped));
  clashes_.push_back(std::move(found.clashes));
  for (Repair& repair : found.proposals)
    if (std::find(proposals_.begin(), proposals_.end(), repair) == proposals_.end())
      proposals_.push_back(std::move(repair));
  std::stable_sort(proposals_.begin(), proposals_.end(), is_before);
}

void Search::judge_as_they_are() {
  for (size_t at = 0; at < orders_.size(); at++) add(at, look_at(at, 0));
}

// Each by the thread that plans it: a simulation that planning made is large.
void Search::judge_more(const std::vector<std::vector<std::string>>& more) {
  if (more.empty()) return;
  const size_t first = orders_.size();
  orders_.resize(first + more.size());
  std::vector<std::optional<AsItIs>> found(more.size());
  more_.for_each(more, [&](size_t lane, size_t i) {
    orders_[first + i] = more_.plan(more[i], lane);
    found[i].emplace(look_at(first + i, lane));
  });
  for (size_t i = 0; i < more.size(); i++) add(first + i, std::move(*found[i]));
}

Search::Repaired Search::make_judgement(const Repair& repair, size_t order, size_t lane) const {
  Repaired found;
  found.simulations = 1;
  Judgement& judgement = found.judgement;
  judgement = judge(JudgedProcess(lanes_[lane], orders_[order], repair));
  // What the user preloads may be ignored as before; what the repair does may not.
  const auto& known = result_.before[order].problems;
  for (const std::string& problem : judgement.problems)
    if (judgement.obstacle.empty() && !repair.preloads.empty() &&
        std::find(known.begin(), known.end(), problem) == known.end())
      judgement.obstacle = problem;
  const auto& before = result_.before[order].failed;
  bool opens_more = false;
  for (size_t call = 0; call < before.size() && call < judgement.failed.size(); call++) {
    if (judgement.failed[call] && !before[call])
      judgement.obstacle = fmt::format("the call {} fails", call);
    opens_more |= !judgement.failed[call] && before[call];
  }
  if (!opens_more || !planner_ || !judgement.obstacle.empty()) return found;
  Variables environment = orders_[order].trace.start.environment;
  apply_variables(repair, "", environment);
  const Order planned = planner_(orders_[order], environment, lane);
  // The variables are in the plan's start already.
  Repair flags;
  flags.flags = repair.flags;
  judgement = judge(JudgedProcess(lanes_[lane], planned, flags));
  found.simulations = 2;
  return found;
}

Search::ByOrder& Search::known_of(const Repair& repair) {
  ByOrder& known = judged_[spec_of(repair)];
  known.resize(orders_.size());
  return known;
}

// At the same time, those that are not known yet, each in its own lane.
void Search::judge_ahead(const Repair& repair, const Indices& orders) {
  ByOrder& known = known_of(repair);
  std::vector<Indices> wanted;
  for (const size_t order : orders) {
    if (known[order]) continue;
    const auto same_lane = [&](const Indices& those) {
      return orders_[those[0]].lane == orders_[order].lane;
    };
    const auto found = std::find_if(wanted.begin(), wanted.end(), same_lane);
    (found == wanted.end() ? wanted.emplace_back() : *found).push_back(order);
  }
  together(wanted.size(), [&](size_t i) {
    for (const size_t order : wanted[i])
      known[order] = make_judgement(repair, order, orders_[order].lane);
  });
}

const Judgement& Search::judge_with(const Repair& repair, size_t order) {
  auto& known = known_of(repair)[order];
  if (!known) known = make_judgement(repair, order, orders_[order].lane);
  if (!known->asked) result_.judged += known->simulations;
  known->asked = true;
  return known->judgement;
}

// False: it is not, without any simulation.
bool Search::may_be_clean(const Repair& repair, size_t order) const {
  return result_.before[order].clean() || clashes_[order].may_clear(repair);
}

bool Search::is_judged_clean(const Repair& repair, size_t order) {
  const Judgement& after = judge_with(repair, order);
  const auto& before = result_.before[order].other_errors;
  return after.clean() && std::includes(before.begin(), before.end(), after.other_errors.begin(),
                                        after.other_errors.end());
}

// Twice as many at a time as there are lanes: the first that is not ends it.
bool Search::clean(const Repair& repair, const Indices& orders) {
  const auto may_be = [&](size_t order) { return may_be_clean(repair, order); };
  if (!std::all_of(orders.begin(), orders.end(), may_be)) return false;
  for (size_t at = 0; at < orders.size();) {
    const size_t end = std::min(orders.size(), at + 2 * lanes_.size());
    judge_ahead(repair, Indices(orders.begin() + static_cast<ptrdiff_t>(at),
                                orders.begin() + static_cast<ptrdiff_t>(end)));
    for (; at < end; at++)
      if (!is_judged_clean(repair, orders[at])) return false;
  }
  return true;
}

uint64_t Search::weight(const Repair& repair, const Indices& orders) {
  constexpr uint64_t kUseless = uint64_t{1} << 32;
  uint64_t sum = 0;
  const auto add_weight = [&](const Judgement& judgement) {
    sum += judgement.obstacle.empty() ? judgement.weight : kUseless;
  };
  Indices changed;
  for (const size_t order : orders) {
    if (clashes_[order].may_help(repair))
      changed.push_back(order);
    else
      add_weight(result_.before[order]);
  }
  judge_ahead(repair, changed);
  for (const size_t order : changed) add_weight(judge_with(repair, order));
  return sum;
}

bool Search::has_every_order() const {
  return std::any_of(result_.repairs.begin(), result_.repairs.end(),
                     [](const FoundRepair& found) { return found.every_order; });
}

bool Search::consider(const Repair& repair) {
  if (std::find(tried_.begin(), tried_.end(), repair) != tried_.end()) return false;
  tried_.push_back(repair);
  if (!clean(repair, unsound_asked_)) return false;
  if (!clean(repair, sound_asked_)) return false;
  result_.repairs.push_back({repair, clean(repair, unsound_) && clean(repair, sound_), {}, {}});
  return true;
}

// Whether it takes away errors of some order.
bool Search::helps(const Repair& repair) {
  return std::any_of(unsound_.begin(), unsound_.end(), [&](size_t order) {
    return weight(repair, {order}) < result_.before[order].weight;
  });
}

// Those that help, the strongest first.
std::vector<Repair> Search::helpful(const std::vector<Repair>& repairs) {
  std::vector<std::pair<uint64_t, size_t>> ranked;
  for (size_t at = 0; at < repairs.size(); at++)
    if (helps(repairs[at])) ranked.emplace_back(weight(repairs[at], unsound_), at);
  std::stable_sort(ranked.begin(), ranked.end());
  std::vector<Repair> best;
  for (const auto& [left, at] : ranked)
    if (best.size() < kMostHelpful) best.push_back(repairs[at]);
  return best;
}

// What parts are helpful is asked on every order, which costs more than all else. Where the pair
// that would be first is enough, nothing else need be asked.
void Search::search_safest_pairs() {
  if (proposals_.size() < 2) return;
  const auto first = rank_of(combine(proposals_[0], proposals_[1]));
  for (size_t a = 0; a < proposals_.size(); a++)
    for (size_t b = a + 1; b < proposals_.size(); b++) {
      const Repair pair = combine(proposals_[a], proposals_[b]);
      if (rank_of(pair) > first || !helps(proposals_[a]) || !helps(proposals_[b])) continue;
      if (consider(pair) && result_.repairs.back().every_order) return;
    }
}

void Search::search_pairs(const std::vector<Repair>& parts) {
  std::vector<Repair> pairs;
  for (size_t a = 0; a < parts.size(); a++)
    for (size_t b = a + 1; b < parts.size(); b++) pairs.push_back(combine(parts[a], parts[b]));
  std::stable_sort(pairs.begin(), pairs.end(), is_before);
  for (const Repair& pair : pairs)
    if (consider(pair) && result_.repairs.back().every_order) return;
}

void Search::search_third(const std::vector<Repair>& parts) {
  if (tried_.empty()) return;
  const auto best = std::min_element(
      tried_.begin(), tried_.end(),
      [&](const auto& a, const auto& b) { return weight(a, unsound_) < weight(b, unsound_); });
  // A copy, because consider() adds to what it is in.
  const Repair base = *best;  // NOLINT(performance-unnecessary-copy-initialization)
  for (const Repair& part : parts)
    if (consider(combine(base, part)) && result_.repairs.back().every_order) return;
}

// Where a library is found, the program goes on to the next one, which may be missing too. Asks for
// plans, so that it is for what the proposals do not repair.
void Search::extend_library_paths() {
  const Repair none;  // the variables are in the plan's start
  const size_t known = proposals_.size();
  size_t paths = 0;
  for (size_t at = 0; planner_ && at < proposals_.size() && paths < kMostPaths; at++) {
    if (!adds_library_path(proposals_[at])) continue;
    paths++;
    for (const size_t order : unsound_asked_) {
      Variables environment = orders_[order].trace.start.environment;
      apply_variables(proposals_[at], "", environment);
      const size_t lane = orders_[order].lane;
      const Order planned = planner_(orders_[order], environment, lane);
      for (Repair& repair : propose_repairs(JudgedProcess(lanes_[lane], planned, none)))
        if (adds_library_path(repair) &&
            std::find(proposals_.begin(), proposals_.end(), repair) == proposals_.end())
          proposals_.push_back(std::move(repair));
    }
  }
  for (size_t at = known; at < proposals_.size(); at++) consider(proposals_[at]);
  std::stable_sort(proposals_.begin(), proposals_.end(), is_before);
}

void Search::search_launch() {
  for (const Repair& repair : proposals_) consider(repair);
  if (!has_every_order()) extend_library_paths();
  if (!has_every_order()) search_safest_pairs();
  if (has_every_order()) return;
  const std::vector<Repair> parts = helpful(proposals_);
  search_pairs(parts);
  if (!has_every_order()) search_third(parts);
}

// The same modules in another order that is sound as it is.
void Search::search_order() {
  if (asked_ != 1 || orders_[0].imports.size() < 2) return;
  std::vector<std::string> wanted = orders_[0].imports;
  std::sort(wanted.begin(), wanted.end());
  for (const size_t at : sound_) {
    std::vector<std::string> modules = orders_[at].imports;
    std::sort(modules.begin(), modules.end());
    if (modules != wanted) continue;
    FoundRepair found;
    found.repair.order = orders_[at].imports;
    result_.repairs.push_back(std::move(found));
    return;
  }
}

// Nothing clears all of it: what clears most.
void Search::add_partial() {
  if (!result_.repairs.empty() || tried_.empty()) return;
  uint64_t before = 0;
  for (const size_t order : unsound_asked_) before += result_.before[order].weight;
  const Repair* best = nullptr;
  uint64_t least = before;
  for (const Repair& repair : tried_)
    if (const uint64_t left = weight(repair, unsound_asked_); left < least) {
      least = left;
      best = &repair;
    }
  if (best) result_.repairs.push_back({*best, false, {}, {}});
}

// Always a way where each module alone is sound.
void Search::add_processes() {
  std::set<std::string> modules, sound_alone;
  for (size_t at = 0; at < orders_.size(); at++) {
    if (at < asked_) modules.insert(orders_[at].imports.begin(), orders_[at].imports.end());
    if (orders_[at].imports.size() == 1 && result_.before[at].clean())
      sound_alone.insert(orders_[at].imports[0]);
  }
  if (modules.size() < 2 ||
      !std::includes(sound_alone.begin(), sound_alone.end(), modules.begin(), modules.end()))
    return;
  FoundRepair found;
  found.repair.processes.assign(modules.begin(), modules.end());
  found.every_order = true;
  result_.repairs.push_back(std::move(found));
}

// Best first, and which errors each clears.
void Search::finish() {
  const auto rank = [](const FoundRepair& found) {
    return std::tuple(found.repair.processes.size(), !found.every_order, found.repair.size(),
                      risk_of(found.repair));
  };
  std::stable_sort(result_.repairs.begin(), result_.repairs.end(),
                   [&](const FoundRepair& a, const FoundRepair& b) { return rank(a) < rank(b); });
  if (result_.repairs.size() > kMostAlternatives)
    result_.repairs.erase(
        result_.repairs.begin() + kMostAlternatives - 1,
        result_.repairs.end() - (result_.repairs.back().repair.processes.empty() ? 0 : 1));
  for (FoundRepair& found : result_.repairs) {
    std::set<std::string> clears, leaves;
    for (const size_t order : unsound_asked_) {
      const std::set<std::string> none;
      const auto& left =
          found.repair.launches() ? judge_with(found.repair, order).launch_errors : none;
      for (const std::string& cause : result_.before[order].launch_errors)
        (left.empty() ? clears : leaves).insert(cause);
    }
    found.clears.assign(clears.begin(), clears.end());
    found.leaves.assign(leaves.begin(), leaves.end());
  }
}

SearchResult Search::run() {
  judge_as_they_are();
  judge_more(more_.asked);
  if (unsound_asked_.empty()) return std::move(result_);
  judge_more(more_.others);
  search_order();
  search_launch();
  if (result_.repairs.empty()) judge_more(more_.alone);
  add_partial();
  add_processes();
  finish();
  return std::move(result_);
}

}  // namespace

SearchResult search_repairs(const std::vector<RepairFacts>& lanes, std::vector<Order>& orders,
                            const MoreOrders& more, const Planner& planner) {
  return Search(lanes, orders, more, planner).run();
}

}  // namespace cohabit
