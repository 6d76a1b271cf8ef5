// `cohabit why` looks at a line once: repetitions of it are passed over, compared with those of the
// last time, or searched for what follows them only (explain/shapes.h). Here every line is shown to
// every expression, and both must find the same patterns, each where it stands first. What may be
// missed is what the design says: a line that differs from an earlier one in numbers only.
// Input that starts with a NUL is decoded to a log of known failures, their repetitions with other
// numbers, parts, prefixes and line ends; all other input is text.
#include <fmt/format.h>
#include <re2/re2.h>
#include <re2/set.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "explain/answer.h"
#include "explain/knowledge.h"
#include "explain/log_text.h"
#include "explain/matcher.h"
#include "explain/patterns.h"

using namespace cohabit::explain;

namespace {

constexpr size_t kMostInput = 1024;
constexpr size_t kMostText = 1 << 16;
constexpr size_t kMostLines = 450;  // of more with the same literals not all are tried
constexpr size_t kLongLine = 4096;  // of a longer one a part is looked at
constexpr size_t kSameLines = 8;
constexpr size_t kWindowLines = 4;
constexpr size_t kMostFrames = 10;

// In the order of their names.
std::vector<std::string> mechanism_files() {
  std::set<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(COHABIT_SOURCE_DIR "/data/mechanisms"))
    paths.insert(entry.path());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream file(path);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

// The texts that the mechanism files say must be answered.
const std::vector<std::string>& known_texts() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> texts;
    for (const std::string& file : mechanism_files()) {
      const size_t begin = file.find("\nmatches");
      const size_t end = file.find("\nnear_misses", begin);
      const std::string_view part = std::string_view(file).substr(begin, end - begin);
      for (size_t at = part.find("'''"); at != part.npos; at = part.find("'''", at)) {
        const size_t close = part.find("'''", at + 3);
        texts.emplace_back(part.substr(at + 3, close - at - 3));
        at = close + 3;
      }
    }
    return texts;
  }();
  return all;
}

// A log, from the bytes of an input.
class Writer {
 public:
  explicit Writer(std::string_view bytes) : bytes_(bytes) {}
  std::string text() {
    while (at_ < bytes_.size() && text_.size() < kMostText && lines_ < kMostLines) part();
    return std::move(text_);
  }

 private:
  unsigned take(unsigned below) {
    if (at_ >= bytes_.size()) return 0;
    return static_cast<unsigned char>(bytes_[at_++]) % below;
  }
  const std::string& known() {
    const unsigned high = take(256);
    return known_texts()[(high * 256 + take(256)) % known_texts().size()];
  }
  char next_digit() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<char>('0' + (state_ >> 40U) % 10);
  }
  std::string with_other_numbers(std::string_view text) {
    std::string result(text);
    for (char& c : result)
      if (c >= '0' && c <= '9') c = next_digit();
    return result;
  }
  void add(std::string_view text) {
    text_ += text;
    blocks_.emplace_back(text);
    for (const char c : text) lines_ += ends_line(c) ? 1 : 0;
  }
  std::string_view end() {
    constexpr std::array<std::string_view, 6> kEnds = {"\n", "\n", "\r\n", "\r", "\n\n", ""};
    return kEnds[take(kEnds.size())];
  }
  std::string_view prefix() {
    constexpr std::array<std::string_view, 8> kPrefixes = {
        "",   "",    "[rank0]: ", "web-1  | ", "2026-01-02 03:04:05,678 ", "(EngineCore_0 pid=17) ",
        "  ", "[1] "};
    return kPrefixes[take(kPrefixes.size())];
  }
  std::string_view filler() {
    constexpr std::array<std::string_view, 14> kFillers = {
        "step 1000 of 9000, loss 0.25",
        "status 12 left",
        "status 12, left",
        "id deadbeef12 left",
        "id deadbeef1: left",
        "at 0x7f00deadbeef 17",
        "é 12 \xff\xfe 7",
        "  File \"<frozen importlib._bootstrap>\", line 1360, in _find_and_load",
        "  File \"/app/main.py\", line 3, in <module>",
        "Traceback (most recent call last):",
        "ImportError",
        "exited with code 139",
        "[WinError 126]",
        ""};
    return kFillers[take(kFillers.size())];
  }
  // What was written last, again and again, with something between.
  void repeat() {
    const size_t count = std::min<size_t>(1 + take(6), blocks_.size());
    const std::vector<std::string> again(blocks_.end() - static_cast<ptrdiff_t>(count),
                                         blocks_.end());
    const unsigned times = 1 + take(24), mode = take(4), at = take(24);
    const std::string between = std::string(filler()) + "\n";
    for (unsigned i = 0; i < times && lines_ < kMostLines && text_.size() < kMostText; i++) {
      for (const std::string& block : again) add(mode % 2 ? with_other_numbers(block) : block);
      if (mode >= 2 || i == at) add(i == at ? std::string(known()) + "\n" : between);
    }
  }
  // A failure of several lines whose first ones were there before, with others behind them.
  void goes_on() {
    static const std::vector<std::string> texts = [] {
      std::vector<std::string> some;
      for (const std::string& text : known_texts())
        if (text.find('\n') != text.npos) some.push_back(text);
      return some;
    }();
    const std::string& whole = texts[take(static_cast<unsigned>(texts.size()))];
    size_t cut = whole.find('\n');
    for (unsigned more = take(3); more > 0 && whole.find('\n', cut + 1) != whole.npos; more--)
      cut = whole.find('\n', cut + 1);
    std::string before, behind;
    for (unsigned count = take(40), same = take(2) ? 0 : take(14); count > 0; count--)
      before += fmt::format("{} {}\n", count, same ? "step 1000 of 9000, loss 0.25" : filler());
    for (unsigned count = take(4); count > 0; count--) behind += std::string(filler()) + "\n";
    const unsigned times = 1 + take(9), other = take(2);
    for (unsigned i = 0; i < times; i++) {
      const std::string turn = before + whole.substr(0, cut) + "\n" + behind;
      add(other ? with_other_numbers(turn) : turn);
    }
    add(before + whole + "\n" + behind);
  }
  void part() {
    switch (take(12)) {
      case 0:
      case 1:
        return add(std::string(prefix()) + known() + std::string(end()));
      case 2:
        return add(std::string(prefix()) + with_other_numbers(known()) + std::string(end()));
      case 3:
      case 4:
        return add(std::string(prefix()) + std::string(filler()) + std::string(end()));
      case 5: {
        const std::string& whole = known();
        const size_t begin = take(256) % whole.size();
        return add(whole.substr(begin, 1 + take(256)) + std::string(end()));
      }
      case 6: {
        const unsigned count = take(12);
        const std::string_view bytes = bytes_.substr(std::min(at_, bytes_.size()), count);
        at_ += count;
        return add(std::string(bytes) + std::string(end()));
      }
      case 7:
        return add(std::string(take(24), take(2) ? '\n' : '\r'));
      case 8:
      case 9:
        return goes_on();
      default:
        return repeat();
    }
  }

  std::string_view bytes_;
  size_t at_ = 0, lines_ = 0;
  uint64_t state_ = 1;
  std::string text_;
  std::vector<std::string> blocks_;
};

// Every pattern that needs a literal, and all of them in one expression.
class Plain {
 public:
  struct Pattern {
    uint32_t mechanism = 0, index = 0;
    bool is_tell = false, goes_on = false;
    std::unique_ptr<RE2> expression;
  };
  using Ids = std::vector<size_t>;

  Plain() : all_(options(), RE2::UNANCHORED) {
    for (uint32_t i = 0; i < known_mechanisms().size(); i++) {
      const Mechanism& mechanism = known_mechanisms()[i];
      for (uint32_t j = 0; j < mechanism.signals.size(); j++)
        if (!mechanism.signals[j].at_end) add(i, j, false, mechanism.signals[j].pattern);
      for (uint32_t j = 0; j < mechanism.tells.size(); j++)
        add(i, j, true, mechanism.tells[j].pattern);
    }
    if (!all_.Compile()) std::abort();
  }
  const Pattern& operator[](size_t id) const { return patterns_[id]; }
  size_t size() const { return patterns_.size(); }

  // What begins in the first line of a window.
  const Ids& of(const std::string& window, size_t first_line) {
    if (known_.size() > (1 << 15)) known_.clear();
    const auto [entry, is_new] = known_.try_emplace(window);
    if (!is_new) return entry->second;
    const std::string line = window.substr(0, first_line);
    for (const bool goes_on : {false, true})
      for (const int id : candidates(goes_on ? window : line)) {
        const Pattern& pattern = patterns_[static_cast<size_t>(id)];
        const re2::StringPiece piece(goes_on ? window : line);
        re2::StringPiece all;
        if (pattern.goes_on == goes_on &&
            pattern.expression->Match(piece, 0, piece.size(), RE2::UNANCHORED, &all, 1) &&
            static_cast<size_t>(all.data() - piece.data()) <= first_line)
          entry->second.push_back(static_cast<size_t>(id));
      }
    return entry->second;
  }

 private:
  static RE2::Options options() {
    RE2::Options options(RE2::Latin1);
    options.set_max_mem(int64_t{512} << 20);
    return options;
  }
  void add(uint32_t mechanism, uint32_t index, bool is_tell, std::string_view pattern) {
    const std::string text = safe_for_latin1(pattern);
    const bool goes_on = text.find("\\n") != text.npos || text.find("\\s") != text.npos;
    patterns_.push_back(
        {mechanism, index, is_tell, goes_on, std::make_unique<RE2>(text, RE2::Latin1)});
    if (all_.Add(text, nullptr) < 0) std::abort();
  }
  std::vector<int> candidates(const std::string& text) const {
    std::vector<int> ids;
    RE2::Set::ErrorInfo error{};
    if (!all_.Match(text, &ids, &error) && error.kind != RE2::Set::kNoError) {
      ids.clear();
      for (size_t i = 0; i < patterns_.size(); i++) ids.push_back(static_cast<int>(i));
    }
    return ids;
  }

  std::vector<Pattern> patterns_;
  RE2::Set all_;
  std::unordered_map<std::string, Ids> known_;
};

struct Line {
  size_t begin = 0;
  std::string text;    // without prefix
  std::string window;  // with the next lines
  std::string raw;     // but for numbers
};

// No text at all where a line is too long to be looked at as a whole.
std::vector<std::pair<size_t, std::string_view>> split(std::string_view text) {
  std::vector<std::pair<size_t, std::string_view>> lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && !ends_line(text[end])) end++;
    if (end - at >= kLongLine) return {};
    if (end > at) lines.emplace_back(at, text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

bool is_hexadecimal(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

std::string without_numbers(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_hexadecimal(text[end])) end++;
    const std::string_view word = text.substr(at, end - at);
    if (word.find_first_of("0123456789") == word.npos)
      result += word;
    else
      result += '0';
    if (end < text.size() && text[end] != 0) result += text[end];
    at = end + 1;
  }
  return result;
}

std::vector<Line> lines_of(std::string_view text) {
  const auto pieces = split(text);
  std::vector<Line> lines;
  for (size_t i = 0; i < pieces.size(); i++) {
    Line line;
    line.begin = pieces[i].first;
    line.text = without_prefix(pieces[i].second);
    line.raw = without_numbers(pieces[i].second);
    line.window = line.text;
    for (size_t j = i + 1, count = 1, frames = 0; j < pieces.size() && count < kWindowLines; j++) {
      const std::string_view next = without_prefix(pieces[j].second);
      const bool is_frame =
          next.starts_with("  File \"<frozen importlib") && next.find(", in ") != next.npos;
      if (frames < kMostFrames && (next.empty() || is_frame)) {
        frames++;
        continue;
      }
      line.window.append("\n").append(next);
      count++;
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

using Key = std::pair<size_t, size_t>;  // a place, a pattern

[[noreturn]] void complain(const char* what, const Plain::Pattern& pattern, size_t at,
                           std::string_view line) {
  std::fprintf(stderr, "%s: %s, %s %u, at %zu: %.*s\n", what,
               std::string(known_mechanisms()[pattern.mechanism].slug).c_str(),
               pattern.is_tell ? "tell" : "signal", pattern.index, at,
               static_cast<int>(line.size()), line.data());
  std::abort();
}

void compare(std::string_view text, const std::vector<Match>& found) {
  static Plain plain;
  static const auto ids = [] {
    std::map<std::array<uint32_t, 3>, size_t> result;
    for (size_t id = 0; id < plain.size(); id++)
      result[{plain[id].mechanism, plain[id].index, plain[id].is_tell}] = id;
    return result;
  }();
  const std::vector<Line> lines = lines_of(text);
  if (lines.empty() || lines.size() > 2 * kMostLines) return;
  std::set<Key> left;
  for (const Match& match : found)
    if (const auto id = ids.find({match.mechanism, match.index, match.is_tell}); id != ids.end())
      left.emplace(match.at, id->second);
  const std::set<Key> all = left;
  std::vector<bool> settled(plain.size());
  std::unordered_map<std::string, size_t> seen_lines;
  std::set<std::string> seen_windows;
  for (const Line& line : lines) {
    const std::string window = line.raw + "\n" + without_numbers(line.window);
    const size_t before = seen_lines[line.raw]++;
    const bool window_before = !seen_windows.insert(window).second;
    for (const size_t id : plain.of(line.window, line.text.size())) {
      const bool is_there = left.erase({line.begin, id}) > 0;
      if (is_there) settled[id] = true;
      const bool may_miss = plain[id].goes_on ? before >= kSameLines || window_before : before > 0;
      if (!settled[id] && !may_miss) complain("missed", plain[id], line.begin, line.window);
    }
  }
  if (!left.empty())
    complain("found where it is not", plain[left.begin()->second], left.begin()->first, "");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Matcher matcher;
  if (size > kMostInput) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const LogText log(size && !data[0] ? Writer(bytes.substr(1)).text() : std::string(bytes));
  if (std::getenv("SHOW_TEXT")) std::fwrite(log.text().data(), 1, log.text().size(), stdout);
  compare(log.text(), matcher.find(log.text()));
  (void)explain_text(log.text(), matcher);
  return 0;
}
