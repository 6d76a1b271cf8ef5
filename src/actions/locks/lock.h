// What an environment has installed, as a lock: the wheel of each distribution, with its address
// and hash. A wheel stands here only if its list of files is the installed one; what cannot be said
// is said to be so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cohabit::locks {

struct WheelAddress {
  std::string file;     // "numpy-1.26.4-cp311-cp311-manylinux_2_17_x86_64.whl"
  std::string address;  // https:, http: or file:, without credentials
  std::string hash;     // sha256 of the wheel, hexadecimal; empty: not known
  uint64_t size = 0;    // 0: not known
};

struct LockedWheel {
  std::string name, version;
  WheelAddress wheel;
  bool is_direct = false;   // it was installed from this address, not by name from an index
  bool is_bundled = false;  // Python itself brings it (ensurepip)
};

struct Unsaid {
  std::string name, version;
  std::string why;
};

struct CondaPackage {
  std::string name, version, build, channel;
};

// A file that is not what its distribution's RECORD says.
struct ChangedFile {
  std::string distribution;
  std::string path;
  std::string why;
};

struct Lock {
  std::string python;  // "3.11.7"
  std::vector<LockedWheel> wheels;
  std::vector<CondaPackage> conda;
  std::vector<Unsaid> unsaid;
  std::vector<ChangedFile> changed;
};

}  // namespace cohabit::locks
