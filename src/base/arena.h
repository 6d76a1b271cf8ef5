// Memory that is given back all at once.
//
// For millions of small objects that live equally long: an allocation moves a pointer, nothing goes
// back to the system before the arena goes, and no destructor need run. Containers take it as a
// memory resource; what they outgrow, and what is given back by hand, is used again for the next
// request of that size.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace cohabit {

class Arena final : public std::pmr::memory_resource {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Never destroyed: T holds nothing but memory of this arena.
  template <class T, class... Args>
  T* make(Args&&... args) {
    return new (obtain(sizeof(T))) T(std::forward<Args>(args)...);
  }
  // Of make(), before the arena goes. Nothing may point to it any more.
  template <class T>
  void destroy(T* object) {
    object->~T();
    give(object, sizeof(T));
  }
  std::string_view copy(std::string_view text) {
    if (text.empty()) return {};
    char* memory = static_cast<char*>(take(text.size(), 1));
    std::memcpy(memory, text.data(), text.size());
    return {memory, text.size()};
  }
  uint64_t bytes() const { return bytes_; }  // taken from the system, used or lost to alignment

 private:
  static constexpr size_t kChunk = size_t{1} << 20;
  static constexpr size_t kUnit = alignof(std::max_align_t);
  static constexpr size_t kExact = 64;  // classes of one unit more each; above, powers of two
  static constexpr size_t kClasses = kExact + 64;

  struct Free {
    Free* next;
  };

  // What a request of this size takes, and which list its memory goes to afterwards.
  static size_t rounded(size_t size) {
    size = std::max(size, kUnit);
    return size <= kExact * kUnit ? (size + kUnit - 1) & ~(kUnit - 1) : std::bit_ceil(size);
  }
  // So that the address sanitizer sees a use of what was given back.
  static void poison([[maybe_unused]] void* memory, [[maybe_unused]] size_t size) {
#if defined(__SANITIZE_ADDRESS__)
    ASAN_POISON_MEMORY_REGION(memory, size);
#endif
  }
  static void unpoison([[maybe_unused]] void* memory, [[maybe_unused]] size_t size) {
#if defined(__SANITIZE_ADDRESS__)
    ASAN_UNPOISON_MEMORY_REGION(memory, size);
#endif
  }
  static size_t class_of(size_t taken) {
    return taken <= kExact * kUnit ? taken / kUnit - 1
                                   : kExact + static_cast<size_t>(std::countr_zero(taken));
  }
  void* obtain(size_t size) {
    const size_t taken = rounded(size);
    Free*& first = free_[class_of(taken)];
    if (!first) return take(taken, kUnit);
    unpoison(first, taken);
    Free* result = first;
    first = result->next;
    return result;
  }
  void give(void* memory, size_t size) {
    const size_t taken = rounded(size);
    Free*& first = free_[class_of(taken)];
    first = new (memory) Free{first};
    poison(memory, taken);
  }

  void* take(size_t size, size_t alignment) {
    const size_t gap = -reinterpret_cast<uintptr_t>(next_) & (alignment - 1);
    if (size > left_ || gap > left_ - size) return take_chunk(size);
    bytes_ += gap + size;
    char* result = next_ + gap;
    next_ = result + size;
    left_ -= gap + size;
    return result;
  }
  // What is large gets a chunk of its own; operator new aligns for every type that we make.
  void* take_chunk(size_t size) {
    bytes_ += size;
    char* memory = chunks_.emplace_back(new char[std::max(size, kChunk)]).get();
    if (size > kChunk / 4) return memory;
    next_ = memory + size;
    left_ = kChunk - size;
    return memory;
  }

  void* do_allocate(size_t size, size_t) override { return obtain(size); }
  void do_deallocate(void* memory, size_t size, size_t) override { give(memory, size); }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::array<Free*, kClasses> free_{};
  char* next_ = nullptr;
  size_t left_ = 0;
  uint64_t bytes_ = 0;
  std::vector<std::unique_ptr<char[]>> chunks_;
};

}  // namespace cohabit
