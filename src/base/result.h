// Result<T>: either a value, or the sentence that says why we could not make one.
//
// Three channels are kept apart in this code: Result ("we could not"), Finding ("the user's
// environment has this property") and assert ("our bug").
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace cohabit {

struct Error {
  std::string message;  // one sentence: what was expected, what was found, where, what to do
};

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using Base = tl::expected<T, Error>;
  using Base::Base;
  Result(Base base) : Base(std::move(base)) {}
  // The throwing accessor is not for this code base: test first, then dereference.
  void value() = delete;
};

inline tl::unexpected<Error> fail(std::string message) {
  return tl::unexpected<Error>(Error{std::move(message)});
}

}  // namespace cohabit
