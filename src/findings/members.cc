#include "findings/members.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "base/sha256.h"
#include "findings/member_code.h"

namespace cohabit {
namespace {

constexpr double kFewestMembers = 4;  // of both copies together: less tells little
constexpr double kOverlap = 0.6, kNearlyAll = 0.9, kMost = 0.8;
constexpr size_t kMostOffsets = 1 << 20;  // of all functions

// As words that a bundle can hold: "!" for state, "?" for what is not whole, the function's own
// offsets, those with helpers.
std::string words_of(const MembersReached& reached) {
  return fmt::format("{}{}{};{}", reached.keeps_state ? "!" : "", reached.is_whole ? "" : "?",
                     fmt::join(reached.offsets, ","), fmt::join(reached.with_helpers, ","));
}

bool take(std::string_view& words, char mark) {
  if (!words.starts_with(mark)) return false;
  words.remove_prefix(1);
  return true;
}

std::vector<int32_t> read_offsets(std::string_view words) {
  std::vector<int32_t> offsets;
  const char* at = words.data();
  const char* const end = at + words.size();
  while (at < end) {
    int32_t offset = 0;
    const auto [next, error] = std::from_chars(at, end, offset);
    if (error != std::errc()) break;
    offsets.push_back(offset);
    at = next + (next < end ? 1 : 0);
  }
  return offsets;
}

MembersReached read_words(std::string_view words) {
  MembersReached reached;
  reached.keeps_state = take(words, '!');
  reached.is_whole = !take(words, '?');
  const size_t middle = std::min(words.find(';'), words.size());
  reached.offsets = read_offsets(words.substr(0, middle));
  reached.with_helpers = read_offsets(words.substr(std::min(middle + 1, words.size())));
  return reached;
}

// How much of what either reaches both reach. Small sets go to `small`, if that is given.
void count(const std::vector<int32_t>& one, const std::vector<int32_t>& other,
           LayoutComparison::Share& share, LayoutComparison::Share* small) {
  std::vector<int32_t> shared;
  std::set_intersection(one.begin(), one.end(), other.begin(), other.end(),
                        std::back_inserter(shared));
  const auto both = static_cast<double>(shared.size());
  const double either = static_cast<double>(one.size() + other.size()) - both;
  if (either >= kFewestMembers) {
    share.compared++;
    share.alike += both >= kOverlap * either;
  } else if (small && either > 0) {
    small->compared++;
    small->alike += one == other;
  }
}

}  // namespace

// Compilers differ in which helpers they inline, so with these less is asked for.
bool LayoutComparison::is_same() const {
  return is_known() && is_whole && !keeps_state && itself.is_at_least(kNearlyAll) &&
         small.is_at_least(kNearlyAll) && with_helpers.is_at_least(kMost) && reach == other_reach;
}

std::vector<MembersReached> members_reached(const Image& image,
                                            const std::vector<uint32_t>& symbols) {
  std::vector<MembersReached> reached(symbols.size());
  if (image.elf.machine != elf::EM_X86_64) return reached;
  const std::string list = fmt::format("{}", fmt::join(symbols, ","));
  const std::string kind = "members reached by " + hexadecimal(sha256(Bytes(list)));
  const auto words = image.extract(kind, [&](const elf::Object& object, Bytes file) {
    MemberCode code(object, file);
    MappedFile::Words found;
    size_t offsets = 0;
    for (const uint32_t symbol : symbols) {
      const MembersReached one = code.reached_by(symbol);
      offsets += one.offsets.size() + one.with_helpers.size();
      found.push_back(offsets <= kMostOffsets ? words_of(one) : "?");
    }
    return found;
  });
  for (size_t i = 0; i < std::min(words.size(), reached.size()); i++)
    reached[i] = read_words(words[i]);
  return reached;
}

LayoutComparison compare_layouts(const Image& one, const Image& other,
                                 const std::vector<std::pair<uint32_t, uint32_t>>& functions) {
  std::vector<uint32_t> of_one, of_other;
  for (const auto& [first, second] : functions) {
    of_one.push_back(first);
    of_other.push_back(second);
  }
  const std::vector<MembersReached> left = members_reached(one, of_one);
  const std::vector<MembersReached> right = members_reached(other, of_other);
  LayoutComparison result;
  const auto widen = [](int32_t& reach, const std::vector<int32_t>& offsets) {
    if (!offsets.empty()) reach = std::max(reach, offsets.back());
  };
  for (size_t i = 0; i < functions.size(); i++) {
    result.keeps_state |= left[i].keeps_state || right[i].keeps_state;
    result.is_whole &= left[i].is_whole && right[i].is_whole;
    count(left[i].offsets, right[i].offsets, result.itself, &result.small);
    count(left[i].with_helpers, right[i].with_helpers, result.with_helpers, nullptr);
    widen(result.reach, left[i].with_helpers);
    widen(result.other_reach, right[i].with_helpers);
  }
  return result;
}

}  // namespace cohabit
