// A baseline: the findings of a day, which do not count later. Only fingerprints are compared; code
// and headline are there for people.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/read_file.h"
#include "cli/configuration.h"
#include "findings/fingerprint.h"

namespace cohabit {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;
constexpr size_t kMaxFile = 64 << 20;

}  // namespace

Result<std::set<std::string>> read_baseline(const std::string& file) {
  const auto text = read_file(file, kMaxFile);
  if (!text) return tl::unexpected<Error>(text.error());
  const Json json = Json::parse(*text, nullptr, false);
  const auto findings = json.is_object() ? json.find("findings") : json.end();
  if (!json.is_object() || findings == json.end() || !findings->is_array())
    return fail(file + ": expected a baseline, as `cohabit doctor --write-baseline` makes it");
  std::set<std::string> result;
  for (const Json& one : *findings) {
    const auto mark = one.is_object() ? one.find("fingerprint") : one.end();
    if (!one.is_object() || mark == one.end() || !mark->is_string())
      return fail(file + ": expected a fingerprint in each finding of the baseline");
    result.insert(mark->get<std::string>());
  }
  return result;
}

std::string format_baseline(const std::vector<const Finding*>& findings,
                            const std::string& environment) {
  Json list = Json::array();
  for (const Finding* finding : findings)
    list.push_back({{"fingerprint", fingerprint(*finding, environment)},
                    {"code", finding->code},
                    {"headline", finding->headline}});
  const Json json = {{"schema_version", kSchemaVersion}, {"findings", std::move(list)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cohabit
