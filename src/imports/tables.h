// Hash tables of the abstract interpreter: names of a scope, keys of a dictionary.
//
// Both keep the order of insertion, as Python does, and live in an arena. Small ones, which are
// most, are searched from front to back; the others have an index of slots. Most of a plan's time
// is spent here, and most look-ups find nothing (a name is sought in the function, the module, the
// builtins), so entries keep their hash and texts are only compared when it agrees.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <string_view>
#include <vector>

#include "base/arena.h"

namespace cohabit::python {

// Of a text. Every process has its own (address randomisation): nobody can prepare collisions.
inline uint32_t hash_of_text(std::string_view text) {
  static const uint64_t seed = reinterpret_cast<uintptr_t>(&seed) | 1;
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  const auto mix = [](uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  uint64_t state = seed ^ text.size();
  while (text.size() > 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data(), 8);
    state = mix(state ^ word, kOdd);
    text.remove_prefix(8);
  }
  uint64_t word = 0;
  if (!text.empty()) std::memcpy(&word, text.data(), text.size());
  state = mix(mix(state ^ word, kOdd), seed ^ kOdd);
  return static_cast<uint32_t>(state ^ state >> 32);
}

// Of a number or an address.
inline uint32_t hash_of_number(uint64_t number) {
  char bytes[sizeof(number)];
  std::memcpy(bytes, &number, sizeof(number));
  return hash_of_text({bytes, sizeof(bytes)});
}

// Traits: hash(key) and equal(key, key).
template <class Key, class Value, class Traits>
class OrderedTable {
 public:
  struct Entry {
    Key key;
    Value value;
    uint32_t hash;
    bool removed = false;
  };
  // By index: a program may change what it goes over.
  class Iterator {
   public:
    Iterator(const OrderedTable* table, size_t at) : table_(table), at_(at) { skip(); }
    std::pair<Key, Value> operator*() const {
      return {table_->entries_[at_].key, table_->entries_[at_].value};
    }
    Iterator& operator++() {
      at_++;
      skip();
      return *this;
    }
    bool operator!=(std::nullptr_t) const { return at_ < table_->entries_.size(); }

   private:
    void skip() {
      while (at_ < table_->entries_.size() && table_->entries_[at_].removed) at_++;
    }
    const OrderedTable* table_;
    size_t at_;
  };

  explicit OrderedTable(Arena& arena) : entries_(&arena), slots_(&arena) {}

  Iterator begin() const { return {this, 0}; }
  std::nullptr_t end() const { return nullptr; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Null: absent.
  Value* find(const Key& key) { return find(key, Traits::hash(key)); }
  const Value* find(const Key& key) const { return const_cast<OrderedTable*>(this)->find(key); }
  Value* find(const Key& key, uint32_t hash) {
    const size_t at = place_of(key, hash);
    return at == kNowhere ? nullptr : &entries_[at].value;
  }
  bool contains(const Key& key) const { return find(key) != nullptr; }
  Value get(const Key& key) const {
    const Value* found = find(key);
    return found ? *found : Value{};
  }
  Value& operator[](const Key& key) {
    const uint32_t hash = Traits::hash(key);
    if (Value* found = find(key, hash)) return *found;
    return add(key, hash);
  }
  // Keeps its memory.
  void clear() {
    entries_.clear();
    slots_.clear();
    size_ = 0;
  }
  void erase(const Key& key) {
    const size_t at = place_of(key, Traits::hash(key));
    if (at == kNowhere) return;
    entries_[at].removed = true;
    size_--;
  }

 private:
  static constexpr size_t kNowhere = SIZE_MAX;
  static constexpr size_t kSmall = 8;  // entries that are searched without an index

  bool is(const Entry& entry, const Key& key, uint32_t hash) const {
    return entry.hash == hash && !entry.removed && Traits::equal(entry.key, key);
  }
  size_t place_of(const Key& key, uint32_t hash) const {
    if (slots_.empty()) {
      for (size_t i = 0; i < entries_.size(); i++)
        if (is(entries_[i], key, hash)) return i;
      return kNowhere;
    }
    const size_t mask = slots_.size() - 1;
    for (size_t slot = hash & mask; slots_[slot]; slot = (slot + 1) & mask)
      if (is(entries_[slots_[slot] - 1], key, hash)) return slots_[slot] - 1;
    return kNowhere;
  }
  Value& add(const Key& key, uint32_t hash) {
    entries_.push_back({key, Value{}, hash});
    size_++;
    if (entries_.size() > kSmall) {
      if (2 * entries_.size() > slots_.size()) {
        index();
      } else {
        put(entries_.size() - 1);
      }
    }
    return entries_.back().value;
  }
  void put(size_t entry) {
    const size_t mask = slots_.size() - 1;
    size_t slot = entries_[entry].hash & mask;
    while (slots_[slot]) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<uint32_t>(entry + 1);
  }
  void index() {
    slots_.assign(std::max<size_t>(4 * kSmall, 2 * slots_.size()), 0);
    for (size_t i = 0; i < entries_.size(); i++)
      if (!entries_[i].removed) put(i);
  }

  std::pmr::vector<Entry> entries_;
  std::pmr::vector<uint32_t> slots_;  // 0: free; else the entry's place + 1
  size_t size_ = 0;
};

}  // namespace cohabit::python
