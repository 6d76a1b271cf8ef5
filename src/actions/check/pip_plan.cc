// pip says all at once: `--report` names each wheel with its address, hash and reason.
#include <fmt/format.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "actions/ask.h"
#include "actions/check/plan.h"
#include "actions/check/refusal.h"

namespace cohabit::check {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxArrivals = 10'000;

const Json& member(const Json& object, const char* name) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(name);
  return found == object.end() ? kNothing : *found;
}

std::string text_of(const Json& json) {
  return json.is_string() ? json.get<std::string>() : "";
}

bool is_true(const Json& json) {
  return json.is_boolean() && json.get<bool>();
}

Arrival read_arrival(const Json& one) {
  Arrival arrival;
  arrival.name = text_of(member(member(one, "metadata"), "name"));
  arrival.version = text_of(member(member(one, "metadata"), "version"));
  const Json& download = member(one, "download_info");
  arrival.address = text_of(member(download, "url"));
  const std::string hash =
      text_of(member(member(member(download, "archive_info"), "hashes"), "sha256"));
  if (!hash.empty()) arrival.hash = "sha256=" + hash;
  arrival.is_requested = is_true(member(one, "requested"));
  if (is_true(member(one, "is_direct"))) arrival.from = arrival.address;
  return arrival;
}

}  // namespace

Result<Plan> read_pip_report(const std::string& text) {
  // What stands before it are warnings.
  const size_t begin = text.find('{');
  const Json report =
      begin == std::string::npos ? Json() : Json::parse(text.substr(begin), nullptr, false);
  const Json& install = member(report, "install");
  if (!install.is_array() || install.size() > kMaxArrivals)
    return fail("pip's report has no list of what would be installed: expected pip 22.2 or later");
  Plan plan;
  for (const Json& one : install) {
    Arrival arrival = read_arrival(one);
    if (arrival.name.empty() || arrival.version.empty())
      return fail("pip's report names a distribution without a name or a version");
    plan.arrivals.push_back(std::move(arrival));
  }
  return plan;
}

Result<Plan> ask_pip(const Installer& installer, const Request& request) {
  std::vector<std::string> command =
      request.allow_build ? installer.command : command_without_builds(installer);
  for (const char* word : {"install", "--dry-run", "--quiet", "--no-input", "--report", "-",
                           "--disable-pip-version-check"})
    command.emplace_back(word);
  if (!request.allow_build) {
    command.emplace_back("--only-binary");
    command.emplace_back(":all:");
  }
  command.insert(command.end(), request.arguments.begin(), request.arguments.end());
  const auto answer = hear_program(command);
  if (!answer) return tl::unexpected<Error>(answer.error());
  for (const char* option : {"no such option: --report", "no such option: --dry-run"})
    if (answer->errors.find(option) != std::string::npos)
      return fail(
          fmt::format("the pip of {} is too old to be asked what it would install: {} or later is "
                      "needed; upgrade it",
                      command[0], kFirstPip));
  if (answer->status != 0) return tl::unexpected(refusal_of({"pip"}, *answer, request.allow_build));
  return read_pip_report(answer->output);
}

}  // namespace cohabit::check
