#include "imports/file_strings.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/find_text.h"

namespace cohabit::python {
namespace {

constexpr size_t kMostIndexed = size_t{64} << 20;  // bytes of a file
constexpr int kWorthIt = 3;                        // searches that cost as much as the index
constexpr size_t kLeastBeginning = 4;              // letters of a name before what is filled in
constexpr size_t kLeastEnd = 3;    // and behind it: shorter ones stand behind each "%d"
constexpr size_t kLongest = 1024;  // letters of a name whose parts are all sought

// From 1 on; 0: not of a word.
constexpr std::array<uint8_t, 256> kLetter = [] {
  std::array<uint8_t, 256> letter{};
  uint8_t count = 0;
  for (int c = '0'; c <= '9'; c++) letter[c] = ++count;
  for (int c = 'a'; c <= 'z'; c++) letter[c] = ++count;
  for (int c = 'A'; c <= 'Z'; c++) letter[c] = ++count;
  letter['_'] = ++count;
  return letter;
}();
constexpr int kLetterBits = 6;

uint8_t letter_of(char c) {
  return kLetter[static_cast<unsigned char>(c)];
}

bool is_word(char c) {
  return letter_of(c) != 0;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_word);
}

// Pieces of a file, each once.
class Pieces {
 public:
  explicit Pieces(std::string_view file) : file_(file) {}

  // Whether it is new. Not empty.
  bool add(size_t begin, size_t size) {
    if ((count_ + 1) * 2 > table_.size()) grow();
    Place& place = table_[place_of(file_.substr(begin, size))];
    if (place.size > 0) return false;
    place = {static_cast<uint32_t>(begin), static_cast<uint32_t>(size)};
    count_++;
    return true;
  }
  bool contains(std::string_view text) const {
    return !table_.empty() && table_[place_of(text)].size > 0;
  }

 private:
  struct Place {
    uint32_t begin = 0;
    uint32_t size = 0;  // 0: nothing
  };

  // Where it is, or belongs.
  size_t place_of(std::string_view text) const {
    size_t at = std::hash<std::string_view>()(text) & (table_.size() - 1);
    while (table_[at].size > 0 && file_.substr(table_[at].begin, table_[at].size) != text)
      at = (at + 1) & (table_.size() - 1);
    return at;
  }
  void grow() {
    constexpr size_t kFirst = 1 << 10;
    std::vector<Place> old(std::max(kFirst, table_.size() * 2));
    old.swap(table_);
    for (const Place& place : old)
      if (place.size > 0) table_[place_of(file_.substr(place.begin, place.size))] = place;
  }

  std::string_view file_;
  std::vector<Place> table_;  // open addressing, power of two
  size_t count_ = 0;
};

// Whether an instruction may begin there (x86-64): after a text of 4 or 8 letters is written, most
// have a REX prefix with W ('H', 'I', 'L'), some that of an operand of two bytes ('f').
bool may_be_instruction(char c) {
  return c < ' ' || c > '~' || std::string_view("HILf").find(c) != std::string_view::npos;
}

bool is_inlined_in(std::string_view file, std::string_view text) {
  const size_t length = text.size() > 16 ? 16 : text.size() > 8 ? 8 : 4;
  if (text.size() <= length) return false;
  const std::string_view first = text.substr(0, length);
  for (size_t at = find_text(file, first); at != file.npos; at = find_text(file, first, at + 1)) {
    const size_t behind = at + length;
    if (behind < file.size() && file[behind] != text[length] && may_be_instruction(file[behind]))
      return true;
  }
  return false;
}

}  // namespace

struct FileStrings::Words {
  explicit Words(std::string_view file);
  bool may_make(std::string_view name) const;

  Pieces strings;

 private:
  // Words of a few letters, of which machine code is full, by their letters.
  static constexpr size_t kShort = 3;
  bool is_new_short(uint32_t letters) { return !std::exchange(shorts_[letters], 1); }
  void add(size_t begin, size_t end);
  bool fills_in_at(size_t at) const;
  size_t filled_in_before(size_t at) const;

  std::string_view file_;
  // Each once, zeros between them: what stands in the file as part of a word is part of one of
  // them.
  std::string all_;
  std::vector<char> shorts_;
  Pieces longer_;
  Pieces beginnings_;  // behind them something is filled in
  Pieces ends_;        // before them
};

FileStrings::Words::Words(std::string_view file)
    : strings(file),
      file_(file),
      shorts_(size_t{1} << (kShort * kLetterBits)),
      longer_(file),
      beginnings_(file),
      ends_(file) {
  for (size_t begin = 0; begin < file.size(); begin++) {
    uint32_t letters = letter_of(file[begin]);
    if (letters == 0) continue;
    size_t end = begin + 1;
    for (uint32_t next; end < file.size() && (next = letter_of(file[end])) != 0; end++)
      letters = letters << kLetterBits | next;
    const size_t size = end - begin;
    if (size > kShort ? longer_.add(begin, size) : is_new_short(letters))
      all_.append(file.substr(begin, size)).push_back('\0');
    add(begin, end);
    begin = end;  // which is of no word
  }
}

void FileStrings::Words::add(size_t begin, size_t end) {
  const size_t size = end - begin;
  const bool is_ended = end < file_.size() && file_[end] == '\0';
  if (is_ended && begin > 0 && file_[begin - 1] == '\0') strings.add(begin, size);
  if (size < std::min(kLeastBeginning, kLeastEnd)) return;
  if (size >= kLeastBeginning && fills_in_at(end)) beginnings_.add(begin, size);
  const size_t filled = filled_in_before(begin);
  if (filled != file_.npos && end >= filled + kLeastEnd) ends_.add(filled, end - filled);
}

// Whether something is filled in behind a word, which ends there.
bool FileStrings::Words::fills_in_at(size_t at) const {
  const char next = at < file_.size() ? file_[at] : ' ';
  return next == '%' || next == '(' || next == '{' || (next == '\0' && file_[at - 1] == '_');
}

// Where in a word, which begins there, what has been filled in ends; npos: nothing has been.
size_t FileStrings::Words::filled_in_before(size_t at) const {
  if (at > 0 && file_[at - 1] == '%' && (file_[at] == 's' || file_[at] == 'd')) return at + 1;
  return at > 1 && file_[at - 1] == '}' && file_[at - 2] == '{' ? at : file_.npos;
}

bool FileStrings::Words::may_make(std::string_view name) const {
  const std::string_view where = is_name(name) ? std::string_view(all_) : file_;
  if (find_text(where, name) != where.npos) return true;
  for (size_t size = kLeastBeginning; size < name.size(); size++)
    if (beginnings_.contains(name.substr(0, size))) return true;
  for (size_t size = kLeastEnd; size < name.size(); size++)
    if (ends_.contains(name.substr(name.size() - size))) return true;
  return false;
}

FileStrings::FileStrings(MappedFile file) : file_(std::move(file)) {}
FileStrings::FileStrings(FileStrings&& other) noexcept = default;
FileStrings::~FileStrings() = default;

const FileStrings::Words& FileStrings::words_of(std::string_view bytes) {
  if (!words_) words_ = std::make_unique<Words>(bytes);
  return *words_;
}

bool FileStrings::has(std::string_view text) {
  if (size() == 0) return false;
  return file_.answer("has the string", text, [&](Bytes file) {
    const std::string_view bytes = file.text();
    if (is_name(text) && bytes.size() <= kMostIndexed && (words_ || ++asked_ > kWorthIt))
      return words_of(bytes).strings.contains(text);
    std::string whole(1, '\0');
    whole.append(text).push_back('\0');
    return find_text(bytes, whole) != bytes.npos;
  });
}

bool FileStrings::has_part(std::string_view text) const {
  return file_.answer("has the part", text, [&](Bytes file) {
    const std::string_view bytes = file.text();
    return find_text(bytes, text) != bytes.npos;
  });
}

bool FileStrings::may_be_inlined(std::string_view text) const {
  return file_.answer("may have in its code", text,
                      [&](Bytes file) { return is_inlined_in(file.text(), text); });
}

bool FileStrings::may_make(std::string_view name) {
  if (size() > kMostIndexed || name.size() > kLongest) return true;  // not sought
  return file_.answer("may make", name, [&](Bytes file) {
    return words_of(file.text()).may_make(name) || is_inlined_in(file.text(), name);
  });
}

}  // namespace cohabit::python
