#include "actions/locks/pylock.h"

#include <fmt/format.h>

#include "actions/pylock_version.h"
#include "actions/toml_text.h"
#include "base/addresses.h"
#include "base/paths.h"

namespace cohabit::locks {
namespace {

// "url", or "path" from where the file lies.
WheelAddress read_address(const toml::table& table, const std::string& directory) {
  WheelAddress wheel;
  wheel.address = text_at(table, "url");
  if (const std::string path = text_at(table, "path"); wheel.address.empty() && !path.empty())
    wheel.address = "file://" + percent_encoded(join_normal(directory, path));
  wheel.file = text_at(table, "name");
  if (wheel.file.empty())
    wheel.file =
        percent_decoded(last_part(wheel.address.substr(0, wheel.address.find_first_of("?#"))));
  wheel.hash = table["hashes"]["sha256"].value<std::string>().value_or("");
  wheel.size = static_cast<uint64_t>(std::max<int64_t>(table["size"].value_or(int64_t{0}), 0));
  return wheel;
}

PylockPackage read_package(const toml::table& table, const std::string& directory) {
  PylockPackage package;
  package.name = text_at(table, "name");
  package.version = text_at(table, "version");
  package.marker = text_at(table, "marker");
  if (const toml::array* wheels = table["wheels"].as_array())
    for (const toml::node& node : *wheels)
      if (const toml::table* wheel = node.as_table())
        package.wheels.push_back(read_address(*wheel, directory));
  if (const toml::table* archive = table["archive"].as_table()) {
    WheelAddress wheel = read_address(*archive, directory);
    package.is_direct = wheel.file.ends_with(".whl");
    if (package.is_direct) package.wheels = {std::move(wheel)};
  }
  package.has_wheels = !package.wheels.empty();
  return package;
}

// A basic string: names and addresses come from strangers' files.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result.append(1, '\\').append(1, c);
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result + '"';
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

// The fields of a wheel or an archive, in PEP 751's order.
std::string fields_of(const LockedWheel& one, bool with_name) {
  std::string text;
  if (with_name) text += fmt::format("name = {}\n", quoted(one.wheel.file));
  const auto path = path_of_address(one.wheel.address);
  text += path ? fmt::format("path = {}\n", quoted(*path))
               : fmt::format("url = {}\n", quoted(one.wheel.address));
  if (one.wheel.size > 0) text += fmt::format("size = {}\n", one.wheel.size);
  return text + fmt::format("hashes = {{sha256 = {}}}\n", quoted(one.wheel.hash));
}

std::string python_range(const std::string& version) {
  const size_t first = version.find('.');
  const size_t second = version.find('.', first + 1);
  return fmt::format("=={}.*", version.substr(0, second));
}

}  // namespace

Result<Pylock> parse_pylock(const std::string& text, const std::string& directory) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed)
    return fail(fmt::format("expected TOML, line {}: {}", parsed.error().source().begin.line,
                            parsed.error().description()));
  // What a newer minor version adds cannot make a wheel another one: their hashes are compared.
  const auto version = check_pylock_version(parsed.table());
  if (!version) return tl::unexpected<Error>(version.error());
  const toml::array* packages = parsed.table()["packages"].as_array();
  if (!packages) return fail("expected a pylock.toml with a list of packages (PEP 751)");
  Pylock lock;
  const auto own = parsed.table()["tool"]["cohabit"];
  lock.python = own["python"].value<std::string>().value_or("");
  lock.bundled = texts_of(own["bundled"]);
  lock.default_groups = texts_of(parsed.table()["default-groups"]);
  for (const toml::node& node : *packages)
    if (const toml::table* package = node.as_table())
      lock.packages.push_back(read_package(*package, directory));
  return lock;
}

std::string format_pylock(const Lock& lock) {
  std::string text =
      fmt::format("lock-version = \"1.0\"\nrequires-python = {}\ncreated-by = \"cohabit\"\n",
                  quoted(python_range(lock.python)));
  if (lock.wheels.empty()) text += "packages = []\n";
  std::string bundled;
  for (const LockedWheel& one : lock.wheels) {
    if (one.is_bundled) {
      bundled += (bundled.empty() ? "" : ", ") + quoted(one.name + "==" + one.version);
      continue;
    }
    text += fmt::format("\n[[packages]]\nname = {}\nversion = {}\n", quoted(one.name),
                        quoted(one.version));
    text += one.is_direct ? "\n[packages.archive]\n" : "\n[[packages.wheels]]\n";
    text += fields_of(one, !one.is_direct);
  }
  if (text.find("[[packages]]") == text.npos && text.find("packages = []") == text.npos)
    text += "packages = []\n";
  text +=
      fmt::format("\n[tool.cohabit]\npython = {}\nbundled = [{}]\n", quoted(lock.python), bundled);
  for (const Unsaid& one : lock.unsaid)
    text += fmt::format("# not here: {} {}: {}\n", one_line(one.name), one_line(one.version),
                        one_line(one.why));
  for (const ChangedFile& one : lock.changed)
    text += fmt::format("# not as in the wheel of {}: {}: {}\n", one_line(one.distribution),
                        one_line(one.path), one_line(one.why));
  return text;
}

}  // namespace cohabit::locks
