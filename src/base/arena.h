// Memory that is given back all at once.
//
// For millions of small objects that live equally long: an allocation moves a pointer, nothing is
// freed before the arena goes, and no destructor runs. Containers take it as a memory resource.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "base/huge_pages.h"
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
  static constexpr size_t kFirstChunk = size_t{16} << 10;
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };

  void* take(size_t size, size_t alignment) {
    const size_t gap = -reinterpret_cast<uintptr_t>(next_) & (alignment - 1);
    if (size > left_ || gap > left_ - size) return take_chunk(size);
    bytes_ += gap + size;
    char* result = next_ + gap;
    next_ = result + size;
    left_ -= gap + size;
    return result;
  }
  // What is large gets a chunk of its own; malloc aligns for every type that we make.
  void* take_chunk(size_t size) {
    bytes_ += size;
    if (size > chunk_ / 4) return add_chunk(size, alignof(std::max_align_t));
    char* memory = add_chunk(chunk_, chunk_ < kHugePage ? alignof(std::max_align_t) : kHugePage);
    // All pages in one call instead of a fault for each, and huge ones where there are some: a
    // twentieth, and a tenth, of a plan's time.
    if (chunk_ == kHugePage) fill_huge_page(memory);
#ifdef MADV_POPULATE_WRITE
    else
      advise_pages(memory, chunk_, MADV_POPULATE_WRITE);
#endif
    next_ = memory + size;
    left_ = chunk_ - size;
    chunk_ = std::min(chunk_ * 2, kHugePage);
    return memory;
  }
  char* add_chunk(size_t size, size_t alignment) {
    auto* memory = static_cast<char*>(alignment < kHugePage ? std::malloc(size)
                                                            : std::aligned_alloc(alignment, size));
    if (!memory) throw std::bad_alloc();
    return chunks_.emplace_back(memory).get();
  }

  void* do_allocate(size_t size, size_t alignment) override { return take(size, alignment); }
  void do_deallocate(void*, size_t, size_t) override {}
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  char* next_ = nullptr;
  size_t left_ = 0;
  uint64_t bytes_ = 0;
  size_t chunk_ = kFirstChunk;
  std::vector<std::unique_ptr<char, Free>> chunks_;
};

}  // namespace cohabit
