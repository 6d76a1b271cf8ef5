// PEP 440 orders 1.0.dev1 < 1.0a1.dev1 < 1.0a1 < 1.0 < 1.0+local < 1.0.post1, and its operators are
// not that order alone: "<1.0" refuses 1.0rc1, ">1.0" refuses 1.0.post1 and 1.0+cu124, "==1.0"
// takes 1.0+cu124 (of which torch wheels live). tests/metadata holds this file against `packaging`
// on thousands of random pairs.
#include "facts/python/version.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace cohabit {
namespace {

constexpr size_t kMaxLength = 512;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return result;
}

std::string_view strip(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

template <class T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

// Releases differ in length without differing: 1.0 is 1.0.0.
int compare_releases(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  for (size_t i = 0; i < std::max(a.size(), b.size()); i++) {
    const uint64_t left = i < a.size() ? a[i] : 0, right = i < b.size() ? b[i] : 0;
    if (left != right) return left < right ? -1 : 1;
  }
  return 0;
}

// Numbers come after words, and are compared by value: without leading zeros the longer is larger.
int compare_local_part(const std::string& a, const std::string& b) {
  const auto is_number = [](const std::string& part) {
    return std::all_of(part.begin(), part.end(), is_digit);
  };
  const bool left = is_number(a), right = is_number(b);
  if (left != right) return left ? 1 : -1;
  if (left && a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return three_way(a, b);
}

}  // namespace

// Reads left to right; each step takes what it can and leaves the rest.
class VersionParser {
 public:
  explicit VersionParser(std::string_view text) : owned_(lower(strip(text))), rest_(owned_) {}

  std::optional<PythonVersion> parse() {
    if (owned_.size() > kMaxLength) return std::nullopt;
    take('v');
    if (!read_release() || !read_pre() || !read_post() || !read_dev() || !read_local())
      return std::nullopt;
    if (!rest_.empty()) return std::nullopt;
    return std::move(result_);
  }

 private:
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take_separator() { return take('-') || take('_') || take('.'); }

  // Nothing if there is no digit; fails for good if the number is too large.
  std::optional<uint64_t> number() {
    if (rest_.empty() || !is_digit(rest_.front())) return std::nullopt;
    uint64_t value = 0;
    while (!rest_.empty() && is_digit(rest_.front())) {
      const uint64_t digit = static_cast<uint64_t>(rest_.front() - '0');
      overflow_ |=
          __builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value);
      rest_.remove_prefix(1);
    }
    return value;
  }

  bool read_release() {
    auto first = number();
    if (first && take('!')) {
      result_.epoch_ = *first;
      first = number();
    }
    if (!first) return false;
    result_.release_.push_back(*first);
    while (rest_.size() > 1 && rest_[0] == '.' && is_digit(rest_[1])) {
      rest_.remove_prefix(1);
      result_.release_.push_back(*number());
    }
    return !overflow_;
  }

  // [separator] WORD [separator] [number], where nothing is taken if the word is not there.
  template <size_t N>
  std::optional<std::pair<size_t, uint64_t>> word(const std::array<std::string_view, N>& words) {
    const std::string_view before = rest_;
    take_separator();
    for (size_t i = 0; i < N; i++) {
      if (!rest_.starts_with(words[i])) continue;
      rest_.remove_prefix(words[i].size());
      const std::string_view behind = rest_;
      take_separator();
      const auto value = number();
      if (!value) rest_ = behind;  // the separator belongs to what follows
      return std::pair{i, value.value_or(0)};
    }
    rest_ = before;
    return std::nullopt;
  }

  bool read_pre() {
    static constexpr std::array<std::string_view, 8> kWords = {"alpha", "beta", "preview", "pre",
                                                               "a",     "b",    "c",       "rc"};
    static constexpr std::string_view kLetters = "abrrabrr";
    if (const auto found = word(kWords))
      result_.pre_ = std::pair{kLetters[found->first], found->second};
    return !overflow_;
  }

  bool read_post() {
    static constexpr std::array<std::string_view, 3> kWords = {"post", "rev", "r"};
    if (rest_.size() > 1 && rest_[0] == '-' && is_digit(rest_[1])) {
      rest_.remove_prefix(1);
      result_.post_ = number();
    } else if (const auto found = word(kWords)) {
      result_.post_ = found->second;
    }
    return !overflow_;
  }

  bool read_dev() {
    static constexpr std::array<std::string_view, 1> kWords = {"dev"};
    if (const auto found = word(kWords)) result_.dev_ = found->second;
    return !overflow_;
  }

  bool read_local() {
    if (!take('+')) return true;
    std::string part;
    const auto flush = [&] {
      if (part.empty()) return false;
      if (std::all_of(part.begin(), part.end(), is_digit))
        part.erase(0, std::min(part.find_first_not_of('0'), part.size() - 1));
      result_.local_.push_back(std::move(part));
      part.clear();
      return true;
    };
    for (; !rest_.empty(); rest_.remove_prefix(1)) {
      const char c = rest_.front();
      if (is_digit(c) || (c >= 'a' && c <= 'z')) {
        part += c;
      } else if ((c != '-' && c != '_' && c != '.') || !flush()) {
        return false;
      }
    }
    return flush();
  }

  const std::string owned_;
  std::string_view rest_;
  bool overflow_ = false;
  PythonVersion result_;
};

std::optional<PythonVersion> PythonVersion::parse(std::string_view text) {
  return VersionParser(text).parse();
}

int PythonVersion::compare(const PythonVersion& other) const {
  if (epoch_ != other.epoch_) return epoch_ < other.epoch_ ? -1 : 1;
  if (const int order = compare_releases(release_, other.release_)) return order;
  // 1.0.dev1 comes before 1.0a1; without a pre-release part anything else comes behind 1.0rc1.
  const auto pre_key = [](const PythonVersion& v) {
    if (v.pre_) return std::tuple{1, v.pre_->first, v.pre_->second};
    const bool first = !v.post_ && v.dev_;
    return std::tuple{first ? 0 : 2, '\0', uint64_t{0}};
  };
  if (const int order = three_way(pre_key(*this), pre_key(other))) return order;
  if (const int order = three_way(post_, other.post_)) return order;  // none comes first
  const auto dev_key = [](const PythonVersion& v) {
    return std::pair{v.dev_ ? 0 : 1, v.dev_.value_or(0)};
  };
  if (const int order = three_way(dev_key(*this), dev_key(other))) return order;
  for (size_t i = 0; i < std::min(local_.size(), other.local_.size()); i++)
    if (const int order = compare_local_part(local_[i], other.local_[i])) return order;
  return three_way(local_.size(), other.local_.size());
}

std::string PythonVersion::text() const {
  std::string result;
  if (epoch_ != 0) result += std::to_string(epoch_) + "!";
  for (size_t i = 0; i < release_.size(); i++)
    result += (i == 0 ? "" : ".") + std::to_string(release_[i]);
  if (pre_)
    result +=
        (pre_->first == 'r' ? "rc" : std::string(1, pre_->first)) + std::to_string(pre_->second);
  if (post_) result += ".post" + std::to_string(*post_);
  if (dev_) result += ".dev" + std::to_string(*dev_);
  for (size_t i = 0; i < local_.size(); i++) result += (i == 0 ? "+" : ".") + local_[i];
  return result;
}

PythonVersion PythonVersion::without_local() const {
  PythonVersion result = *this;
  result.local_.clear();
  return result;
}

bool PythonVersion::has_below(const PythonVersion& version) const {
  PythonVersion bound = *this;
  if (!is_prerelease()) bound.dev_ = 0;
  return version < bound;
}

bool PythonVersion::has_above(const PythonVersion& version) const {
  PythonVersion next = without_local();
  if (dev_) {  // development versions have no post-releases
    next.dev_ = *dev_ + 1;
    return !(version < next);
  }
  if (post_) {
    next.post_ = *post_ + 1;
    next.dev_ = 0;
    return !(version < next);
  }
  const bool belongs = version.epoch_ == epoch_ && version.pre_ == pre_ &&
                       compare_releases(version.release_, release_) == 0;
  return *this < version && !belongs;
}

// ---- specifiers

std::optional<VersionSpecifier> VersionSpecifier::parse(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, Operator>, 8> kOperators = {{
      {"===", Operator::kText},
      {"~=", Operator::kCompatible},
      {"==", Operator::kEqual},
      {"!=", Operator::kNot},
      {"<=", Operator::kMost},
      {">=", Operator::kLeast},
      {"<", Operator::kLess},
      {">", Operator::kMore},
  }};
  text = strip(text);
  VersionSpecifier result;
  const auto* found = std::find_if(kOperators.begin(), kOperators.end(), [&](const auto& entry) {
    return text.starts_with(entry.first);
  });
  if (found == kOperators.end()) return std::nullopt;
  result.operator_ = found->second;
  std::string_view version = strip(text.substr(found->first.size()));
  result.text_ = std::string(found->first) + std::string(version);
  if (result.operator_ == Operator::kText) {
    result.wanted_ = lower(version);
    const bool odd = std::any_of(version.begin(), version.end(),
                                 [](char c) { return is_space(c) || c == ';' || c == ')'; });
    return odd || version.empty() ? std::nullopt : std::optional(std::move(result));
  }
  const bool equality = result.operator_ == Operator::kEqual || result.operator_ == Operator::kNot;
  if (equality && version.ends_with(".*")) {
    result.wildcard_ = true;
    version.remove_suffix(2);
  }
  const auto parsed = PythonVersion::parse(version);
  if (!parsed) return std::nullopt;
  result.version_ = *parsed;
  if (parsed->has_local() && (!equality || result.wildcard_)) return std::nullopt;
  if (result.wildcard_ && (parsed->is_prerelease() || parsed->is_postrelease()))
    return std::nullopt;
  if (result.operator_ == Operator::kCompatible && parsed->release().size() < 2)
    return std::nullopt;
  return result;
}

// The first `parts` numbers of the release are those of ours.
bool VersionSpecifier::matches_release(const PythonVersion& version, size_t parts) const {
  if (version.epoch() != version_.epoch()) return false;
  const std::vector<uint64_t>&have = version.release(), &want = version_.release();
  for (size_t i = 0; i < parts; i++)
    if ((i < have.size() ? have[i] : 0) != (i < want.size() ? want[i] : 0)) return false;
  return true;
}

bool VersionSpecifier::contains(const PythonVersion& version) const {
  const PythonVersion plain = version.without_local();
  const auto equal = [&] {
    if (wildcard_) return matches_release(version, version_.release().size());
    return (version_.has_local() ? version : plain) == version_;
  };
  switch (operator_) {
    case Operator::kCompatible:
      return !(plain < version_) && matches_release(version, version_.release().size() - 1);
    case Operator::kEqual:
      return equal();
    case Operator::kNot:
      return !equal();
    case Operator::kMost:
      return !(version_ < plain);
    case Operator::kLeast:
      return !(plain < version_);
    case Operator::kLess:
      return version_.has_below(version);
    case Operator::kMore:
      return version_.has_above(version);
    default:
      return version.text() == wanted_;
  }
}

bool VersionSpecifier::excludes_from_above(const PythonVersion& version) const {
  if (operator_ == Operator::kText || operator_ == Operator::kNot) return false;
  return !contains(version) && version_ < version;
}

std::optional<VersionSpecifiers> VersionSpecifiers::parse(std::string_view text) {
  VersionSpecifiers result;
  if (text.size() > kMaxLength * 8) return std::nullopt;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view clause = strip(text.substr(begin, end - begin));
    begin = end + 1;
    if (clause.empty()) continue;
    auto parsed = VersionSpecifier::parse(clause);
    if (!parsed) return std::nullopt;
    result.clauses_.push_back(std::move(*parsed));
  }
  return result;
}

bool VersionSpecifiers::contains(const PythonVersion& version) const {
  return std::all_of(clauses_.begin(), clauses_.end(),
                     [&](const VersionSpecifier& clause) { return clause.contains(version); });
}

bool VersionSpecifier::is_implied_by(const VersionSpecifier& other) const {
  if (text_ == other.text_) return true;
  const bool bounds_above =
      other.operator_ == Operator::kLess || other.operator_ == Operator::kMost;
  switch (operator_) {
    case Operator::kLeast:
      return other.least() && contains(*other.least());
    case Operator::kMost:
      return bounds_above && !(version_ < other.version_);
    case Operator::kLess:  // takes no pre-release of its version
      return bounds_above && (contains(other.version_) ||
                              (other.operator_ == Operator::kLess && other.version_ == version_));
    case Operator::kNot:
      return !wildcard_ && !other.contains(version_);
    default:
      return false;
  }
}

bool VersionSpecifier::is_bound_above() const {
  return operator_ == Operator::kLess || operator_ == Operator::kMost ||
         operator_ == Operator::kEqual || operator_ == Operator::kCompatible;
}

const PythonVersion* VersionSpecifier::least() const {
  const bool is_bound = operator_ == Operator::kLeast || operator_ == Operator::kCompatible ||
                        operator_ == Operator::kEqual;
  return is_bound && !wildcard_ ? &version_ : nullptr;
}

void VersionSpecifiers::add(const VersionSpecifiers& other) {
  for (const VersionSpecifier& clause : other.clauses_) {
    const auto implied = [&](const VersionSpecifier& one) { return clause.is_implied_by(one); };
    if (std::any_of(clauses_.begin(), clauses_.end(), implied)) continue;
    std::erase_if(clauses_, [&](const auto& one) { return one.is_implied_by(clause); });
    clauses_.push_back(clause);
  }
}

bool VersionSpecifiers::takes_nothing() const {
  for (const VersionSpecifier& low : clauses_)
    for (const VersionSpecifier& high : clauses_)
      if (low.least() && high.is_bound_above() && !high.contains(*low.least()) &&
          high.excludes_from_above(*low.least()))
        return true;
  return false;
}

std::string VersionSpecifiers::text() const {
  std::string result;
  for (const VersionSpecifier& clause : clauses_)
    result += (result.empty() ? "" : ",") + clause.text();
  return result;
}

}  // namespace cohabit
