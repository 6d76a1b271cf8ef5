// Requirements of Python distributions (PEP 508): "torch[opt] >=2.0,<3 ; python_version < '3.12'".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facts/python/interpreter.h"
#include "facts/python/version.h"

namespace cohabit {

// PEP 503: lower case, runs of "-_." are one "-".
std::string normal_name(std::string_view name);

// What the variables of a marker are in an examined interpreter.
struct MarkerEnvironment {
  std::string python_version;       // "3.11"
  std::string python_full_version;  // "3.11.7"
  std::string os_name = "posix";
  std::string sys_platform = "linux";
  std::string platform_system = "Linux";
  std::string platform_machine;                // "x86_64"
  std::string platform_python_implementation;  // "CPython"
  std::string implementation_name;             // "cpython"
  std::string platform_release;                // of the kernel: not looked at
  std::string platform_version;
  // Of a lock file (PEP 751) only: what "'dev' in dependency_groups" asks for.
  std::optional<std::vector<std::string>> extras, dependency_groups;
  // Unknown patch levels are taken as the last one there could be.
  static MarkerEnvironment of(const Interpreter& interpreter);
};

// True or false; nothing if the text is no marker, or compares what has no order.
std::optional<bool> evaluate_marker(std::string_view marker, const MarkerEnvironment& environment,
                                    std::string_view extra);

struct PackageRequirement {
  std::string name;                 // as written
  std::vector<std::string> extras;  // that it asks of the other: normal names
  VersionSpecifiers specifiers;
  std::string url;     // "name @ url"
  std::string marker;  // empty: holds everywhere

  static std::optional<PackageRequirement> parse(std::string_view text);
  // Whether it holds here, with this extra of its own distribution ("": without any).
  bool applies(const MarkerEnvironment& environment, std::string_view extra) const;
  // The same without any extra or with one of these: nobody writes down which were asked for.
  bool may_apply(const MarkerEnvironment& environment,
                 const std::vector<std::string>& own_extras) const;
};

}  // namespace cohabit
