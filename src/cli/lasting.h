// What is large and made once, near the end of a process: giving it back takes a tenth of the time
// of a short command, and the kernel does it faster.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace cohabit {

// Set by the command's own main, and by nobody whose process goes on.
inline bool process_ends_with_command = false;

// A T that is destroyed with this, or not at all where the process ends and it may stay: then what
// it has going on in other threads is waited for (settle).
template <class T>
class Lasting {
 public:
  template <class... Args>
  explicit Lasting(Args&&... args) : value_(std::make_unique<T>(std::forward<Args>(args)...)) {}
  Lasting(const Lasting&) = delete;
  ~Lasting() {
    if (!process_ends_with_command || !value_->may_stay()) return;
    value_->settle();
    keep(value_.release());
  }
  T& operator*() { return *value_; }

 private:
  // Reachable to the end, so that it is not taken for lost: a vector of static storage is gone by
  // the time that lost memory is looked for.
  static void keep(T* value) {
    static auto& kept = *new std::vector<T*>;
    kept.push_back(value);
  }

  std::unique_ptr<T> value_;
};

}  // namespace cohabit
