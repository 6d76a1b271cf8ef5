// Captured bindings, and which of them are dangerous. The essay is in captures.cc and
// docs/design/findings.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "findings/closure_definers.h"
#include "findings/families.h"
#include "findings/members.h"
#include "findings/process_view.h"

namespace cohabit {

enum class Verdict : uint8_t {
  kLiveSplit,        // both copies of the family work on the same objects
  kAlikeSplit,       // so do they, and both lay these out alike
  kVersionCrossing,  // references built against one version are given another's definitions
  kLatentSplit,      // split where nobody who was asked for is known to call yet
  kDeadSplit,        // split, but nobody enters, or can come to enter, the old copy
  kMoved,            // all references of the consumer went to the provider together
  kByDesign,         // the distributions involved are made for each other
};

struct Tally {
  sim::ObjectId provider;
  uint32_t names;
};

// References of one object that do not get what its own dependencies provide.
struct CaptureGroup {
  sim::ObjectId consumer = kNone;
  sim::ObjectId provider = kNone;  // whom they are bound to
  sim::ObjectId own = kNone;       // whom its DT_NEEDED closure would have given
  std::string family;              // C++: as written ("6google8protobuf"); empty for C names
  Verdict verdict = Verdict::kMoved;
  uint32_t captured = 0;            // distinct names
  uint32_t stays = 0;               // distinct names of the family still bound to own
  uint32_t split_scopes = 0;        // C++ scopes with members on both sides
  uint32_t versioned_to_plain = 0;  // of the captured: versioned reference, unversioned definition
  uint32_t plain_to_versioned = 0;
  std::vector<uint32_t> bindings;                    // one per captured name, as indices
  std::vector<uint32_t> staying;                     // a few of the bindings that stay
  std::vector<sim::ObjectId> entered_by;             // who calls into own for this family
  std::vector<std::pair<uint32_t, uint32_t>> paths;  // entered symbol of own -> captured symbol
  LayoutComparison layouts;                          // of a split that is alive: own and provider

  bool self() const { return consumer == own; }
};
constexpr size_t kKeptStaying = 64;

// Modules there for a request that is not the provider's own, and that call the interpreter's zlib
// module, which enters `own`, when they are initialised (Cython 3.2).
std::vector<sim::ObjectId> unpackers_on_request(const ProcessView& process,
                                                const CaptureGroup& group);

// Whether somebody enters `own` for a request that is not the provider's own.
bool is_entered_on_request(const ProcessView& process, const CaptureGroup& group);

// Why bindings that leave the closure were not judged: counts, for the curious and for tests.
struct SetAside {
  uint32_t raw = 0;
  uint32_t unique = 0;
  uint32_t weak = 0;
  uint32_t type_info = 0;
  uint32_t runtime = 0;
  uint32_t same_distribution = 0;
  uint32_t copied = 0;
  uint32_t left = 0;
};

struct Captures {
  std::vector<CaptureGroup> groups;
  SetAside set_aside;
};

// What is remembered of the files that processes are simulated from; of one Images.
struct CaptureFacts {
  explicit CaptureFacts(const Images& images)
      : CaptureFacts(images, std::make_shared<ClosureDefiners>(images)) {}
  // `shared`: of those who judge at the same time.
  CaptureFacts(const Images& images, std::shared_ptr<ClosureDefiners> shared)
      : families(images), definers(std::move(shared)) {}

  Families families;
  std::shared_ptr<ClosureDefiners> definers;
  CppRuntimes runtimes;
  // By the two copies and the functions that are compared.
  using Functions = std::vector<std::pair<uint32_t, uint32_t>>;
  std::map<std::tuple<ImageId, ImageId, Functions>, LayoutComparison> layouts;
};

Captures find_captures(const ProcessView& process, CaptureFacts& facts);

// All names of the family that the consumer refers to (C++: that mention it), by who provides them,
// most first. For words and figures, not for judging.
std::vector<Tally> tally_family(const ProcessView& process, const CaptureGroup& group);

}  // namespace cohabit
