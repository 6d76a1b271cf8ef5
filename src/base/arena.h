// Memory that is given back all at once.
//
// For millions of small objects that live equally long: an allocation moves a pointer, nothing is
// freed before the arena goes, and no destructor runs. Containers take it as a memory resource.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "base/pages.h"

namespace cohabit {

class Arena final : public std::pmr::memory_resource {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Never destroyed: T holds nothing but memory of this arena.
  template <class T, class... Args>
  T* make(Args&&... args) {
    return new (take(sizeof(T), alignof(T))) T(std::forward<Args>(args)...);
  }
  std::string_view copy(std::string_view text) {
    if (text.empty()) return {};
    char* memory = static_cast<char*>(take(text.size(), 1));
    std::memcpy(memory, text.data(), text.size());
    return {memory, text.size()};
  }
  uint64_t bytes() const { return bytes_; }  // given out and lost to alignment

 private:
  static constexpr size_t kChunk = size_t{1} << 20;

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
#ifdef MADV_POPULATE_WRITE
    // All pages in one call instead of a fault for each: a twentieth of a plan's time.
    advise_pages(memory, kChunk, MADV_POPULATE_WRITE);
#endif
    next_ = memory + size;
    left_ = kChunk - size;
    return memory;
  }

  void* do_allocate(size_t size, size_t alignment) override { return take(size, alignment); }
  void do_deallocate(void*, size_t, size_t) override {}
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  char* next_ = nullptr;
  size_t left_ = 0;
  uint64_t bytes_ = 0;
  std::vector<std::unique_ptr<char[]>> chunks_;
};

}  // namespace cohabit
