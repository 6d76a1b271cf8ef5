// An array of plain records that is read where it lies in a mapped file, until something of it is
// to be changed: then it is copied, once, and is the program's own.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "base/huge_pages.h"

namespace cohabit {

template <class T>
class Column {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Column() = default;
  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t i) const { return data_[i]; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  std::span<const T> span() const { return {data_, size_}; }

  // Reads in place, of memory that outlives this.
  void view(std::span<const T> elsewhere) {
    own_ = {};
    data_ = elsewhere.data();
    size_ = elsewhere.size();
  }
  void take(HugeVector<T> own) {
    own_ = std::move(own);
    refresh();
  }
  // To be called before anything below, where it may be a view. Room for `count` records.
  void make_own(size_t count = 0) {
    const bool is_view = own_.data() != data_;
    own_.reserve(count);
    if (is_view) own_.assign(data_, data_ + size_);
    refresh();
  }
  void reserve(size_t count) { make_own(count); }
  void push_back(const T& record) {
    own_.push_back(record);
    refresh();
  }
  T& change(size_t i) { return own_[i]; }
  void shrink_to_fit() {
    own_.shrink_to_fit();
    refresh();
  }
  size_t capacity() const { return own_.capacity(); }

 private:
  void refresh() {
    data_ = own_.data();
    size_ = own_.size();
  }

  const T* data_ = nullptr;
  size_t size_ = 0;
  HugeVector<T> own_;
};

}  // namespace cohabit
