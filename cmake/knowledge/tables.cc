#include "tables.h"

#include <fmt/format.h>

#include <cctype>

namespace cohabit::explain {
namespace {

std::string row_of(std::string_view text) {
  return quoted(text);
}

std::string row_of(const Signal& signal) {
  return fmt::format("{{{}, {}, Weight{{{}}}, {}, {}}}", quoted(signal.pattern), signal.confidence,
                     static_cast<int>(signal.weight), quoted(signal.fix), signal.at_end);
}

std::string row_of(const Tell& tell) {
  return fmt::format("{{{}, {}}}", quoted(tell.pattern), tell.adds);
}

std::string row_of(const Fix& fix) {
  return fmt::format("{{{}, {}, {}, {}, Safety{{{}}}}}", quoted(fix.id), quoted(fix.kind),
                     quoted(fix.text), quoted(fix.command), static_cast<int>(fix.safety));
}

std::string row_of(const WrongAdvice& wrong) {
  return fmt::format("{{{}, {}}}", quoted(wrong.advice), quoted(wrong.reason));
}

std::string row_of(const Check& check) {
  return fmt::format("{{{}, {}}}", quoted(check.kind), quoted(check.argument));
}

// The arrays that mechanisms refer to.
class Arrays {
 public:
  // The name of one with these rows; there is no array without a row.
  template <class Row>
  std::string add(std::string_view type, std::span<const Row> rows) {
    if (rows.empty()) return "{}";
    const std::string name = fmt::format("kRows{}", count_++);
    text_ += fmt::format("constexpr {} {}[] = {{\n", type, name);
    for (const Row& row : rows) text_ += row_of(row) + ",\n";
    text_ += "};\n";
    return name;
  }
  const std::string& text() const { return text_; }

 private:
  size_t count_ = 0;
  std::string text_;
};

std::string row_of(const Mechanism& mechanism, Arrays& arrays) {
  const auto texts = [&](Texts rows) { return arrays.add("std::string_view", rows); };
  return fmt::format(
      "{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}", quoted(mechanism.slug),
      quoted(mechanism.code), quoted(mechanism.headline), quoted(mechanism.explanation),
      quoted(mechanism.decides), texts(mechanism.consequence_of), texts(mechanism.specializes),
      arrays.add("Signal", mechanism.signals), arrays.add("Tell", mechanism.tells),
      arrays.add("Fix", mechanism.fixes), arrays.add("WrongAdvice", mechanism.wrong_advice),
      arrays.add("Check", mechanism.checks), texts(mechanism.sources));
}

}  // namespace

// The suffix keeps a NUL. Escapes of three digits end where they end, whatever follows.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == ' ')
      result += c;
    else
      result += fmt::format("\\{:03o}", byte);
  }
  return result + "\"sv";
}

std::string table_of(const std::vector<Mechanism>& mechanisms) {
  Arrays arrays;
  std::string rows;
  for (const Mechanism& mechanism : mechanisms) rows += row_of(mechanism, arrays) + ",\n";
  return fmt::format(
      "namespace {{\n{}constexpr Mechanism kMechanisms[] = {{\n{}}};\n}}  // namespace\n\n"
      "std::span<const Mechanism> known_mechanisms() {{ return kMechanisms; }}\n",
      arrays.text(), rows);
}

}  // namespace cohabit::explain
