#include "report/matrix.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "facts/cuda/gpu_host.h"
#include "report/painter.h"
#include "report/printable.h"

namespace cohabit::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;

// Cells in columns as wide as their widest; the first row is the heading.
class Cells {
 public:
  void add(std::vector<std::string> row) {
    widths_.resize(std::max(widths_.size(), row.size()));
    for (size_t i = 0; i < row.size(); i++) widths_[i] = std::max(widths_[i], row[i].size());
    rows_.push_back(std::move(row));
  }
  std::string text(const Painter& painter) const {
    std::string text;
    for (size_t at = 0; at < rows_.size(); at++) {
      std::string line;
      for (size_t i = 0; i < rows_[at].size(); i++)
        line += fmt::format("  {:<{}}", printable(rows_[at][i]), widths_[i]);
      line.erase(line.find_last_not_of(' ') + 1);
      text += (at == 0 ? painter.bold(line) : line) + "\n";
    }
    return text;
  }

 private:
  std::vector<size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

// "3.9-3.13", "3.10+", "3.8, 3.10"
std::string pythons_text(const cuda::Build& build) {
  if (build.pythons.empty()) return "?";
  if (build.any_later_python) return cuda::python_text(build.pythons.front()) + "+";
  std::string text;
  for (size_t i = 0; i < build.pythons.size(); i++) {
    size_t last = i;
    while (last + 1 < build.pythons.size() && build.pythons[last + 1] == build.pythons[last] + 1)
      last++;
    text += (text.empty() ? "" : ", ") + cuda::python_text(build.pythons[i]);
    if (last > i) text += "-" + cuda::python_text(build.pythons[last]);
    i = last;
  }
  return text;
}

// "7.5 8.0 9.0 10.3f, PTX 12.0": what is there for all GPUs of a kind hides what is for one of
// them.
std::string code_text(const cuda::Build& build) {
  if (build.cuda.is_cpu_only && build.code.empty()) return "none";
  if (!build.is_scanned) return "?";
  std::vector<std::string> machine, ptx;
  const auto has_plain = [&](const cuda::DeviceCode& code) {
    return std::any_of(build.code.begin(), build.code.end(), [&](const cuda::DeviceCode& other) {
      return other.kind == code.kind && other.sm == code.sm && !other.suffix;
    });
  };
  for (const cuda::DeviceCode& code : build.code) {
    if (code.suffix && has_plain(code)) continue;
    std::string name = cuda::sm_text(code.sm) + (code.suffix ? std::string(1, code.suffix) : "");
    (code.kind == cuda::CodeKind::kPtx ? ptx : machine).push_back(std::move(name));
  }
  std::string text = fmt::format("{}", fmt::join(machine, " "));
  if (!ptx.empty()) text += fmt::format("{}PTX {}", text.empty() ? "" : ", ", fmt::join(ptx, " "));
  return text.empty() ? "none" : text;
}

std::string cuda_text(const cuda::Build& build) {
  if (build.cuda.is_cpu_only) return "CPU";
  return build.cuda_text.empty() ? "?" : build.cuda_text;
}

std::string_view oldest_driver(const cuda::Build& build) {
  return build.cuda.version ? cuda::oldest_driver_for(*build.cuda.version) : "";
}

std::string_view own_driver(const cuda::Build& build) {
  return build.cuda.version ? cuda::full_driver_for(*build.cuda.version) : "";
}

std::string or_dash(std::string_view text) {
  return std::string(text.empty() ? "-" : text);
}

std::string certainty(const cuda::Build& build) {
  const std::string& from = build.cuda_from;
  return from.empty() ? "unknown" : from.substr(0, from.find_first_of(": "));
}

std::string name_of(const cuda::Build& build) {
  return fmt::format("{} {}{}{}", build.distribution, build.version,
                     build.backend.empty() ? "" : ".*+", build.backend);
}

std::string draw_builds(const MatrixPart& part, const Painter& painter) {
  Cells cells;
  cells.add({"release", "CUDA", "oldest driver", "its own driver", "GPUs it has code for", "Python",
             "glibc", "platform", "certainty", "released"});
  for (const Judged& one : part.builds) {
    const cuda::Build& build = *one.build;
    cells.add({name_of(build), cuda_text(build), or_dash(oldest_driver(build)),
               or_dash(own_driver(build)), code_text(build), pythons_text(build),
               or_dash(build.glibc), build.platform, certainty(build), or_dash(build.released)});
  }
  std::string text = painter.bold(part.name) + "\n" + cells.text(painter);
  if (part.left_out) text += fmt::format("  and {} older (--all)\n", part.left_out);
  return text;
}

std::string fit_text(const Judged& judged) {
  switch (judged.fit) {
    case Fit::kRuns:
      return judged.build->cuda.is_cpu_only ? "runs, on the CPU" : "runs";
    case Fit::kCompiled:
      return "runs, compiled by the driver at first use";
    case Fit::kCpuOnly:
      return "runs, on the CPU only";
    case Fit::kUnknown:
      return "may run";
    default:
      return "does not run";
  }
}

std::string draw_undeclared(const std::vector<const cuda::Undeclared*>& undeclared) {
  std::string text;
  for (const cuda::Undeclared* one : undeclared)
    text += fmt::format("      with {}: {} {} imports {} and does not require it ({})\n",
                        one->needs, one->distribution, one->version, one->module, one->imported_by);
  return text;
}

std::string draw_commands(const std::vector<InstallCommand>& commands) {
  std::string text;
  for (const InstallCommand& one : commands)
    text += one.command.empty()
                ? fmt::format("      {}: {}\n", one.installer, printable(one.missing))
                : fmt::format("      {}\n", printable(one.command));
  return text;
}

std::string draw_chosen(const MatrixPart& part, const Painter& painter) {
  if (part.chosen.empty()) {
    std::string text = painter.bold(part.name) + ": nothing fits\n";
    if (part.miss.build)
      text += fmt::format("    {}: {}\n", name_of(*part.miss.build),
                          printable(fmt::format("{}", fmt::join(part.miss.reasons, "; "))));
    return text;
  }
  std::string text = painter.bold(part.name) + "\n";
  for (const ChosenBuild& one : part.chosen) {
    const cuda::Build& build = *one.judged.build;
    const std::string built = build.cuda.is_cpu_only
                                  ? fmt::format("for the CPU, {}", certainty(build))
                                  : fmt::format("CUDA {}, {}; GPUs {}", cuda_text(build),
                                                certainty(build), code_text(build));
    text += fmt::format("    {}: {} ({}; Python {})\n", name_of(build), fit_text(one.judged), built,
                        pythons_text(build));
    for (const std::string& reason : one.judged.reasons)
      text += fmt::format("      {}\n", printable(reason));
    text += draw_undeclared(one.undeclared) + draw_commands(one.commands);
  }
  return text;
}

std::string draw_pair(const MatrixPair& pair, const Painter& painter) {
  std::string text = painter.bold(fmt::format("{} and {}", pair.first, pair.second));
  if (pair.rows.empty()) {
    text += pair.left_out ? ": no pair that was simulated fits this machine\n"
                          : ": no pair of them was simulated\n";
    return text + "    `cohabit doctor ENV` says it of an environment that has both\n";
  }
  text += " in one process, by `cohabit doctor` from real wheels\n";
  Cells cells;
  cells.add({"imported first", "then", "Python", "outcome", "with a GPU", "certainty", "day", ""});
  for (const cuda::SimulatedPair& row : pair.rows)
    cells.add({row.first, row.second, cuda::python_text(row.python), row.outcome, row.with_gpu,
               row.certainty, row.read, row.alone.empty() ? "" : "alone: " + row.alone});
  text += cells.text(painter);
  if (!pair.sound.empty())
    text += fmt::format("    sound: {}, imported in this order\n",
                        printable(fmt::format("{}", fmt::join(pair.sound, ", then "))));
  return text + draw_undeclared(pair.undeclared) + draw_commands(pair.commands);
}

std::string machine_text(const WantedMachine& wanted) {
  std::vector<std::string> facts;
  if (!wanted.driver.empty()) facts.push_back("driver " + wanted.driver);
  if (wanted.has_no_gpu) facts.emplace_back("no GPU");
  for (const int sm : wanted.sms) facts.push_back("compute capability " + cuda::sm_text(sm));
  if (!wanted.cuda.empty()) facts.push_back("CUDA " + wanted.cuda);
  if (wanted.python) facts.push_back("Python " + cuda::python_text(wanted.python));
  if (!wanted.glibc.empty()) facts.push_back("glibc " + wanted.glibc);
  if (!wanted.platform.empty()) facts.push_back(wanted.platform);
  return fmt::format("{}", fmt::join(facts, ", "));
}

Json dump_build(const Judged& judged) {
  const cuda::Build& build = *judged.build;
  Json json;
  json["framework"] = build.framework;
  json["distribution"] = build.distribution;
  json["version"] = build.version;
  json["install"] = build.install;
  json["backend"] = build.backend.empty() ? Json() : Json(build.backend);
  json["released"] = build.released.empty() ? Json() : Json(build.released);
  json["platform"] = build.platform;
  json["pythons"] = Json::array();
  for (const int python : build.pythons) json["pythons"].push_back(cuda::python_text(python));
  json["any_later_python"] = build.any_later_python;
  json["glibc"] = build.glibc.empty() ? Json() : Json(build.glibc);
  json["cuda"] = build.cuda_text.empty() ? Json() : Json(build.cuda_text);
  json["cuda_from"] = build.cuda_from.empty() ? "unknown" : build.cuda_from;
  json["oldest_driver"] = oldest_driver(build).empty() ? Json() : Json(oldest_driver(build));
  json["own_driver"] = own_driver(build).empty() ? Json() : Json(own_driver(build));
  json["code"] = build.is_scanned ? Json::array() : Json();
  for (const cuda::DeviceCode& code : build.code) json["code"].push_back(cuda::name_of(code));
  json["source"] = build.source;
  json["read"] = build.read;
  return json;
}

Json dump_judged(const Judged& judged) {
  Json json = dump_build(judged);
  json["fit"] = fit_name(judged.fit);
  json["reasons"] = judged.reasons;
  return json;
}

Json dump_undeclared(const std::vector<const cuda::Undeclared*>& undeclared) {
  Json json = Json::array();
  for (const cuda::Undeclared* one : undeclared)
    json.push_back({{"distribution", one->distribution},
                    {"version", one->version},
                    {"needs", one->needs},
                    {"module", one->module},
                    {"imported_by", one->imported_by},
                    {"source", one->wheel},
                    {"read", one->read}});
  return json;
}

Json dump_commands(const std::vector<InstallCommand>& commands) {
  Json json = Json::array();
  for (const InstallCommand& one : commands)
    json.push_back({{"installer", one.installer},
                    {"command", one.command.empty() ? Json() : Json(one.command)},
                    {"missing", one.missing.empty() ? Json() : Json(one.missing)}});
  return json;
}

Json dump_machine(const WantedMachine& wanted) {
  Json json;
  json["driver"] = wanted.driver.empty() ? Json() : Json(wanted.driver);
  json["compute_capabilities"] = Json::array();
  for (const int sm : wanted.sms) json["compute_capabilities"].push_back(cuda::sm_text(sm));
  json["python"] = wanted.python ? Json(cuda::python_text(wanted.python)) : Json();
  json["glibc"] = wanted.glibc.empty() ? Json() : Json(wanted.glibc);
  json["platform"] = wanted.platform.empty() ? Json() : Json(wanted.platform);
  json["cuda"] = wanted.cuda.empty() ? Json() : Json(wanted.cuda);
  return json;
}

}  // namespace

std::string table(const Matrix& matrix, bool colour) {
  const Painter painter(colour);
  std::string text;
  if (matrix.is_for_machine)
    text += fmt::format("for {}:\n\n", printable(machine_text(matrix.wanted)));
  bool is_first = true;
  const auto part_text = [&](const std::string& part) {
    text += (is_first ? "" : "\n") + part;
    is_first = false;
  };
  for (const MatrixPart& part : matrix.parts)
    part_text(matrix.is_for_machine ? draw_chosen(part, painter) : draw_builds(part, painter));
  for (const MatrixPair& pair : matrix.pairs) part_text(draw_pair(pair, painter));
  return text;
}

std::string json(const Matrix& matrix) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["machine"] = matrix.is_for_machine ? dump_machine(matrix.wanted) : Json();
  json["frameworks"] = Json::array();
  for (const MatrixPart& part : matrix.parts) {
    Json one = {{"name", part.name}, {"builds", Json::array()}};
    if (!matrix.is_for_machine)
      for (const Judged& build : part.builds) one["builds"].push_back(dump_build(build));
    one["left_out"] = part.left_out;
    one["chosen"] = Json::array();
    for (const ChosenBuild& chosen : part.chosen) {
      Json build = dump_judged(chosen.judged);
      build["undeclared"] = dump_undeclared(chosen.undeclared);
      build["commands"] = dump_commands(chosen.commands);
      one["chosen"].push_back(std::move(build));
    }
    one["nearest"] = part.miss.build ? dump_judged(part.miss) : Json();
    json["frameworks"].push_back(std::move(one));
  }
  json["pairs"] = Json::array();
  for (const MatrixPair& pair : matrix.pairs) {
    Json rows = Json::array();
    for (const cuda::SimulatedPair& row : pair.rows)
      rows.push_back({{"first", row.first},
                      {"second", row.second},
                      {"python", cuda::python_text(row.python)},
                      {"outcome", row.outcome},
                      {"with_gpu", row.with_gpu},
                      {"alone", row.alone},
                      {"certainty", row.certainty},
                      {"day", row.read}});
    json["pairs"].push_back({{"first", pair.first},
                             {"second", pair.second},
                             {"rows", std::move(rows)},
                             {"left_out", pair.left_out},
                             {"sound", pair.sound},
                             {"undeclared", dump_undeclared(pair.undeclared)},
                             {"commands", dump_commands(pair.commands)}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cohabit::report
