// What check, export and recreate tell the installer: where packages come from.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "actions/check/plan.h"

namespace cohabit {

struct PlaceOptions {
  std::vector<std::string> indexes, extra_indexes, links;
  bool no_index = false, offline = false;
};

inline void add_place_options(CLI::App& command, PlaceOptions& options) {
  command.add_option("-i,--index-url", options.indexes, "The installer's option of that name");
  command.add_option("--extra-index-url", options.extra_indexes,
                     "The installer's option of that name");
  command.add_option("-f,--find-links", options.links, "A directory or page of wheels");
  command.add_flag("--no-index", options.no_index, "Only what --find-links names");
  command.add_flag("--offline", options.offline, "Without a network: --find-links, and uv's cache");
}

// As pip and uv spell it.
inline std::vector<std::string> words_of(const PlaceOptions& options, check::Tool tool) {
  std::vector<std::string> words;
  const auto add = [&](const char* name, const std::vector<std::string>& values) {
    for (const std::string& value : values) words.insert(words.end(), {name, value});
  };
  add("--index-url", options.indexes);
  add("--extra-index-url", options.extra_indexes);
  add("--find-links", options.links);
  if (options.no_index || (options.offline && tool == check::Tool::kPip))
    words.emplace_back("--no-index");
  if (options.offline && tool == check::Tool::kUv) words.emplace_back("--offline");
  return words;
}

}  // namespace cohabit
