// Whether a build of a framework can run on a machine, by the tables alone: Python, glibc, driver,
// and the GPU's code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "facts/cuda/releases.h"

namespace cohabit {

// What is known of a machine; what is empty does not count.
struct WantedMachine {
  std::string driver;       // "535.104.05", "535"
  std::vector<int> sms;     // 75
  int python = 0;           // 310
  std::string glibc;        // "2.31"
  std::string platform;     // "x86_64"
  std::string cuda;         // "12", "12.6": a build for this one
  bool has_no_gpu = false;  // it was looked or said that there is none

  bool asks_gpu() const { return !driver.empty() || !sms.empty() || !cuda.empty(); }
};

// "driver 535, sm_75, python 3.10": facts separated by commas; `here` is filled in before. Says
// what was expected where one is none.
Result<void> read_wanted(std::string_view text, WantedMachine& wanted, bool& here);

enum class Fit : uint8_t {
  kRuns,      // machine code for its GPU, and the driver takes the CUDA
  kCompiled,  // the driver compiles PTX at first use
  kUnknown,   // something that decides is not known
  kCpuOnly,   // it runs, and does not use the GPU
  kNot,
};
std::string_view fit_name(Fit fit);

struct Judged {
  const cuda::Build* build = nullptr;
  Fit fit = Fit::kRuns;
  std::vector<std::string> reasons;  // why not, or what to know; the first decided
};
Judged judge(const cuda::Build& build, const WantedMachine& wanted);

// What a user asks about: "torch", "paddlepaddle-gpu", "torch==2.8".
struct AskedFramework {
  std::string name, version;  // an empty version: all; "2.8": 2.8.0 and 2.8.1 too
  bool takes(const cuda::Build& build) const;
};
// Fails for what the tables do not know, with what is probably meant.
Result<AskedFramework> read_framework(const std::string& text);
// Its builds, one distribution after the other, of each the newest first.
std::vector<const cuda::Build*> builds_of(const AskedFramework& asked);
// The build that this requirement asks for on x86_64: "jax[cuda12]==0.7.2". Null: not in the
// tables.
const cuda::Build* build_of_pin(std::string_view pin);

// The best builds for this machine: the newest that runs of what the index has, and of what other
// indexes have; where there are none, of those that are uncertain, or for the CPU. Empty: none.
std::vector<Judged> best_builds(const AskedFramework& asked, const WantedMachine& wanted);
// Why none fits: the newest build and what is against it.
Judged nearest_miss(const AskedFramework& asked, const WantedMachine& wanted);

// "2.14." of 2.14.1
std::string minor_of(const cuda::Build& build);
// The newest patch of each minor and CUDA, in the table's order.
std::vector<const cuda::Build*> newest_patches(const std::vector<const cuda::Build*>& builds);

}  // namespace cohabit
