// The files of data/mechanisms, read when the command is built.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "base/result.h"
#include "explain/knowledge.h"

namespace cohabit::explain {

// Keeps what the mechanisms are views of.
class MechanismFiles {
 public:
  // An error is a mistake in the file, with its path.
  Result<void> add(const std::string& path);
  const std::vector<Mechanism>& mechanisms() const { return mechanisms_; }

 private:
  std::string_view keep(std::string text);
  template <class Row>
  std::span<const Row> keep_all(std::vector<Row> rows) {
    return std::get<std::deque<std::vector<Row>>>(rows_).emplace_back(std::move(rows));
  }
  std::string_view text_of(const toml::table& table, std::string_view key);
  Texts texts_of(const toml::table& table, std::string_view key);
  std::span<const Signal> signals_of(const toml::table& table);
  template <class Row, class Function>
  std::span<const Row> rows_of(const toml::table& table, std::string_view key, Function make);
  void read_lists(const toml::table& table, Mechanism& mechanism);

  std::vector<Mechanism> mechanisms_;
  std::deque<std::string> texts_;
  std::tuple<std::deque<std::vector<std::string_view>>, std::deque<std::vector<Signal>>,
             std::deque<std::vector<Tell>>, std::deque<std::vector<Fix>>,
             std::deque<std::vector<WrongAdvice>>, std::deque<std::vector<Check>>>
      rows_;
};

}  // namespace cohabit::explain
