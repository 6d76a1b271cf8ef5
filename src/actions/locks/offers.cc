// A dry run fails as a whole for one version that no index has. The question is halved until those
// stand alone: k of n cost k * log2(n) more calls, and not n.
#include "actions/locks/offers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <span>

#include "actions/ask.h"
#include "actions/check/refusal.h"
#include "actions/locks/pylock.h"
#include "base/addresses.h"
#include "base/paths.h"
#include "facts/python/requirement.h"

namespace cohabit::locks {
namespace {

constexpr size_t kMostRefusals = 40;  // an index that does not answer refuses everything

using Pins = std::span<const std::string>;

std::string name_of(const std::string& pin) {
  return normal_name(std::string_view(pin).substr(0, pin.find("==")));
}

std::string file_of(const std::string& address) {
  return percent_decoded(last_part(address.substr(0, address.find_first_of("?#"))));
}

Result<void> ask_pip(const Question& question, Pins pins, Offers& offers) {
  check::Request request{{"--no-deps", "--ignore-installed"}, false};
  request.arguments.insert(request.arguments.end(), question.places.begin(), question.places.end());
  request.arguments.insert(request.arguments.end(), pins.begin(), pins.end());
  const auto plan = check::ask_pip(question.installer, request);
  if (!plan) return tl::unexpected<Error>(plan.error());
  constexpr std::string_view kHash = "sha256=";
  for (const check::Arrival& one : plan->arrivals)
    if (!one.address.empty())
      offers.wheels[normal_name(one.name)].push_back(
          {file_of(one.address), one.address,
           one.hash.starts_with(kHash) ? one.hash.substr(kHash.size()) : "", 0});
  return {};
}

Result<void> ask_uv(const Question& question, Pins pins, Offers& offers) {
  std::vector<std::string> command = question.installer.command;
  command.insert(command.end(), {"compile", "--no-deps", "--no-build", "--format", "pylock.toml",
                                 "--no-header", "--quiet", "--color", "never", "--no-progress",
                                 "--python", question.python->executable});
  command.insert(command.end(), question.places.begin(), question.places.end());
  command.emplace_back("-");
  std::string text;
  for (const std::string& pin : pins) text += pin + "\n";
  const auto answer = hear_program(command, text);
  if (!answer) return tl::unexpected<Error>(answer.error());
  if (answer->status != 0) return tl::unexpected(check::refusal_of({"uv"}, *answer, false));
  char here[PATH_MAX];
  const auto lock = parse_pylock(answer->output, ::getcwd(here, sizeof here) ? here : "");
  if (!lock) return fail("uv gave no list of addresses: " + lock.error().message);
  for (const PylockPackage& package : lock->packages)
    offers.wheels[normal_name(package.name)] = package.wheels;
  return {};
}

// An installer says why it finds no way; of one version that it was asked for this is the way.
std::string reason_of(const Question& question, const std::string& refusal) {
  if (refusal.find(check::kBuildHint) == refusal.npos) return last_line(refusal);
  return fmt::format(
      "{} finds no wheel of this version for this Python: it was built here, or the index has its "
      "wheel no more",
      question.installer.tool == check::Tool::kPip ? "pip" : "uv");
}

void ask(const Question& question, Pins pins, Offers& offers, size_t& refusals) {
  if (pins.empty()) return;
  const auto refuse = [&](const std::string& why) {
    for (const std::string& pin : pins) offers.refusals[name_of(pin)] = why;
  };
  if (refusals >= kMostRefusals)
    return refuse(fmt::format("the installer was asked no more after {} refusals", refusals));
  const auto done = question.installer.tool == check::Tool::kPip ? ask_pip(question, pins, offers)
                                                                 : ask_uv(question, pins, offers);
  if (done) return;
  refusals++;
  if (pins.size() == 1) return refuse(reason_of(question, done.error().message));
  ask(question, pins.first(pins.size() / 2), offers, refusals);
  ask(question, pins.subspan(pins.size() / 2), offers, refusals);
}

}  // namespace

Offers ask_offers(const Question& question, const std::vector<std::string>& pins) {
  Offers offers;
  size_t refusals = 0;
  ask(question, pins, offers, refusals);
  return offers;
}

}  // namespace cohabit::locks
