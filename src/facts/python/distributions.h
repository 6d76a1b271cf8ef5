// Which installed distribution (the thing that pip or conda installed) a native library belongs to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/paths.h"
#include "base/tree.h"
#include "facts/python/interpreter.h"

namespace cohabit {

struct Distribution {
  std::string name;       // as written in its metadata: "torch", "nvidia-cublas-cu12"
  std::string version;    // "2.6.0+cu124"
  std::string installer;  // "pip", "uv", "conda"; empty if it does not say
  std::string metadata;   // torch-2.6.0.dist-info, x.egg-info or conda-meta/x.json, absolute
  std::string site;       // the directory that holds the metadata; of conda-meta: the prefix
  bool is_conda_package = false;            // from conda-meta; the same files may have a dist-info
  bool has_metadata = false;                // METADATA or PKG-INFO could be read
  bool is_requested = false;                // somebody asked for it by name: REQUESTED, conda-meta
  std::string editable;                     // the URL of the project, if it is installed in place
  std::string requires_python;              // ">=3.9"; empty: says nothing
  std::vector<std::string> requires_dist;   // as written, see facts/python/requirement.h
  std::vector<std::string> provides_extra;  // as written
  std::vector<std::string> native_files;    // absolute, without "." and ".."
  std::vector<std::string> owned_packages;  // without a list of files: site-packages/<top level>

  bool has_native_files_below(std::string_view directory) const {
    return std::any_of(native_files.begin(), native_files.end(),
                       [&](const std::string& file) { return is_below(file, directory); });
  }
};

class Distributions {
 public:
  Distributions() = default;
  // Reads the metadata in these directories, in order, then conda-meta below the prefixes.
  static Distributions read(const Tree& tree, const std::vector<std::string>& site_directories,
                            const std::vector<std::string>& conda_prefixes);
  static Distributions read(const Tree& tree, const Interpreter& interpreter);

  const std::vector<Distribution>& all() const& { return all_; }
  const std::vector<Distribution>& all() && = delete;  // would not outlive the statement
  const std::vector<std::string>& problems() const { return problems_; }
  // Directories that a stopped pip left behind: "~orch-2.6.0.dist-info", absolute.
  const std::vector<std::string>& leftovers() const { return leftovers_; }

  // Everyone who claims this file, in the order of all(): by its path, else by what it is (a hard
  // link or a symlink to a claimed file), else those that list no files but own its package.
  std::vector<const Distribution*> owners(const std::string& path) const;
  // nullptr if it is not installed. Names are compared as pip does: case and "-_." do not matter.
  const Distribution* find(std::string_view name) const;

 private:
  struct FileIds;

  void add_problem(std::string sentence);
  void read_site(const std::string& site);
  void read_conda(const std::string& prefix);
  void index();
  const FileIds& file_ids() const;
  std::vector<const Distribution*> pick(const std::vector<uint32_t>& indexes) const;

  Tree tree_;
  std::vector<Distribution> all_;
  std::vector<std::string> problems_;
  std::vector<std::string> leftovers_;
  std::unordered_map<std::string, std::vector<uint32_t>> by_path_;
  std::unordered_map<std::string, uint32_t> by_name_;  // normal name: the first of them
  mutable std::shared_ptr<const FileIds> ids_;  // made when first needed: one stat for each file
};

// The names in the text of a RECORD (PEP 376: CSV) that look like native libraries.
std::vector<std::string> native_names_of_record(std::string_view text);

}  // namespace cohabit
