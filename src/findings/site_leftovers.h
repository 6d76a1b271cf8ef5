// The search for leftovers in one directory of packages.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "facts/files/walk.h"
#include "findings/leftovers.h"

namespace cohabit {

class SiteLeftovers {
 public:
  // `site`: without symlinks; `root`: what it belongs to.
  static Result<SiteLeftovers> read(const EnvironmentCase& examined, const FileClaims& claims,
                                    const std::string& root, const std::string& site);

  // Each looks at what those before it have left.
  void find_stopped_uninstalls();
  void find_broken_metadata();
  void find_distribution(const Distribution& distribution, Leftover leftover,
                         const std::set<std::string>& kept);
  void find_bytecode();
  void find_unclaimed();

  // With their paths and sizes.
  std::vector<Leftover> result(const std::set<LeftoverKind>& wanted);

 private:
  static constexpr int kNobody = -1;

  SiteLeftovers(const EnvironmentCase& examined, const FileClaims& claims, std::string root,
                std::string site);
  std::optional<size_t> index_of(std::string_view path) const;
  int new_leftover(LeftoverKind kind, std::string what, std::string why);
  void mark(size_t index, int leftover);
  void mark_below(std::string_view path, int leftover);
  bool is_claimed(const Entry& entry) const;
  void find_claimed_names();
  std::string why_unclaimed(const std::string& path) const;
  std::string gone_directory(const std::string& path) const;
  void count_kept(const std::set<LeftoverKind>& wanted);
  void find_empty_directories(const std::set<LeftoverKind>& wanted);
  void add_paths();

  const EnvironmentCase& examined_;
  const FileClaims& claims_;
  std::string root_, site_, below_root_;  // "lib/python3.11/site-packages/"
  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, size_t> by_path_;
  std::vector<int> leftover_of_;            // by entry
  std::set<std::string> claimed_names_;     // first parts of paths of which anything is claimed
  std::set<std::string> owned_names_;       // of distributions without a list of files
  std::set<std::string> kept_directories_;  // that stay, since something in them does
  std::vector<Leftover> found_;
};

}  // namespace cohabit
