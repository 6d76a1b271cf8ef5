// uv's dry run decides what would change, from what is installed, and names no addresses. `uv pip
// compile` knows those, but nothing of the environment. So the first says which versions, and the
// second, asked for just these without dependencies, where they are. It lists all wheels that fit
// the platform in general; the choice among them goes by their tags.
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <set>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include "actions/ask.h"
#include "actions/check/plan.h"
#include "actions/check/refusal.h"
#include "actions/check/requirements_file.h"
#include "actions/check/wheel_tags.h"
#include "base/addresses.h"
#include "base/paths.h"
#include "base/rows.h"
#include "base/scratch.h"
#include "base/write_file.h"
#include "facts/python/requirement.h"

namespace cohabit::check {
namespace {

constexpr size_t kMaxArrivals = 10'000;

// Options that say where packages come from: they mean the same to both questions. The value
// follows, or stands behind "=".
const std::set<std::string, std::less<>> kPlaces = {"--index",
                                                    "--default-index",
                                                    "--index-url",
                                                    "-i",
                                                    "--extra-index-url",
                                                    "--find-links",
                                                    "-f",
                                                    "--index-strategy",
                                                    "--keyring-provider",
                                                    "--allow-insecure-host",
                                                    "--config-file",
                                                    "--torch-backend",
                                                    "--exclude-newer",
                                                    "--prerelease",
                                                    "--cache-dir"};
const std::set<std::string, std::less<>> kFlags = {"--no-index", "--offline", "--no-config",
                                                   "--pre", "--no-cache"};

std::vector<std::string> places_of(const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  for (size_t i = 0; i < arguments.size(); i++) {
    const std::string& word = arguments[i];
    if (kFlags.contains(word) || kPlaces.contains(word.substr(0, word.find('='))))
      result.push_back(word);
    if (kPlaces.contains(word) && i + 1 < arguments.size()) result.push_back(arguments[i + 1]);
  }
  return result;
}

// The same in requirements files.
std::string places_in_files(const std::vector<std::string>& arguments) {
  std::string result;
  for (const std::string& line : lines_of(arguments).options)
    if (const std::string option = line.substr(0, line.find_first_of(" =\t"));
        kPlaces.contains(option) || option == "--no-index")
      result += line + "\n";
  return result;
}

struct Pinned {
  std::string address, hash;
};

// A wheel's or an archive's place: "url", or "path" from where we are.
std::string address_in(const toml::table& table) {
  if (const auto url = table["url"].value<std::string>()) return *url;
  const auto path = table["path"].value<std::string>();
  if (!path) return "";
  char here[PATH_MAX];
  return "file://" + join_normal(::getcwd(here, sizeof here) ? here : "", *path);
}

Pinned read_pinned(const toml::table& table) {
  Pinned pinned{address_in(table), ""};
  if (const auto hash = table["hashes"]["sha256"].value<std::string>())
    pinned.hash = "sha256=" + *hash;
  return pinned;
}

Pinned choose(const toml::table& package, const TagTarget& target) {
  if (const toml::table* archive = package["archive"].as_table()) return read_pinned(*archive);
  std::vector<Pinned> wheels;
  std::vector<std::string> names;
  if (const toml::array* list = package["wheels"].as_array())
    for (const toml::node& node : *list)
      if (const toml::table* wheel = node.as_table()) {
        wheels.push_back(read_pinned(*wheel));
        names.push_back(
            percent_decoded((*wheel)["name"].value<std::string>().value_or(wheels.back().address)));
      }
  const auto best = best_wheel(names, target);
  return best ? wheels[*best] : Pinned{};
}

// "name @ file:///name-1.0-py3-none-any.whl": a file or a directory that was named. Its version is
// in a wheel's name only.
Arrival read_direct(std::string_view line, size_t at) {
  Arrival arrival;
  arrival.name = line.substr(0, at);
  arrival.address = bare_address(std::string(line.substr(at + 3)));  // uv writes "user:****@"
  arrival.from = arrival.address;
  const std::string file = percent_decoded(last_part(arrival.address));
  if (const auto wheel = split_wheel_name(file)) arrival.version = wheel->version;
  return arrival;
}

// "name==version (from file:///x.whl)", behind the mark
Arrival read_line(std::string_view line) {
  constexpr std::string_view kFrom = " (from ";
  if (const size_t at = line.find(" @ "); at != line.npos && at < line.find("=="))
    return read_direct(line, at);
  Arrival arrival;
  const size_t equal = line.find("==");
  const size_t end = std::min(line.find_first_of(" \t", equal), line.size());
  if (equal == line.npos) return arrival;
  arrival.name = line.substr(0, equal);
  arrival.version = line.substr(equal + 2, end - equal - 2);
  if (const size_t from = line.find(kFrom, end); from != line.npos && line.ends_with(')')) {
    arrival.address = line.substr(from + kFrom.size(), line.size() - from - kFrom.size() - 1);
    arrival.from = arrival.address;
  }
  return arrival;
}

// Build backends (PEP 517) in a version that there is not; without pyproject.toml it is setuptools.
constexpr std::string_view kNoBuilds =
    "enscons<0\nflit<0\nflit-core<0\nhatchling<0\njupyter-packaging<0\nmaturin<0\nmeson-python<0\n"
    "pdm-backend<0\npdm-pep517<0\npoetry<0\npoetry-core<0\npy-build-cmake<0\nscikit-build<0\n"
    "scikit-build-core<0\nsetuptools<0\nsip<0\nuv-build<0\nwhey<0\n";

void drop_replaced(Plan& plan) {
  std::erase_if(plan.departures, [&](const Departure& gone) {
    return std::any_of(plan.arrivals.begin(), plan.arrivals.end(), [&](const Arrival& arrival) {
      return normal_name(arrival.name) == normal_name(gone.name);
    });
  });
}

}  // namespace

TagTarget target_of(const Interpreter& python) {
  utsname names{};
  ::uname(&names);
  const std::string glibc = gnu_get_libc_version();
  return {python.major * 100 + python.minor, names.machine,
          std::atoi(glibc.c_str() + glibc.find('.') + 1)};
}

Plan read_uv_lines(const std::string& text) {
  Plan plan;
  for (size_t begin = 0; begin < text.size() && plan.arrivals.size() < kMaxArrivals;) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() < 4 || line[0] != ' ' || line[2] != ' ') continue;
    Arrival arrival = read_line(line.substr(3));
    if (arrival.name.empty()) continue;
    if (line[1] == '+' || line[1] == '~')
      plan.arrivals.push_back(std::move(arrival));
    else if (line[1] == '-')
      plan.departures.push_back({arrival.name, arrival.version});
  }
  drop_replaced(plan);
  return plan;
}

Result<void> add_addresses(const std::string& pylock, const TagTarget& target, Plan& plan) {
  const toml::parse_result parsed = toml::parse(pylock);
  const toml::array* packages = parsed ? parsed.table()["packages"].as_array() : nullptr;
  if (!packages) return fail("uv gave no list of addresses: expected a pylock.toml with packages");
  for (const toml::node& node : *packages) {
    const toml::table* package = node.as_table();
    const auto name = package ? (*package)["name"].value<std::string>() : std::nullopt;
    if (!name) continue;
    for (Arrival& arrival : plan.arrivals) {
      if (normal_name(arrival.name) != normal_name(*name) || !arrival.address.empty()) continue;
      Pinned pinned = choose(*package, target);
      arrival.address = std::move(pinned.address);
      arrival.hash = std::move(pinned.hash);
      arrival.has_no_wheel = arrival.address.empty();
    }
  }
  return {};
}

namespace {

// The end of a command, and what it reads.
struct Question {
  std::vector<std::string> words;
  std::string input;
};

Result<Answer> ask(std::vector<std::string> command, std::initializer_list<std::string> more,
                   const Question& question) {
  command.insert(command.end(), more);
  command.insert(command.end(), question.words.begin(), question.words.end());
  return hear_program(command, question.input);
}

Plan read_answer(const Answer& answer) {
  return read_uv_lines(answer.errors + "\n" + answer.output);
}

// With --no-build uv forgets what is installed: it takes the newest version where without the
// option it stays with the one that is there (uv 0.13), and it refuses a lock file that names a
// project in its directory, though it need not be built to say so. Where that can have made a
// difference, it is asked without the option, and builds are made impossible: the tools that they
// are made with cannot be had, and a Python that is started for a build of its own tools finds no
// library (uv asks interpreters with -I, which leaves PYTHONHOME aside).
Result<Answer> ask_without_builds(const std::vector<std::string>& command,
                                  const Question& question) {
  const ScratchDirectory directory("cohabit-check");
  const std::string constraints = directory.path() + "/none.txt";
  if (directory.path().empty()) return fail("cannot make an empty directory in $TMPDIR");
  if (auto written = write_file(constraints, kNoBuilds); !written)
    return tl::unexpected<Error>(written.error());
  std::vector<std::string> without{"env", "PYTHONHOME=" + directory.path() + "/nothing"};
  without.insert(without.end(), command.begin(), command.end());
  return ask(std::move(without), {"--build-constraint", constraints}, question);
}

bool is_editable(std::string_view word) {
  return word.starts_with("-e") || word.starts_with("--editable");
}

// --no-build lets uv build these all the same.
bool names_editable(const std::vector<std::string>& arguments) {
  const std::vector<std::string> words = with_files_apart(arguments);
  for (size_t i = 0; i < words.size(); i++)
    if (words[i] == "-e" || (i > 0 && words[i - 1] == "-r" && words[i].ends_with(".toml")))
      return true;  // lock files have editables too
  const RequirementLines lines = lines_of(arguments);
  return std::any_of(lines.requirements.begin(), lines.requirements.end(), is_editable);
}

// How builds were made impossible is nothing that the user asked for: only which one was tried is
// left of it.
void hide_our_own(Answer& answer) {
  bool is_own = answer.errors.find("Fatal Python error") != std::string::npos;
  for (const std::string_view tool : split(kNoBuilds, '\n'))
    is_own = is_own || (!tool.empty() && answer.errors.find(tool) != std::string::npos);
  if (!is_own) return;
  answer.errors.resize(std::min(answer.errors.find("\n  cause:"), answer.errors.size()));
  answer.errors += "\n  cause: only its build would tell what it requires";
}

Result<Plan> dry_run(const std::vector<std::string>& command, const Request& request) {
  const Question question{request.arguments, ""};
  auto answer = request.allow_build                 ? ask(command, {}, question)
                : names_editable(request.arguments) ? ask_without_builds(command, question)
                                                    : ask(command, {"--no-build"}, question);
  if (!answer) return tl::unexpected<Error>(answer.error());
  const bool is_taken = answer->status == 0;
  const bool may_differ = is_taken
                              ? (answer->errors + answer->output).find("\n - ") != std::string::npos
                              : answer->errors.find("--no-build") != std::string::npos;
  if (may_differ && !request.allow_build)
    if (const auto again = ask_without_builds(command, question); again && again->status == 0)
      return read_answer(*again);
  if (!is_taken) {
    if (!request.allow_build) hide_our_own(*answer);
    return tl::unexpected(refusal_of({"uv"}, *answer, request.allow_build));
  }
  Plan plan = read_answer(*answer);
  if (may_differ && !request.allow_build)
    plan.unknowns.emplace_back(
        "uv would build a source distribution, which is not done without --allow-build: it was "
        "asked as if there were none, and then changes more of what is installed than it may "
        "really do");
  return plan;
}

// With --no-build a single version that has no wheel here refuses all the others with it; without
// the option that one is listed as well, and has no wheel in the list.
Result<Answer> ask_addresses(const std::vector<std::string>& command, const std::string& pins,
                             const Request& request) {
  Question question{places_of(request.arguments), places_in_files(request.arguments) + pins};
  question.words.emplace_back("-");
  if (request.allow_build) return ask(command, {}, question);
  auto answer = ask(command, {"--no-build"}, question);
  if (!answer || answer->status == 0) return answer;
  auto again = ask_without_builds(command, question);
  return again && again->status == 0 ? std::move(again) : std::move(answer);
}

}  // namespace

Result<Plan> ask_uv(const Installer& installer, const Interpreter& python, const Request& request) {
  const auto with = [&](std::initializer_list<const char*> words) {
    std::vector<std::string> command = installer.command;
    command.insert(command.end(), words.begin(), words.end());
    command.insert(command.end(),
                   {"--color", "never", "--no-progress", "--python", python.executable});
    return command;
  };
  auto asked =
      dry_run(with({request.verb == Verb::kSync ? "sync" : "install", "--dry-run"}), request);
  if (!asked) return asked;
  Plan plan = std::move(*asked);
  std::string pins;
  for (const Arrival& arrival : plan.arrivals)
    if (arrival.address.empty())
      fmt::format_to(std::back_inserter(pins), "{}=={}\n", arrival.name, arrival.version);
  if (pins.empty()) return plan;
  const auto list = ask_addresses(
      with({"compile", "--no-deps", "--format", "pylock.toml", "--no-header", "--quiet"}), pins,
      request);
  if (!list) return tl::unexpected<Error>(list.error());
  if (list->status != 0) {
    plan.unknowns.push_back(
        "uv was asked where the wheels are, and does not say: what they would overwrite is "
        "unknown: " +
        reasons_of(*list));
    return plan;
  }
  if (auto done = add_addresses(list->output, target_of(python), plan); !done)
    return tl::unexpected<Error>(done.error());
  return plan;
}

}  // namespace cohabit::check
