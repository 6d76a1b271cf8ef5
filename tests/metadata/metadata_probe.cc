// One question per line, fields separated by tabs; one answer per line.
//   version A        its canonical form, or "invalid"
//   compare A B      -1, 0, 1
//   contains S V     whether specifiers S take version V: true, false, invalid
//   marker M EXTRA   for CPython 3.11.7 on x86-64 Linux: true, false, invalid
//   requirement R    name|extras|sorted specifiers|url|marker, or "invalid"
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "facts/python/requirement.h"

using namespace cohabit;

namespace {

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields;
  size_t begin = 0;
  for (size_t tab; (tab = line.find('\t', begin)) != line.npos; begin = tab + 1)
    fields.push_back(line.substr(begin, tab - begin));
  fields.push_back(line.substr(begin));
  fields.resize(3);
  return fields;
}

std::string word(bool value) {
  return value ? "true" : "false";
}

MarkerEnvironment environment() {
  Interpreter interpreter;
  interpreter.major = 3;
  interpreter.minor = 11;
  interpreter.version = "3.11.7";
  interpreter.implementation = "CPython";
  interpreter.elf_machine = 62;
  return MarkerEnvironment::of(interpreter);
}

std::string about_requirement(const std::string& text) {
  const auto requirement = PackageRequirement::parse(text);
  if (!requirement) return "invalid";
  if (!requirement->marker.empty() && !evaluate_marker(requirement->marker, environment(), ""))
    return "invalid";
  std::vector<std::string> extras = requirement->extras, clauses;
  for (const VersionSpecifier& clause : requirement->specifiers.clauses())
    clauses.push_back(clause.text());
  std::sort(extras.begin(), extras.end());
  std::sort(clauses.begin(), clauses.end());
  std::string result = requirement->name + "|";
  for (const std::string& extra : extras) result += extra + ",";
  result += "|";
  for (const std::string& clause : clauses) result += clause + ",";
  return result + "|" + requirement->url + "|" + (requirement->marker.empty() ? "" : "marker");
}

// "a|b" of clauses of both and a version: whether both take it, by the clauses that are left of
// them.
std::string about_both(const std::string& clauses, const std::string& version) {
  const size_t bar = clauses.find('|');
  auto both = VersionSpecifiers::parse(clauses.substr(0, bar));
  const auto other = VersionSpecifiers::parse(clauses.substr(bar + 1));
  const auto asked = PythonVersion::parse(version);
  if (!both || !other || !asked) return "invalid";
  both->add(*other);
  return both->takes_nothing() ? "nothing" : word(both->contains(*asked));
}

std::string answer(const std::vector<std::string>& fields) {
  if (fields[0] == "both") return about_both(fields[1], fields[2]);
  if (fields[0] == "requirement") return about_requirement(fields[1]);
  if (fields[0] == "marker") {
    const auto value = evaluate_marker(fields[1], environment(), fields[2]);
    return value ? word(*value) : "invalid";
  }
  const auto first = PythonVersion::parse(fields[1]), second = PythonVersion::parse(fields[2]);
  if (fields[0] == "version") return first ? first->text() : "invalid";
  if (fields[0] == "compare")
    return first && second ? std::to_string(first->compare(*second)) : "invalid";
  const auto specifiers = VersionSpecifiers::parse(fields[1]);
  return specifiers && second ? word(specifiers->contains(*second)) : "invalid";
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) std::cout << answer(split(line)) << "\n";
}
