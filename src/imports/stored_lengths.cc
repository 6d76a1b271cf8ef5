#include "imports/stored_lengths.h"

#include <optional>

namespace cohabit::python {
namespace {

constexpr size_t kFewest = 4;  // stores that make an array
constexpr int kStep = 4;       // bytes from one to the next

struct Store {
  int32_t place = 0;  // from %rbp
  uint32_t value = 0;
  size_t size = 0;  // of its code
};

// One instruction's operand x(%rbp), of 8 or of 32 bits, at `at`: its ModRM byte comes first.
std::optional<Store> place_at(Bytes code, size_t at) {
  const uint8_t kind = code.read<uint8_t>(at).value_or(0) & 0xc7;
  if (kind == 0x45)
    if (const auto place = code.read<int8_t>(at + 1)) return Store{*place, 0, 2};
  if (kind == 0x85)
    if (const auto place = code.read<int32_t>(at + 1)) return Store{*place, 0, 5};
  return std::nullopt;
}

// movb $value,x(%rbp) or movw.
std::optional<Store> constant_store(Bytes code, size_t at) {
  const bool is_word = code.read<uint8_t>(at) == 0x66;
  if (code.read<uint8_t>(at + is_word) != (is_word ? 0xc7 : 0xc6)) return std::nullopt;
  auto store = place_at(code, at + is_word + 1);
  if (!store) return std::nullopt;
  const size_t behind = at + is_word + 1 + store->size;
  store->value = is_word ? code.read<uint16_t>(behind).value_or(0)
                         : uint32_t{code.read<uint8_t>(behind).value_or(0)};
  store->size = behind + (is_word ? 2 : 1) - at;
  return store;
}

// `and` and `or` of %eax, %ax or %al with a constant: its value, and where the next begins. `modrm`
// is for a constant of 8 bits and a wider register, `wide` the opcode for one as wide as that; that
// of %al is one less.
std::optional<std::pair<uint32_t, size_t>> with_constant(Bytes code, size_t at, uint8_t modrm,
                                                         uint8_t wide) {
  const auto byte = [&](size_t where) { return uint32_t{code.read<uint8_t>(where).value_or(0)}; };
  const bool is_word = byte(at) == 0x66;
  const size_t opcode = at + is_word;
  if (byte(opcode) == 0x83 && byte(opcode + 1) == modrm)
    return std::pair(byte(opcode + 2), opcode + 3);
  if (byte(opcode) == wide && is_word)
    return std::pair(uint32_t{code.read<uint16_t>(opcode + 1).value_or(0)}, opcode + 3);
  if (byte(opcode) == wide)
    return std::pair(code.read<uint32_t>(opcode + 1).value_or(0), opcode + 5);
  if (byte(at) == wide - 1U) return std::pair(byte(at + 1), at + 2);
  return std::nullopt;
}

// A part of a word: and $mask,%eax; or $value,%eax; mov %al,x(%rbp) or mov %ax.
std::optional<Store> part_store(Bytes code, size_t at) {
  const auto mask = with_constant(code, at, 0xe0, 0x25);
  if (!mask) return std::nullopt;
  const auto value = with_constant(code, mask->second, 0xc8, 0x0d);
  size_t next = value ? value->second : mask->second;
  const bool is_word = code.read<uint8_t>(next) == 0x66;
  if (code.read<uint8_t>(next + is_word) != (is_word ? 0x89 : 0x88)) return std::nullopt;
  auto store = place_at(code, next + is_word + 1);
  if (!store) return std::nullopt;
  store->value = value ? value->first : 0;
  store->size += next + is_word + 1 - at;
  return store;
}

std::vector<uint32_t> part_with_sum(const std::vector<uint32_t>& values, uint64_t sum) {
  uint64_t total = 0;
  for (size_t begin = 0, end = 0; end < values.size();) {
    total += values[end++];
    while (total > sum) total -= values[begin++];
    if (total == sum && end - begin >= kFewest)
      return {values.begin() + static_cast<ptrdiff_t>(begin),
              values.begin() + static_cast<ptrdiff_t>(end)};
  }
  return {};
}

}  // namespace

std::vector<uint32_t> stored_lengths(Bytes code, uint64_t sum) {
  std::vector<uint32_t> values;
  int64_t next_place = 0;
  for (size_t at = 0; at < code.size();) {
    auto store = constant_store(code, at);
    if (!store) store = part_store(code, at);
    if (!store) {
      at++;
      continue;
    }
    if (store->place != next_place) {
      if (auto found = part_with_sum(values, sum); !found.empty()) return found;
      values.clear();
    }
    values.push_back(store->value);
    next_place = int64_t{store->place} + kStep;
    at += store->size;
  }
  return part_with_sum(values, sum);
}

}  // namespace cohabit::python
