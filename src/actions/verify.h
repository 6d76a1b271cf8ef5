// A real run: imports and a small computation of each, in a child process with limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actions/crash_report.h"
#include "actions/launch.h"
#include "base/result.h"

namespace cohabit {

enum class Outcome : uint8_t { kOk, kException, kSignal, kHang, kWrongResult };
std::string_view outcome_name(Outcome outcome);

struct VerifyLimits {
  double seconds = 600;
  uint64_t megabytes = 0;  // of private memory; 0: no limit
};

// A device that a framework has computed on, after its last computation.
struct VerifiedDevice {
  std::string framework, device;  // "torch", "cuda:0"; "cpu"
  std::string name;               // "NVIDIA H100 80GB HBM3"; empty: of the CPU, or not told
  std::string compute_capability;
  // Bytes; nothing where the framework does not tell.
  std::optional<uint64_t> total, allocated, cached;
};

struct VerifiedRun {
  Outcome outcome = Outcome::kOk;
  std::string detail;     // what went wrong, and during what
  std::string exception;  // as Python says it: "ImportError: ..."; empty: it ended otherwise
  std::vector<std::string> raised_in;  // the files of its traceback, the innermost first
  double seconds = 0;
  std::vector<std::pair<std::string, std::string>> versions;  // by module, as it says itself
  // By module, the distributions that bring it, where all say another version than it does.
  std::vector<std::pair<std::string, std::string>> other_metadata;
  std::vector<std::string> notes;       // that a GPU is there and was not seen
  std::vector<VerifiedDevice> devices;  // in the order of the computations
  // Path and version, as the loaded file itself says: CUDA's libraries, the driver's, zlib.
  std::vector<std::pair<std::string, std::string>> libraries;
  std::vector<std::string> told;    // the lines of all these, as take_told has them
  std::vector<NativeFrame> frames;  // where a signal has ended it
};

// `python`: the interpreter. `changes`: of a repair, for the child alone. An error means that the
// child could not be run. Several threads may call it at the same time.
Result<VerifiedRun> verify_imports(const std::string& python,
                                   const std::vector<std::string>& imports,
                                   const std::vector<VariableChange>& changes,
                                   const VerifyLimits& limits);

// A line of the child: "version MODULE VERSION", "device JSON", ...; any other is passed over.
void take_told(const std::string& line, VerifiedRun& run);

// What the child runs: imports its arguments in order, then computes with those that it knows, on
// the CPU and on each GPU that they see (runtime/verify/verified_run.py).
extern const char* const kVerifyProgram;

}  // namespace cohabit
