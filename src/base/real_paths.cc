#include "base/real_paths.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>

namespace cohabit {
namespace {

std::optional<std::string> follow(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  if (!real) return std::nullopt;
  return real.get();
}

// Nothing: errno says why; EINVAL: it is no link.
std::optional<std::string> text_of_link(const std::string& path) {
  char text[PATH_MAX];
  const ssize_t length = ::readlink(path.c_str(), text, sizeof text);
  if (length < 0) return std::nullopt;
  return std::string(text, static_cast<size_t>(length));
}

}  // namespace

std::optional<std::string> RealPaths::of(const std::string& path, std::string* link) {
  const size_t slash = path.rfind('/');
  const std::string name = slash == path.npos ? path : path.substr(slash + 1);
  const bool is_plain = slash != path.npos && slash > 0 && !name.empty() && name != "." &&
                        name != ".." && path.size() < PATH_MAX;
  if (!is_plain) {
    if (link) *link = text_of_link(path).value_or("");
    return follow(path);
  }
  std::string above = path.substr(0, slash);
  auto known = directories_.find(above);
  if (known == directories_.end()) {
    auto real = of(above);
    known = directories_.emplace(std::move(above), std::move(real)).first;
  }
  const std::optional<std::string>& directory = known->second;
  if (!directory) {
    if (link) link->clear();
    return std::nullopt;
  }
  std::string here = (*directory == "/" ? "" : *directory) + "/" + name;
  const std::optional<std::string> text = text_of_link(here);
  if (link) *link = text.value_or("");
  if (text) return follow(path);
  if (errno != EINVAL) return std::nullopt;
  return here;
}

}  // namespace cohabit
