// What x86-64 code has put into registers and on its stack, as far as a look at single instructions
// tells, without a disassembler: the values of variables, addresses, small numbers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace cohabit::python {

class Registers {
 public:
  struct Seen {
    std::optional<uint64_t> address;   // that it computes
    std::optional<uint64_t> variable;  // that it reads
  };
  // The instruction whose opcode's last byte is at `at`; a byte for its operands follows.
  Seen see(std::string_view code, size_t at);
  // `mov address(%rip),%reg` and `lea address(%rip),%reg`, whose displacement starts at `at`.
  void load(std::string_view code, size_t at, uint64_t address);
  void take_address(std::string_view code, size_t at, uint64_t address);
  // Registers that a call may change are forgotten; what it returns may be the module's state.
  void forget();
  // Variables and addresses in a state that a function returned: their distance from its begin,
  // and this.
  static constexpr uint64_t kState = uint64_t{1} << 62;
  static constexpr bool is_in_state(uint64_t address) { return address >= kState; }

  // Of a call at `at`. The variable that the first argument was loaded from; 0: not known.
  uint64_t first(size_t at) const;
  uint64_t first_address(size_t at) const;  // if it is an address; 0: not known
  std::optional<int> third(size_t at) const { return near(edx_, at); }
  std::optional<int> fifth(size_t at) const { return near(r8d_, at); }
  std::optional<int> sixth(size_t at) const { return near(r9d_, at); }

  // Addresses that the code has stored in its frame.
  const std::map<int64_t, uint64_t>& frame() const { return frame_; }

 private:
  struct Value {
    enum Kind { kUnknown, kVariable, kAddress };
    Kind kind = kUnknown;
    uint64_t address = 0;
    size_t at = 0;
  };
  struct Number {
    int value = 0;
    size_t at = 0;
  };
  struct Pair {  // the halves of a vector register
    uint64_t low = 0, high = 0;
  };

  static std::optional<int> near(const Number& number, size_t at);
  std::optional<uint64_t> add_number(std::string_view code, size_t at);
  std::optional<uint64_t> element_address(std::string_view code, size_t at, uint8_t prefix) const;
  void see_vector(std::string_view code, size_t at);
  void see_number(std::string_view code, size_t at);

  std::array<Value, 16> values_{};
  std::array<Pair, 8> pairs_{};
  Number edx_, r8d_, r9d_;
  std::map<int64_t, uint64_t> frame_;
};

}  // namespace cohabit::python
