// What the references of a simulated process are bound to.
//
// Three frameworks bind 700,000 references, and a process binds most of them as one before it over
// the same files did. So what a relocation bound is written down once, without who and when
// (BoundReferences), and each process that repeats the relocation refers to that: a repeated
// relocation costs what it has providers, not what it has references.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/column.h"
#include "world/images.h"

namespace cohabit::sim {

using ReferenceList = std::span<const Reference>;
using ObjectId = uint32_t;  // index into Simulation::objects(); ids are never reused

// ld.so bound a reference of `from` to the definition in `to`.
struct Binding {
  ObjectId from;
  ObjectId to;
  uint32_t reference;   // symbol index in from's image
  uint32_t definition;  // symbol index in to's image
  uint32_t slot;        // index in the references of from's image
  RefKind kind;
  uint32_t call;  // during which call; kNone: start-up
};

// Of one image, in the order of binding: of one whole relocation slots rise.
struct BoundReferences {
  struct Entry {
    uint32_t slot;
    uint32_t definition;
    uint16_t provider;  // index into `images`
    RefKind kind;
    bool again;  // depends on more than the scope: whoever repeats this looks it up again
  };
  Column<Entry> entries;
  std::vector<ImageId> images;         // the providers, in the order in which they are met
  std::vector<uint32_t> first_places;  // by provider: its first entry that is not `again`, or kNone
  std::vector<uint32_t> again;         // the places of such entries, rising
  bool is_whole = false;               // one relocation, which others may repeat: nothing is added
};

class Bindings {
 public:
  // One relocation, or jump slots that were bound one after the other by one call.
  struct Run {
    ObjectId from;
    uint32_t call;
    uint32_t first;  // index of the binding at place 0
    uint32_t count;  // of the places that were come to
    ReferenceList references;
    std::shared_ptr<const BoundReferences> bound;
    std::vector<ObjectId> providers;  // as BoundReferences::images; kNone: none is needed here
    // What a repeated run has in place of the entries that are `again`. kNone: nothing is bound.
    struct Own {
      ObjectId to;
      uint32_t definition;
    };
    bool repeats = false;
    std::vector<Own> own;

    Binding binding(const BoundReferences::Entry& entry, ObjectId to, uint32_t definition) const {
      return {from, to, references[entry.slot].symbol, definition, entry.slot, entry.kind, call};
    }
    // Below `count`.
    std::optional<Binding> at(uint32_t place) const;
  };

  size_t size() const { return size_; }
  const std::vector<Run>& runs() const { return runs_; }
  // By an index that each() told.
  Binding operator[](uint32_t index) const;

  // All bindings with wanted(from, to), in order: use(index, binding). Pairs are asked about once
  // in a run, so that runs without any wanted are passed over. soon(binding): of some, a while
  // before they are used, to bring what that needs into the cache.
  template <class Wanted, class Use, class Soon>
  void each(const Wanted& wanted, const Use& use, const Soon& soon) const {
    std::vector<char> is_wanted;
    for (const Run& run : runs_) {
      bool any = false;
      is_wanted.assign(run.providers.size(), 0);
      for (size_t i = 0; i < run.providers.size(); i++) {
        is_wanted[i] = run.providers[i] != kNone && wanted(run.from, run.providers[i]);
        any |= is_wanted[i] != 0;
      }
      if (any)
        each_entry(run, wanted, use, soon, is_wanted);
      else
        each_own(run, wanted, use);
    }
  }
  template <class Wanted, class Use>
  void each(const Wanted& wanted, const Use& use) const {
    each(wanted, use, [](const Binding&) {});
  }
  template <class Use>
  void each(const Use& use) const {
    each([](ObjectId, ObjectId) { return true; }, use);
  }

  // A relocation begins. `references`: those of from's image, which stay where they are.
  void begin(ObjectId from, uint32_t call, ReferenceList references);
  // One that is like an earlier one. `providers`: as bound->images, kNone where this process has
  // none.
  void begin_again(ObjectId from, uint32_t call, ReferenceList references,
                   std::shared_ptr<const BoundReferences> bound, std::vector<ObjectId> providers);
  // One more binding; where none of `from` and `call` has begun, that begins. `image`: that of
  // `binding.to`.
  void add(const Binding& binding, ImageId image, ReferenceList references, bool again);
  // In a repeated relocation: the next of the entries that are `again` has been come to, and what
  // is added is bound in its place.
  void begin_own();
  // The relocation ends; a repeated one after `places` entries. What it bound, for those that
  // repeat it; null where that cannot be told by one list.
  std::shared_ptr<const BoundReferences> end();
  void end_again(uint32_t places);
  // What is added from here on is in a run of its own, so that a copy made now has what is before
  // in common and nothing else. Not within a relocation.
  void close();

 private:
  template <class Wanted, class Use, class Soon>
  static void each_entry(const Run& run, const Wanted& wanted, const Use& use, const Soon& soon,
                         const std::vector<char>& is_wanted) {
    constexpr uint32_t kAhead = 16;
    size_t own = 0;
    for (uint32_t place = 0; place < run.count; place++) {
      const BoundReferences::Entry& entry = run.bound->entries[place];
      if (place + kAhead < run.count) {
        const BoundReferences::Entry& later = run.bound->entries[place + kAhead];
        if (is_wanted[later.provider])
          soon(run.binding(later, run.providers[later.provider], later.definition));
      }
      if (run.repeats && entry.again) {
        const Run::Own& one = run.own[own++];
        if (one.to != kNone && wanted(run.from, one.to))
          use(run.first + place, run.binding(entry, one.to, one.definition));
      } else if (is_wanted[entry.provider]) {
        use(run.first + place, run.binding(entry, run.providers[entry.provider], entry.definition));
      }
    }
  }
  template <class Wanted, class Use>
  static void each_own(const Run& run, const Wanted& wanted, const Use& use) {
    for (size_t i = 0; i < run.own.size(); i++) {
      const Run::Own& one = run.own[i];
      const uint32_t place = run.bound->again[i];
      if (one.to != kNone && wanted(run.from, one.to))
        use(run.first + place, run.binding(run.bound->entries[place], one.to, one.definition));
    }
  }
  void start(ObjectId from, uint32_t call, ReferenceList references);
  uint16_t provider_index(ObjectId to, ImageId image);

  std::vector<Run> runs_;
  size_t size_ = 0;
  uint32_t end_ = 0;
  // The run that is being written; `open_` is its list, which nobody shares yet.
  std::shared_ptr<BoundReferences> open_;
  bool repeating_ = false;
  bool split_ = false;  // the relocation has more than one run
  struct Place {
    uint32_t run = kNone;
    uint16_t index = 0;
  };
  std::vector<Place> places_;  // by object: its index in the run, where the run is the last one
};

}  // namespace cohabit::sim
