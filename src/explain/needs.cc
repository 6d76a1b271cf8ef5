#include "explain/needs.h"

namespace cohabit::explain {

MetNeeds::MetNeeds(const Needs& needs) : needs_(needs), counts_(needs.needs.size()) {
  uint32_t count = 0;
  for (const uint16_t of_pattern : needs.needs) {
    first_need_.push_back(count);
    count += of_pattern;
  }
  need_rounds_.resize(count);
}

void MetNeeds::count(Needs::Use use) {
  uint64_t& last = need_rounds_[first_need_[use.pattern] + use.need];
  if (last == round_) return;
  last = round_;
  Count& count = counts_[use.pattern];
  if (count.round != round_) count = {round_, 0};
  if (++count.met == needs_.needs[use.pattern]) patterns_.push_back(use.pattern);
}

}  // namespace cohabit::explain
