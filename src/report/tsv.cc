#include "report/tsv.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <unordered_set>

namespace cohabit::report {
namespace {

using sim::Binding;
using sim::How;
using sim::Object;
using sim::Simulation;

// As ld.so found it: l_name, which is relative where the file was asked for by a relative path.
std::string opened_path(const Object& object) {
  if (object.name.empty() || object.name.starts_with('/')) return object.name;
  return fmt::format("{}/{}", object.origin, object.name.substr(object.name.rfind('/') + 1));
}

// By object. An image knows the path it was first opened by; a hard link may have brought the same
// file in by another.
std::vector<std::string> real_paths(const Simulation& simulation) {
  std::vector<std::string> paths;
  for (const Object& object : simulation.objects()) {
    const Image& image = simulation.images()[object.image];
    const std::string opened = opened_path(object);
    const bool other =
        opened != image.path && opened.starts_with('/') && !opened.starts_with("/proc/");
    paths.push_back(other ? simulation.images().tree().real_path(opened).value_or(image.real_path)
                          : image.real_path);
  }
  return paths;
}

struct BindingKey {
  uint64_t pair;
  uint32_t reference;
  bool operator==(const BindingKey&) const = default;
};
struct BindingKeyHash {
  size_t operator()(const BindingKey& key) const {
    return (key.pair * 0x9e3779b97f4a7c15u) ^ (uint64_t{key.reference} * 0xff51afd7ed558ccdu);
  }
};

}  // namespace

std::string loads_table(const Simulation& simulation) {
  std::string text;
  const auto paths = real_paths(simulation);
  for (const sim::ObjectId id : simulation.load_order()) {
    const Object& object = simulation.objects()[id];
    const bool opened = object.how == How::kDlopen;
    fmt::format_to(std::back_inserter(text), "{}\t{}\t{}\t{}\n", paths[id], object.requested,
                   opened ? "dlopen-by" : "needed-by", object.by == kNone ? "" : paths[object.by]);
  }
  return text;
}

std::string search_table(const Simulation& simulation) {
  std::string text;
  const auto add = [&](const std::string& name, const std::vector<sim::SearchStep>& steps) {
    for (const sim::SearchStep& step : steps)
      fmt::format_to(std::back_inserter(text), "{}\t{}\t{}\t{}\n", name, step.path, step.because,
                     step.outcome);
  };
  for (const sim::ObjectId id : simulation.load_order())
    add(simulation.objects()[id].requested, simulation.objects()[id].search);
  for (const sim::CallResult& result : simulation.results())
    add(result.error.substr(0, result.error.find(": ")), result.search);
  return text;
}

std::string bindings_table(const Simulation& simulation) {
  std::string text;
  const auto paths = real_paths(simulation);
  std::unordered_set<BindingKey, BindingKeyHash> seen;
  seen.reserve(simulation.bindings().size());
  simulation.bindings().each([&](uint32_t, const Binding& binding) {
    if (!seen.insert({uint64_t{binding.from} << 32 | binding.to, binding.reference}).second) return;
    const elf::Object& file = simulation.elf(binding.from);
    const elf::Version* version = file.version_of(binding.reference);
    const bool is_protected = file.symbols[binding.reference].visibility() == elf::STV_PROTECTED;
    fmt::format_to(std::back_inserter(text), "{}\t{}\t{}\t{}\t{}\n", paths[binding.from],
                   paths[binding.to], file.symbol_name(binding.reference),
                   version ? version->name : "-", is_protected ? "protected" : "normal");
  });
  return text;
}

std::string results_table(const Simulation& simulation) {
  std::string text;
  for (const sim::CallResult& result : simulation.results()) {
    const char* word = result.failed ? "failed" : result.object == kNone ? "none" : "ok";
    fmt::format_to(std::back_inserter(text), "{}\t{}\n", word, result.error);
  }
  return text;
}

}  // namespace cohabit::report
