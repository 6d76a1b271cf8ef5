#include "facts/elf/instructions.h"

#include <cstring>

namespace cohabit::elf {
namespace {

// What follows an opcode, by its last byte.
//   .  nothing                 m  a ModRM byte and what it asks for
//   b  one byte                c  ModRM, one byte
//   z  four bytes (66: two)    d  ModRM, four bytes (likewise)
//   w  two bytes               e  three bytes (enter)
//   v  mov: four bytes, eight with REX.W, two with 66
//   o  an address of eight bytes (67: four)
//   j  a branch by one byte    J  a branch by four
//   F  ModRM, one byte if it names no other register than 0 and 1;  G  likewise d
//   p  a prefix                x  none in 64-bit mode, or an escape that is told apart before
constexpr std::string_view kOneByte =
    "mmmmbzxxmmmmbzxx"
    "mmmmbzxxmmmmbzxx"
    "mmmmbzpxmmmmbzpx"
    "mmmmbzpxmmmmbzpx"
    "pppppppppppppppp"
    "................"
    "xxxmppppzdbc...."
    "jjjjjjjjjjjjjjjj"
    "cdxcmmmmmmmmmmmm"
    "..........x....."
    "oooo....bz......"
    "bbbbbbbbvvvvvvvv"
    "ccw.xxcde.w..bx."
    "mmmmxxx.mmmmmmmm"
    "jjjjbbbbJJxj...."
    "p.pp..FG......mm";
// Behind 0f.
constexpr std::string_view kTwoBytes =
    "mmmmx.....x.xm.c"
    "mmmmmmmmmmmmmmmm"
    "mmmmxxxxmmmmmmmm"
    "......x.xxxxxxxx"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "ccccmmm.mmmmmmmm"
    "JJJJJJJJJJJJJJJJ"
    "mmmmmmmmmmmmmmmm"
    "...mcmmm...mcmmm"
    "mmmmmmmmmmcmmmmm"
    "mmcmcccm........"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm";
static_assert(kOneByte.size() == 256 && kTwoBytes.size() == 256);

constexpr size_t kLongest = 15;
enum Map : uint8_t { kFirst, kAfter0f, kAfter0f38, kAfter0f3a, kMapOfApx };

class Reader {
 public:
  Reader(std::string_view code, size_t at) : code_(code), begin_(at), at_(at) {}

  Instruction read() {
    if (!read_prefixes() || !read_opcode() || !read_operands()) return {};
    const size_t length = at_ - begin_;
    if (is_cut_ || length > kLongest) return {};
    result_.length = static_cast<uint8_t>(length);
    return result_;
  }

 private:
  uint8_t next() {
    if (at_ < code_.size()) return static_cast<uint8_t>(code_[at_++]);
    is_cut_ = true;
    return 0;
  }
  void skip(size_t count) {
    at_ += count;
    is_cut_ |= at_ > code_.size();
  }
  int32_t signed_number(size_t size) {
    uint32_t value = 0;
    for (size_t i = 0; i < size; i++) value |= uint32_t{next()} << 8 * i;
    return size == 1 ? static_cast<int8_t>(value) : static_cast<int32_t>(value);
  }

  bool read_prefixes();
  bool read_opcode();
  void read_vector_prefix(uint8_t first);
  bool read_operands();
  void read_memory();
  size_t wide() const { return has_66_ && !(rex_ & 8) ? 2 : 4; }
  bool touches_nothing() const;

  std::string_view code_;
  size_t begin_, at_;
  bool is_cut_ = false;
  bool has_66_ = false, has_67_ = false;
  bool is_vector_ = false, is_evex_ = false;
  uint8_t rex_ = 0;
  uint8_t map_ = kFirst, opcode_ = 0;
  uint8_t named_ = 0;  // the register or the extension of the opcode in ModRM
  Instruction result_;
};

bool Reader::read_prefixes() {
  while (!is_cut_ && at_ - begin_ < kLongest) {
    const uint8_t byte = next();
    if (kOneByte[byte] != 'p') {
      at_--;
      return !is_cut_;
    }
    // REX counts only where the opcode follows.
    rex_ = (byte & 0xf0) == 0x40 ? byte : 0;
    has_66_ |= byte == 0x66;
    has_67_ |= byte == 0x67;
    result_.in_thread |= byte == 0x64;
  }
  return false;
}

// VEX (c4, c5) and EVEX (62) hold the bits of REX, inverted, and the map.
void Reader::read_vector_prefix(uint8_t first) {
  is_vector_ = true;
  is_evex_ = first == 0x62;
  const uint8_t bits = next();
  map_ = first == 0xc5 ? static_cast<uint8_t>(kAfter0f)
                       : static_cast<uint8_t>(bits & (is_evex_ ? 7 : 31));
  if (first != 0xc5) {
    rex_ = static_cast<uint8_t>(~bits >> 5 & 7);
    skip(is_evex_ ? 2 : 1);
  }
  opcode_ = next();
}

bool Reader::read_opcode() {
  const uint8_t first = next();
  if (first == 0xc4 || first == 0xc5 || first == 0x62) {
    read_vector_prefix(first);
    return map_ != kFirst && map_ != kMapOfApx;
  }
  opcode_ = first;
  if (first == 0x8f && at_ < code_.size() && (code_[at_] & 0x38) != 0) return false;  // XOP
  if (first != 0x0f) return true;
  opcode_ = next();
  map_ = opcode_ == 0x38 ? kAfter0f38 : opcode_ == 0x3a ? kAfter0f3a : kAfter0f;
  if (map_ != kAfter0f) opcode_ = next();
  return true;
}

// Hints: nop, prefetch.
bool Reader::touches_nothing() const {
  return map_ == kAfter0f && (opcode_ == 0x0d || (opcode_ >= 0x18 && opcode_ <= 0x1f)) &&
         !is_vector_;
}

void Reader::read_memory() {
  const uint8_t modrm = next();
  const unsigned mode = modrm >> 6;
  unsigned base = modrm & 7;
  named_ = modrm >> 3 & 7;
  if (mode == 3) {
    result_.branches_by_register = map_ == kFirst && opcode_ == 0xff && named_ == 4;
    result_.sets_frame = map_ == kFirst && (rex_ & 8) &&
                         ((opcode_ == 0x89 && modrm == 0xe5) || (opcode_ == 0x8b && modrm == 0xec));
    return;
  }
  const bool is_address = map_ == kFirst && opcode_ == 0x8d;
  result_.branches_through = map_ == kFirst && opcode_ == 0xff && (named_ == 2 || named_ == 4);
  if (!touches_nothing())
    result_.operand = is_address ? Instruction::kAddress : Instruction::kTouched;
  bool has_base = true;
  if (base == 4) {
    const uint8_t scaled = next();
    base = scaled & 7;
    result_.has_index = (scaled >> 3 & 7) != 4 || (rex_ & 2);
    has_base = mode != 0 || base != 5;
  } else if (mode == 0 && base == 5) {
    has_base = false;
    result_.from_instruction = true;
  }
  if (has_base) result_.base = static_cast<uint8_t>(base | (rex_ & 1U) << 3);
  result_.sets_frame = is_address && named_ == Instruction::kFramePointer && !(rex_ & 4) &&
                       result_.base == Instruction::kStackPointer;
  if (mode == 1) {
    result_.displacement = signed_number(1);
    result_.is_scaled = is_evex_;
  } else if (mode == 2 || !has_base) {
    result_.displacement = signed_number(4);
  }
}

bool Reader::read_operands() {
  const bool has_no_operand = is_vector_ && map_ == kAfter0f && opcode_ == 0x77;  // vzeroupper
  const char kind = map_ == kFirst       ? kOneByte[opcode_]
                    : map_ == kAfter0f3a ? 'c'
                    : has_no_operand     ? '.'
                    : map_ == kAfter0f   ? kTwoBytes[opcode_]
                                         : 'm';
  const bool has_modrm = std::strchr("mcdFG", kind) != nullptr;
  if (has_modrm) read_memory();
  switch (kind) {
    case '.':
    case 'm':
      return true;
    case 'b':
    case 'c':
      skip(1);
      return true;
    case 'z':
    case 'd':
      skip(wide());
      return true;
    case 'w':
      skip(2);
      return true;
    case 'e':
      result_.sets_frame = true;
      skip(3);
      return true;
    case 'v':
      skip((rex_ & 8) ? 8 : wide());
      return true;
    case 'o':
      result_.operand = Instruction::kTouched;
      skip(has_67_ ? 4 : 8);
      return true;
    case 'j':
    case 'J':
      result_.branches = true;
      result_.branch = signed_number(kind == 'j' ? 1 : 4);
      return true;
    case 'F':
      skip(named_ < 2 ? 1 : 0);
      return true;
    case 'G':
      skip(named_ < 2 ? wide() : 0);
      return true;
    default:
      return false;
  }
}

}  // namespace

Instruction read_instruction(std::string_view code, size_t at) {
  return Reader(code, at).read();
}

}  // namespace cohabit::elf
