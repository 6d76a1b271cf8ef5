// Versions and version specifiers of Python distributions (PEP 440, in the reading of `packaging`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cohabit {

// "1!2.0.post1.dev3+cu124". Numbers beyond 64 bits are not versions for us.
class PythonVersion {
 public:
  static std::optional<PythonVersion> parse(std::string_view text);

  // Below zero, zero or above, in the order of PEP 440.
  int compare(const PythonVersion& other) const;
  bool operator==(const PythonVersion& other) const { return compare(other) == 0; }
  bool operator<(const PythonVersion& other) const { return compare(other) < 0; }

  std::string text() const;  // the canonical form: "1.0rc1" of "v1.0-RC1"
  uint64_t epoch() const { return epoch_; }
  const std::vector<uint64_t>& release() const { return release_; }
  bool is_prerelease() const { return pre_ || dev_; }
  bool is_postrelease() const { return post_.has_value(); }
  bool has_local() const { return !local_.empty(); }
  PythonVersion without_local() const;
  // Whether "<this" and ">this" take a version: neither takes what belongs to this one, its
  // development versions and pre-releases below, its post-releases and local versions above.
  bool has_below(const PythonVersion& version) const;
  bool has_above(const PythonVersion& version) const;

 private:
  friend class VersionParser;
  uint64_t epoch_ = 0;
  std::vector<uint64_t> release_;
  std::optional<std::pair<char, uint64_t>> pre_;  // 'a', 'b' or 'r'
  std::optional<uint64_t> post_, dev_;
  std::vector<std::string> local_;  // lower case, without leading zeros
};

// One clause: an operator and a version, "!= 1.4.*".
class VersionSpecifier {
 public:
  static std::optional<VersionSpecifier> parse(std::string_view text);
  // Pre-releases count: the question is whether what is installed will do, not what to install.
  bool contains(const PythonVersion& version) const;
  // The side on which a version that is not contained lies: true if it is too high. Of "!=" and
  // "===" nothing is said: false.
  bool excludes_from_above(const PythonVersion& version) const;
  const std::string& text() const { return text_; }  // without spaces: "!=1.4.*"
  // Whether it takes all that the other takes, as far as two bounds on one side tell.
  bool is_implied_by(const VersionSpecifier& other) const;
  bool is_bound_above() const;  // "<2", "<=2", "==2", "~=2.1"
  // The least version that it takes, if it names one: ">=1.2", "==1.2", "~=1.2". "==1.2.*"
  // takes pre-releases of 1.2 too.
  const PythonVersion* least() const;

 private:
  enum class Operator : uint8_t { kCompatible, kEqual, kNot, kLess, kMost, kMore, kLeast, kText };
  bool matches_release(const PythonVersion& version, size_t parts) const;

  Operator operator_ = Operator::kEqual;
  bool wildcard_ = false;
  PythonVersion version_;  // of kText: unused
  std::string wanted_;     // of kText: lower case
  std::string text_;
};

// Clauses separated by commas, all of which must hold; none at all: every version will do.
class VersionSpecifiers {
 public:
  static std::optional<VersionSpecifiers> parse(std::string_view text);
  bool contains(const PythonVersion& version) const;
  const std::vector<VersionSpecifier>& clauses() const { return clauses_; }
  std::string text() const;
  // The other's clauses too; those that another implies are left out.
  void add(const VersionSpecifiers& other);
  // A bound from below lies where another clause takes nothing any more: no version will do.
  bool takes_nothing() const;

 private:
  std::vector<VersionSpecifier> clauses_;
};

}  // namespace cohabit
