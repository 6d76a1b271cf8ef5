// A temporary directory for a test, with short ways to fill it.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace cohabit {

class TempTree {
 public:
  TempTree() {
    std::string name = (std::filesystem::temp_directory_path() / "cohabit-XXXXXX").string();
    if (!::mkdtemp(name.data())) std::abort();
    path_ = std::filesystem::canonical(name).string();
  }
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;
  ~TempTree() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // Makes the directories on the way too.
  void directory(const std::string& name) const {
    std::filesystem::create_directories(*this / name);
  }
  void file(const std::string& name, const std::string& text = "x") const {
    std::filesystem::create_directories(std::filesystem::path(*this / name).parent_path());
    std::ofstream(*this / name, std::ios::binary) << text;
  }
  void link(const std::string& name, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(*this / name).parent_path());
    std::filesystem::create_symlink(target, *this / name);
  }

 private:
  std::string path_;
};

// What a command prints on its standard output; empty if it cannot be run.
inline std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  if (!pipe) return text;
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  ::pclose(pipe);
  return text;
}

}  // namespace cohabit
