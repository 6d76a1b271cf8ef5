#include "actions/kernel_specs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/json_text.h"
#include "base/read_file.h"
#include "base/write_file.h"

namespace cohabit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kMark = "cohabit";  // in the metadata of those that we have written

bool may_stand_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

std::string file_of(const std::string& directory, const std::string& name) {
  return fmt::format("{}/{}/kernel.json", directory, name);
}

// Nothing: it is not there, not readable, or not ours.
std::optional<KernelSpec> read_ours(const std::string& directory, const std::string& name) {
  const auto text = read_file(file_of(directory, name));
  if (!text) return std::nullopt;
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("metadata") || !json["metadata"].is_object() ||
      !json["metadata"].contains(kMark) || !json["metadata"][kMark].is_object())
    return std::nullopt;
  KernelSpec spec;
  spec.name = name;
  spec.display_name = text_at(json, "display_name");
  spec.environment = text_at(json["metadata"][kMark], "environment");
  return spec;
}

// Jupyter takes a directory without a kernel.json for none, so nothing is in the way there.
bool is_taken(const std::string& directory, const std::string& name) {
  return ::access(file_of(directory, name).c_str(), F_OK) == 0 && !read_ours(directory, name);
}

}  // namespace

Result<std::string> kernel_directory(const VariableMap& variables, const std::string& prefix) {
  if (!prefix.empty()) {
    std::error_code error;
    return fs::absolute(prefix, error).lexically_normal().string() + "/share/jupyter/kernels";
  }
  if (const std::string set = variable_of(variables, "JUPYTER_DATA_DIR"); !set.empty())
    return set + "/kernels";
  if (const std::string set = variable_of(variables, "XDG_DATA_HOME"); !set.empty())
    return set + "/jupyter/kernels";
  if (const std::string home = variable_of(variables, "HOME"); !home.empty())
    return home + "/.local/share/jupyter/kernels";
  return fail("HOME is not set, so Jupyter's data directory is not known: set JUPYTER_DATA_DIR");
}

bool is_kernel_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), may_stand_in_name);
}

std::string kernel_name_of(const std::string& text) {
  std::string name;
  for (const char c : text) {
    if (may_stand_in_name(c))
      name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  name.erase(0, name.find_first_not_of("-."));
  name.erase(name.find_last_not_of("-.") + 1);
  return name;
}

Result<std::string> format_kernel_spec(const KernelSpec& spec) {
  Json metadata = {{kMark, {{"environment", spec.environment}}}};
  if (spec.has_debugger) metadata["debugger"] = true;
  const Json json = {{"argv", spec.command},
                     {"display_name", spec.display_name},
                     {"language", "python"},
                     {"interrupt_mode", "signal"},
                     {"metadata", metadata}};
  std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace);
  if (text != json.dump(1, ' ', false, Json::error_handler_t::ignore))
    return fail("a path of this kernel is not UTF-8, and kernel.json holds nothing else");
  return text + "\n";
}

Result<void> write_kernel_spec(const std::string& directory, const KernelSpec& spec) {
  const auto text = format_kernel_spec(spec);
  if (!text) return tl::unexpected<Error>(text.error());
  if (is_taken(directory, spec.name))
    return fail(fmt::format(
        "{} is there and was not made by Cohabit: choose another name with --name, or remove it",
        file_of(directory, spec.name)));
  std::error_code error;
  fs::create_directories(directory + "/" + spec.name, error);
  if (error)
    return fail(
        fmt::format("cannot make the directory {}/{}: {}; --prefix or JUPYTER_DATA_DIR "
                    "names another place",
                    directory, spec.name, error.message()));
  return write_file(file_of(directory, spec.name), *text);
}

std::vector<KernelSpec> find_kernel_specs(const std::string& directory) {
  constexpr size_t kMostSpecs = 10000;
  std::vector<KernelSpec> specs;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end;
       !error && entry != end && specs.size() < kMostSpecs; entry.increment(error))
    if (auto spec = read_ours(directory, entry->path().filename().string()))
      specs.push_back(std::move(*spec));
  std::sort(specs.begin(), specs.end(),
            [](const KernelSpec& a, const KernelSpec& b) { return a.name < b.name; });
  return specs;
}

Result<void> remove_kernel_spec(const std::string& directory, const std::string& name) {
  const std::string file = file_of(directory, name);
  if (!read_ours(directory, name))
    return fail(
        fmt::format("{} is not there, or was not made by Cohabit; `cohabit kernel list` "
                    "prints those that are",
                    file));
  if (::unlink(file.c_str()) != 0)
    return fail(fmt::format("cannot remove {}: {}", file, std::strerror(errno)));
  ::rmdir((directory + "/" + name).c_str());  // it stays where somebody has put a logo into it
  return {};
}

}  // namespace cohabit
