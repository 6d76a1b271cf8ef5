#include "actions/path_walker.h"

#include <unistd.h>
#include <climits>

#include <algorithm>

namespace cohabit {

const PathWalker::Part& PathWalker::look(const std::string& place) {
  const auto [at, fresh] = known_.try_emplace(place);
  Part& part = at->second;
  if (!fresh) return part;
  const std::string host = root_ + place;
  struct stat status{};
  if (::lstat(host.c_str(), &status) != 0) return part;
  part.mode = status.st_mode;
  part.id = {status.st_dev, status.st_ino};
  part.size = static_cast<uint64_t>(status.st_size);
  if (!part.is_link()) return part;
  char buffer[PATH_MAX];
  const ssize_t length = ::readlink(host.c_str(), buffer, sizeof buffer);
  if (length > 0) part.target.assign(buffer, static_cast<size_t>(length));
  return part;
}

PathWalker::End PathWalker::walk(const std::string& path, const Visit& visit) {
  constexpr int kMaxLinks = 40;
  std::string rest = path.starts_with('/') ? path : directory_ + "/" + path;
  std::string at;
  int links = 0;
  while (true) {
    const size_t begin = rest.find_first_not_of('/');
    if (begin == std::string::npos) return {at.empty() ? "/" : at, look(at.empty() ? "/" : at)};
    const size_t end = std::min(rest.find('/', begin), rest.size());
    const std::string name = rest.substr(begin, end - begin);
    rest.erase(0, end);
    if (name == ".") continue;
    if (name == "..") {
      at.erase(std::min(at.rfind('/'), at.size()));
      continue;
    }
    std::string next = at;
    next.append("/").append(name);
    const Part& part = look(next);
    if (!part.is_there()) return {std::move(next), part};
    if (visit) visit(next, part);
    if (part.is_link()) {
      if (part.target.empty() || ++links > kMaxLinks || rest.size() > PATH_MAX)
        return {std::move(next), part};
      if (part.target.front() == '/') at.clear();
      rest.insert(0, part.target);
      continue;
    }
    if (!part.is_directory()) return {std::move(next), part};
    at = std::move(next);
  }
}

}  // namespace cohabit
