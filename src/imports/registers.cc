#include "imports/registers.h"

namespace cohabit::python {
namespace {

constexpr size_t kDistance = 96;        // bytes between the first argument and the call
constexpr size_t kNumberDistance = 96;  // of numbers
constexpr uint32_t kMaxNumber = 8;
constexpr unsigned kRdi = 7;

uint8_t byte_at(std::string_view code, size_t at) {
  return at < code.size() ? static_cast<uint8_t>(code[at]) : 0;
}

uint32_t word_at(std::string_view code, size_t at) {
  return byte_at(code, at) | uint32_t{byte_at(code, at + 1)} << 8 |
         uint32_t{byte_at(code, at + 2)} << 16 | uint32_t{byte_at(code, at + 3)} << 24;
}

// An operand in memory, a register's value and a displacement; `at` is that of the operand's byte.
struct Memory {
  unsigned base = 0;
  int64_t displacement = 0;
};

std::optional<Memory> memory_at(std::string_view code, size_t at, bool extended) {
  const uint8_t operands = byte_at(code, at);
  const unsigned mode = operands >> 6, base = operands & 7;
  if (mode == 3 || (mode == 0 && base == 5)) return std::nullopt;
  size_t next = at + 1;
  if (base == 4) {
    if (byte_at(code, next) != 0x24) return std::nullopt;  // has an index
    next++;
  }
  Memory memory{base | (extended ? 8U : 0U), 0};
  if (mode == 1) memory.displacement = int64_t{static_cast<int8_t>(byte_at(code, next))};
  if (mode == 2) memory.displacement = static_cast<int32_t>(word_at(code, next));
  return memory;
}

// %rsp and %rbp.
bool is_frame(const std::optional<Memory>& memory) {
  return memory && (memory->base == 4 || memory->base == 5);
}

// Of a frame that two registers point into.
int64_t frame_key(const Memory& memory) {
  return memory.displacement + (memory.base == 5 ? int64_t{1} << 40 : 0);
}

}  // namespace

Registers::Seen Registers::see(std::string_view code, size_t at) {
  see_number(code, at);
  const uint8_t opcode = byte_at(code, at);
  if (opcode == 0x6e || opcode == 0x6c || opcode == 0x29 || opcode == 0x11) see_vector(code, at);
  const uint8_t prefix = at > 0 ? byte_at(code, at - 1) : 0;
  if ((prefix & 0xf8) != 0x48) return {};
  if (opcode == 0x81 || opcode == 0x83 || opcode == 0x05 || opcode == 0x2d)
    return {add_number(code, at), std::nullopt};
  if (opcode != 0x89 && opcode != 0x8b && opcode != 0x8d) return {};
  const uint8_t operands = byte_at(code, at + 1);
  const unsigned named = (operands >> 3 & 7) | (prefix & 4U) << 1;
  const unsigned other = (operands & 7) | (prefix & 1U) << 3;
  const auto memory = memory_at(code, at + 1, prefix & 1);
  if (opcode == 0x89 && operands >= 0xc0) {
    values_[other] = {values_[named].kind, values_[named].address, at};
  } else if (opcode == 0x89) {
    if (!memory) return {element_address(code, at + 1, prefix), std::nullopt};
    if (!is_frame(memory)) return {};
    if (values_[named].kind == Value::kAddress)
      frame_[frame_key(*memory)] = values_[named].address;
    else
      frame_.erase(frame_key(*memory));
  } else if (opcode == 0x8b && operands >= 0xc0) {
    values_[named] = {values_[other].kind, values_[other].address, at};
  } else if (memory) {
    const Value base = values_[memory->base];
    values_[named] = {};
    if (base.kind != Value::kAddress) return {};
    const uint64_t address = base.address + static_cast<uint64_t>(memory->displacement);
    values_[named] = {opcode == 0x8b ? Value::kVariable : Value::kAddress, address, at};
    return opcode == 0x8b ? Seen{std::nullopt, address} : Seen{address, std::nullopt};
  } else if (opcode == 0x8b && (operands & 0xc7) != 0x05) {
    values_[named] = {};
  }
  return {};
}

// Of an operand in memory with an index: where the array begins, if a register tells.
std::optional<uint64_t> Registers::element_address(std::string_view code, size_t at,
                                                   uint8_t prefix) const {
  const uint8_t operands = byte_at(code, at), scaled = byte_at(code, at + 1);
  const unsigned mode = operands >> 6;
  if ((operands & 7) != 4 || mode == 3) return std::nullopt;
  const Value& base = values_[(scaled & 7) | (prefix & 1U) << 3];
  const Value& index = values_[(scaled >> 3 & 7) | (prefix & 2U) << 2];
  const Value& array = base.kind != Value::kAddress && scaled < 0x40 ? index : base;
  if (array.kind != Value::kAddress) return std::nullopt;
  const int64_t displacement = mode == 1   ? int64_t{static_cast<int8_t>(byte_at(code, at + 2))}
                               : mode == 2 ? int64_t{static_cast<int32_t>(word_at(code, at + 2))}
                                           : 0;
  return array.address + static_cast<uint64_t>(displacement);
}

// add $x,%reg and sub $x,%reg.
std::optional<uint64_t> Registers::add_number(std::string_view code, size_t at) {
  const uint8_t opcode = byte_at(code, at), operands = byte_at(code, at + 1);
  const bool is_rax = opcode == 0x05 || opcode == 0x2d;  // has a form of its own
  const uint8_t kind = opcode == 0x05 ? 0xc0 : opcode == 0x2d ? 0xe8 : operands & 0xf8;
  Value& value = values_[is_rax ? 0 : (operands & 7) | (byte_at(code, at - 1) & 1U) << 3];
  if ((kind != 0xc0 && kind != 0xe8) || value.kind != Value::kAddress) return std::nullopt;
  const int64_t number =
      opcode == 0x83 ? int64_t{static_cast<int8_t>(byte_at(code, at + 2))}
                     : int64_t{static_cast<int32_t>(word_at(code, is_rax ? at + 1 : at + 2))};
  value.address += static_cast<uint64_t>(kind == 0xc0 ? number : -number);
  return value.address;
}

// movq %reg,%xmm; punpcklqdq %xmm,%xmm; movaps and movups %xmm,x(%rsp). The first eight only.
void Registers::see_vector(std::string_view code, size_t at) {
  if (at < 2 || byte_at(code, at - 1) != 0x0f) return;
  const uint8_t opcode = byte_at(code, at), operands = byte_at(code, at + 1);
  const uint8_t prefix = byte_at(code, at - 2);
  const unsigned named = operands >> 3 & 7, other = operands & 7;
  if (opcode == 0x6e && (prefix & 0xfe) == 0x48 && operands >= 0xc0) {
    const Value& value = values_[other | (prefix & 1U) << 3];
    pairs_[named] = {value.kind == Value::kAddress ? value.address : 0, 0};
  } else if (opcode == 0x6c && prefix == 0x66 && operands >= 0xc0) {
    pairs_[named].high = pairs_[other].low;
  } else if (opcode == 0x29 || opcode == 0x11) {
    const auto memory = memory_at(code, at + 1, false);
    if (!is_frame(memory)) return;
    if (pairs_[named].low != 0) frame_[frame_key(*memory)] = pairs_[named].low;
    if (pairs_[named].high != 0) frame_[frame_key(*memory) + 8] = pairs_[named].high;
  }
}

// mov $x,%edx, $x,%r8d, $x,%r9d; xor %edx,%edx, %r8d,%r8d, %r9d,%r9d.
void Registers::see_number(std::string_view code, size_t at) {
  const uint8_t opcode = byte_at(code, at), operands = byte_at(code, at + 1);
  const bool extended =
      at > 0 && (byte_at(code, at - 1) & 0xfa) == 0x40 && byte_at(code, at - 1) > 0x40;
  if ((opcode == 0xba && !extended) || ((opcode == 0xb8 || opcode == 0xb9) && extended)) {
    const uint32_t value = word_at(code, at + 1);
    if (value > kMaxNumber && value != UINT32_MAX) return;
    (opcode == 0xba ? edx_ : opcode == 0xb8 ? r8d_ : r9d_) = {static_cast<int>(value), at};
  } else if (opcode == 0x31 && operands == 0xd2 && !extended) {
    edx_ = {0, at};
  } else if (opcode == 0x31 && operands == 0xc0 && extended) {
    r8d_ = {0, at};
  } else if (opcode == 0x31 && operands == 0xc9 && extended) {
    r9d_ = {0, at};
  }
}

void Registers::load(std::string_view code, size_t at, uint64_t address) {
  const uint8_t prefix = byte_at(code, at - 3);
  values_[(byte_at(code, at - 1) >> 3 & 7) | (prefix & 4U) << 1] = {Value::kVariable, address, at};
}

void Registers::take_address(std::string_view code, size_t at, uint64_t address) {
  const uint8_t prefix = byte_at(code, at - 3);
  values_[(byte_at(code, at - 1) >> 3 & 7) | (prefix & 4U) << 1] = {Value::kAddress, address, at};
}

void Registers::forget() {
  for (const unsigned number : {0U, 1U, 2U, 6U, 7U, 8U, 9U, 10U, 11U}) values_[number] = {};
  values_[0] = {Value::kAddress, kState, 0};
  edx_ = r8d_ = r9d_ = {};
}

uint64_t Registers::first(size_t at) const {
  const Value& argument = values_[kRdi];
  return argument.kind == Value::kVariable && at - argument.at <= kDistance ? argument.address : 0;
}

uint64_t Registers::first_address(size_t at) const {
  const Value& argument = values_[kRdi];
  return argument.kind == Value::kAddress && at - argument.at <= kDistance ? argument.address : 0;
}

std::optional<int> Registers::near(const Number& number, size_t at) {
  if (number.at == 0 || at - number.at > kNumberDistance) return std::nullopt;
  return number.value;
}

}  // namespace cohabit::python
