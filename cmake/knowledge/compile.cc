// Makes tables of data/mechanisms when the command is built: compile_knowledge OUTPUT FILE...
// writes, as C++, the mechanisms (src/explain/knowledge.h) and what their patterns need in a text
// (src/explain/needs.h).
//
// RE2 answers, for a set of literals, whether an expression can match a text with these and no
// others. The answer is monotone. A set of literals of which each match contains one is a need;
// here the smallest such sets are found by leaving out literals as long as "none of them" stays "no
// match".
#include <fmt/format.h>
#include <re2/filtered_re2.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "explain/literals.h"
#include "explain/needs.h"
#include "explain/patterns.h"
#include "mechanism_file.h"
#include "tables.h"

namespace {

using namespace cohabit::explain;

// One expression, asked by the literals that a text has.
class Question {
 public:
  bool is_expression(std::string_view pattern) {
    RE2::Options options(RE2::Latin1);
    options.set_log_errors(false);
    int id = 0;
    const re2::StringPiece text(pattern.data(), pattern.size());
    if (filter_.Add(text, options, &id) != RE2::NoError) return false;
    filter_.Compile(&words_);
    return true;
  }
  const std::vector<std::string>& words() const { return words_; }
  bool can_match(const std::vector<bool>& is_there) const {
    std::vector<int> there, potentials;
    for (size_t i = 0; i < is_there.size(); i++)
      if (is_there[i]) there.push_back(static_cast<int>(i));
    filter_.AllPotentials(there, &potentials);
    return !potentials.empty();
  }

 private:
  re2::FilteredRE2 filter_{static_cast<int>(Literals::kShortest)};
  std::vector<std::string> words_;
};

// A smallest need that still has this literal where that is possible; the others are left out
// first.
std::vector<bool> need_with(const Question& question, size_t wanted) {
  const size_t count = question.words().size();
  std::vector<bool> need(count, true), others(count, false);
  const auto leave_out = [&](size_t i) {
    others[i] = true;
    if (question.can_match(others)) others[i] = false;
    need[i] = !others[i];
  };
  for (size_t i = 0; i < count; i++)
    if (i != wanted) leave_out(i);
  leave_out(wanted);
  return need;
}

// Every literal that matters is in one of them.
std::vector<std::vector<bool>> needs_of(const Question& question) {
  std::vector<std::vector<bool>> needs;
  for (size_t i = 0; i < question.words().size(); i++) {
    if (std::any_of(needs.begin(), needs.end(), [&](const auto& need) { return need[i]; }))
      continue;
    if (auto need = need_with(question, i); need[i]) needs.push_back(std::move(need));
  }
  return needs;
}

struct Table {
  std::map<std::string, std::vector<Needs::Use>> words;
  std::vector<size_t> needs;
};

void add(const Question& question, size_t pattern, Table& table) {
  const auto needs = needs_of(question);
  for (size_t n = 0; n < needs.size(); n++)
    for (size_t i = 0; i < needs[n].size(); i++)
      if (needs[n][i])
        table.words[question.words()[i]].push_back(
            {static_cast<uint16_t>(pattern), static_cast<uint16_t>(n)});
  table.needs.push_back(needs.size());
}

std::string drawn(const Table& table) {
  std::string words, first, uses, needs;
  size_t count = 0;
  for (const auto& [word, of] : table.words) {
    words += quoted(word) + ",\n";
    first += fmt::format("{},", count);
    count += of.size();
    for (const Needs::Use& use : of) uses += fmt::format("{{{},{}}},", use.pattern, use.need);
    uses += '\n';
  }
  for (const size_t n : table.needs) needs += fmt::format("{},", n);
  return fmt::format(
      "const Needs& needs_of_patterns() {{\nstatic const Needs kNeeds = "
      "{{{{{}}},\n{{{}{}}},\n{{{}}},\n{{{}}}}};\nreturn kNeeds;\n}}\n",
      words, first, count, uses, needs);
}

// Every pattern's needs, or what is wrong with some.
cohabit::Result<Table> needs_of_all(const std::vector<Mechanism>& mechanisms) {
  const std::vector<Pattern> patterns = patterns_of(mechanisms);
  Table table;
  std::string wrong;
  for (size_t i = 0; i < patterns.size(); i++) {
    Question question;
    if (!question.is_expression(patterns[i].text))
      wrong += what_is(mechanisms, patterns[i]) + " is no regular expression of RE2\n";
    else if (question.can_match(std::vector<bool>(question.words().size(), false)))
      wrong += fmt::format("{} has no literal of {} characters that every match contains\n",
                           what_is(mechanisms, patterns[i]), Literals::kShortest);
    else
      add(question, i, table);
  }
  for (const Pattern& pattern : last_line_patterns_of(mechanisms))
    if (!Question().is_expression(pattern.text))
      wrong += what_is(mechanisms, pattern) + " is no regular expression of RE2\n";
  if (!wrong.empty()) return cohabit::fail(wrong);
  return table;
}

int complain(const std::string& what) {
  fmt::print(stderr, "{}\n", what);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return complain("usage: compile_knowledge OUTPUT FILE...");
  MechanismFiles files;
  for (int i = 2; i < argc; i++)
    if (const auto read = files.add(argv[i]); !read) return complain(read.error().message);
  const auto needs = needs_of_all(files.mechanisms());
  if (!needs) return complain(needs.error().message);
  std::ofstream file(argv[1]);
  file << "// Made by cmake/knowledge.\n#include \"explain/knowledge.h\"\n"
          "#include \"explain/needs.h\"\n\nnamespace cohabit::explain {\n\n"
          "using namespace std::string_view_literals;\n\n"
       << table_of(files.mechanisms()) << '\n'
       << drawn(*needs) << "\n}  // namespace cohabit::explain\n";
  file.close();
  return file ? 0 : complain(fmt::format("{} cannot be written", argv[1]));
}
