// Paths as the C library and the standard library work them out.
#include <doctest/doctest.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/paths.h"
#include "base/real_paths.h"
#include "temp_tree.h"

using namespace cohabit;

namespace {

std::optional<std::string> by_library(const std::string& path) {
  char real[PATH_MAX];
  if (!::realpath(path.c_str(), real)) return std::nullopt;
  return real;
}

std::string link_by_library(const std::string& path) {
  char text[PATH_MAX];
  const ssize_t length = ::readlink(path.c_str(), text, sizeof text);
  return {text, static_cast<size_t>(std::max<ssize_t>(length, 0))};
}

}  // namespace

TEST_CASE("real paths are those of realpath(3), whatever was asked before") {
  const TempTree tree;
  tree.file("a/file");
  tree.file("a/b/other");
  tree.link("a/to_file", "file");
  tree.link("a/to_directory", "b");
  tree.link("a/far", tree / "a/b/other");
  tree.link("a/nowhere", "missing");
  tree.link("a/b/loop", "loop");
  tree.link("a/b/up", "../to_directory/other");
  tree.link("whole", "a");
  std::vector<std::string> paths = {"",     "/",   ".",        "..",
                                    "/tmp", "tmp", "/missing", "/proc/self/exe"};
  for (const char* directory :
       {"", "/a", "/whole", "/a/b", "/a/to_directory", "/whole/to_directory", "/a/file", "/missing",
        "/a/nowhere", "/a/b/loop", "/a/b/..", "//a"})
    for (const char* name : {"", "file", "other", "to_file", "to_directory", "far", "nowhere",
                             "loop", "up", "missing", ".", "..", "b/", "to_directory/"})
      paths.push_back(tree.path() + directory + "/" + name);
  for (std::string path = tree.path(); path.size() < 8 * PATH_MAX; path += path.substr(0, 512))
    paths.push_back(path + "/file");
  std::mt19937 random(1);
  for (int i = 0; i < 20; i++) {
    RealPaths known;
    std::shuffle(paths.begin(), paths.end(), random);
    for (const std::string& path : paths) {
      CAPTURE(path);
      std::string link = "of before";
      CHECK(known.of(path, &link) == by_library(path));
      CHECK(link == link_by_library(path));
      CHECK(known.of(path) == by_library(path));
    }
  }
}

TEST_CASE("joined paths are normal") {
  const std::vector<std::string> parts = {"a", "bc", ".", "..", "", ".hidden", "x.so", "..d", "e."};
  std::mt19937 random(2);
  const auto any_of_them = [&](size_t most) {
    std::string path;
    for (size_t left = random() % (most + 1); left > 0; left--)
      path += parts[random() % parts.size()] + (left > 1 || random() % 4 == 0 ? "/" : "");
    return path;
  };
  for (int i = 0; i < 20000; i++) {
    const std::string directory = "/" + any_of_them(3), path = any_of_them(5);
    const std::string whole = path.starts_with('/') ? path : directory + "/" + path;
    std::string normal = std::filesystem::path(whole).lexically_normal().string();
    while (normal.ends_with('/')) normal.pop_back();
    CAPTURE(whole);
    CHECK(join_normal(directory, path) == normal);
  }
}
