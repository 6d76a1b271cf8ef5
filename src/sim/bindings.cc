#include "sim/bindings.h"

#include <algorithm>

namespace cohabit::sim {
namespace {

constexpr size_t kMostProviders = UINT16_MAX;

}  // namespace

std::optional<Binding> Bindings::Run::at(uint32_t place) const {
  const BoundReferences::Entry& entry = bound->entries[place];
  if (!repeats || !entry.again) return binding(entry, providers[entry.provider], entry.definition);
  const auto& again = bound->again;
  const Own& one =
      own[static_cast<size_t>(std::lower_bound(again.begin(), again.end(), place) - again.begin())];
  if (one.to == kNone) return std::nullopt;
  return binding(entry, one.to, one.definition);
}

Binding Bindings::operator[](uint32_t index) const {
  const auto after =
      std::upper_bound(runs_.begin(), runs_.end(), index,
                       [](uint32_t wanted, const Run& run) { return wanted < run.first; });
  const Run& run = *(after - 1);
  return run.at(index - run.first).value_or(Binding{run.from, kNone, 0, 0, 0, {}, run.call});
}

void Bindings::close() {
  if (!open_ && !repeating_) return;
  open_.reset();
  repeating_ = false;
  end_ = runs_.back().first + runs_.back().count;
  if (runs_.back().count == 0) runs_.pop_back();
}

void Bindings::start(ObjectId from, uint32_t call, ReferenceList references) {
  close();
  open_ = std::make_shared<BoundReferences>();
  runs_.push_back({from, call, end_, 0, references, open_, {}, false, {}});
}

void Bindings::begin(ObjectId from, uint32_t call, ReferenceList references) {
  start(from, call, references);
  split_ = false;
  open_->entries.reserve(references.size());  // growing copies, room costs nothing
}

void Bindings::begin_again(ObjectId from, uint32_t call, ReferenceList references,
                           std::shared_ptr<const BoundReferences> bound,
                           std::vector<ObjectId> providers) {
  close();
  repeating_ = true;
  runs_.push_back(
      {from, call, end_, 0, references, std::move(bound), std::move(providers), true, {}});
}

uint16_t Bindings::provider_index(ObjectId to, ImageId image) {
  Run& run = runs_.back();
  if (to >= places_.size()) places_.resize(to + 1);
  Place& place = places_[to];
  const auto number = static_cast<uint32_t>(runs_.size());
  const bool is_known =
      place.run == number && place.index < run.providers.size() && run.providers[place.index] == to;
  if (is_known) return place.index;
  place = {number, static_cast<uint16_t>(run.providers.size())};
  run.providers.push_back(to);
  open_->images.push_back(image);
  open_->first_places.push_back(kNone);
  return place.index;
}

void Bindings::add(const Binding& binding, ImageId image, ReferenceList references, bool again) {
  if (repeating_ && runs_.back().from == binding.from) {
    size_ += runs_.back().own.back().to == kNone;
    runs_.back().own.back() = {binding.to, binding.definition};
    return;
  }
  const bool is_full = open_ && open_->images.size() == kMostProviders;
  if (!open_ || is_full || runs_.back().from != binding.from || runs_.back().call != binding.call) {
    start(binding.from, binding.call, references);
    split_ = true;
  }
  const uint16_t provider = provider_index(binding.to, image);
  Run& run = runs_.back();
  if (again)
    open_->again.push_back(run.count);
  else if (open_->first_places[provider] == kNone)
    open_->first_places[provider] = run.count;
  open_->entries.push_back({binding.slot, binding.definition, provider, binding.kind, again});
  run.count++;
  size_++;
}

void Bindings::begin_own() {
  runs_.back().own.push_back({kNone, 0});
}

std::shared_ptr<const BoundReferences> Bindings::end() {
  std::shared_ptr<const BoundReferences> bound;
  if (open_ && !split_) {
    // What is bound lazily has left most of its room empty.
    if (open_->entries.size() < open_->entries.capacity() / 2) open_->entries.shrink_to_fit();
    open_->is_whole = true;
    bound = open_;
  }
  close();
  return bound;
}

void Bindings::end_again(uint32_t places) {
  Run& run = runs_.back();
  run.count = places;
  const auto& again = run.bound->again;
  size_ += places - static_cast<size_t>(std::lower_bound(again.begin(), again.end(), places) -
                                        again.begin());
  close();
}

}  // namespace cohabit::sim
