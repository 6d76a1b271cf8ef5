#include "sim/rules.h"

namespace cohabit::sim {
namespace {

constexpr std::array<std::string_view, kRuleCount> kNames = {
    "breadth-first",
    "soname-match",
    "name-match",
    "file-id-match",
    "rpath",
    "rpath-inherited",
    "rpath-of-program",
    "runpath-voids-rpath",
    "runpath",
    "runpath-not-inherited",
    "library-path",
    "library-path-order",
    "ld-cache",
    "default-directories",
    "nodeflib",
    "hwcaps",
    "origin",
    "caller-dropped",
    "skip-wrong-class",
    "preload",
    "global-promotion",
    "promotion-after-init",
    "promotion-of-loaded",
    "deepbind",
    "deepbind-new-only",
    "symbolic",
    "scope-appended",
    "version-match",
    "unversioned-satisfies",
    "hidden-version",
    "unversioned-reference",
    "version-check",
    "version-records",
    "weak-is-strong",
    "unique",
    "unique-nodelete",
    "protected",
    "hidden-visibility",
    "copy-skips-program",
    "plt-value-not-definition",
    "relocation-order",
    "failure-unwinds",
    "close-unmaps",
    "relocation-dependency",
    "nodelete",
    "noload",
    "lazy",
    "namespaces",
    "loader-relocated-last",
    "static-tls",
    "filter",
    "mappable",
    "relr-version",
    "cpu-level",
    "indirect-access",
    "loader-malloc",
};

}  // namespace

std::string_view rule_name(Rule rule) {
  return kNames[static_cast<size_t>(rule)];
}

std::optional<Rule> find_rule(std::string_view name) {
  for (size_t i = 0; i < kRuleCount; i++)
    if (kNames[i] == name) return static_cast<Rule>(i);
  return std::nullopt;
}

}  // namespace cohabit::sim
