// Static TLS: _dl_determine_tlsoffset of elf/dl-tls.c at start-up, _dl_try_allocate_static_tls of
// elf/dl-reloc.c later.
//
// The block is laid out once, with a surplus for libraries that are opened later and use the
// initial-exec model (1,664 bytes with default tunables since glibc 2.32). When it is used up, the
// next such library is refused with "cannot allocate memory in static TLS block". Not simulated: a
// thread that touched a module's TLS dynamically before forbids static use of it.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "sim/state.h"

namespace cohabit::sim {
namespace {

// TCB_ALIGNMENT: sysdeps/x86/nptl/pthreaddef.h; elsewhere nptl/descr.h.
constexpr int64_t kTcbAlignment = 64, kAarch64TcbAlignment = 32;
constexpr int64_t kLibcTls = 144, kOtherTls = 144, kLegacyTls = 144;
constexpr int64_t kAarch64TcbSize = 16;

int64_t round_up(int64_t value, int64_t align) {
  return align > 1 ? (value + align - 1) / align * align : value;
}

// The value of a tunable in GLIBC_TUNABLES ("a.b=1:c.d=2"): the last one counts, and one that is
// out of its bounds (glibc: elf/dl-tunables.list) is as if it were not there.
int64_t tunable(const std::string& text, const std::string& name, int64_t fallback, int64_t least,
                int64_t most) {
  int64_t result = fallback;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string_view one = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (one.size() <= name.size() || !one.starts_with(name) || one[name.size()] != '=') continue;
    const int64_t value =
        std::strtoll(std::string(one.substr(name.size() + 1)).c_str(), nullptr, 0);
    if (value >= least && value <= most) result = value;
  }
  return result;
}

int64_t alignment(const elf::TlsSegment& tls) {
  return std::max<int64_t>(static_cast<int64_t>(std::min<uint64_t>(tls.align, 1 << 30)), 1);
}

int64_t size_of(const elf::TlsSegment& tls) {
  return static_cast<int64_t>(std::min<uint64_t>(tls.size, int64_t{1} << 40));
}

struct Run {
  int64_t start = -1, end = -1;
};

// A block joins the run of free space, or takes its place, or is lost: TLS_DTV_AT_TP (AArch64).
void give_back_upwards(Run& run, Run block, int64_t& used) {
  // The order of the questions is glibc's, so two of them may have the same answer.
  if (run.start < 0) {  // NOLINT(bugprone-branch-clone)
    run = block;
  } else if (block.start == run.end) {
    run.end = block.end;
  } else if (block.end == run.start) {
    run.start = block.start;
  } else if (block.end == used) {
    used = block.start;
  } else if (run.end == used) {
    used = run.start;
    run = block;
  } else if (run.end < block.start) {
    run = block;
  }
}

// TLS_TCB_AT_TP (x86-64).
void give_back_downwards(Run& run, Run block, int64_t& used) {
  if (run.end < 0) {  // NOLINT(bugprone-branch-clone)
    run = block;
  } else if (block.end == run.start) {
    run.start = block.start;
  } else if (block.start == run.end) {
    run.end = block.end;
  } else if (run.end == used) {
    used = run.start;
    run = block;
  } else if (block.end == used) {
    used = block.start;
  } else if (run.end < block.end) {
    run = block;
  }
}

}  // namespace

void Simulation::State::lay_out_static_tls() {
  const std::string tunables = variable("GLIBC_TUNABLES").value_or("");
  const int64_t nns = tunable(tunables, "glibc.rtld.nns", 4, 1, kMaxNamespaces);
  tls_optional = tunable(tunables, "glibc.rtld.optional_static_tls", 512, 0, INT64_MAX);
  const int64_t surplus = (nns - 1) * kLibcTls + nns * kOtherTls + tls_optional + kLegacyTls;
  const bool tcb_first = sim.machine_.elf_machine == elf::EM_AARCH64;
  int64_t offset = tcb_first ? kAarch64TcbSize : 0, free_top = 0, free_bottom = 0;
  const int64_t tcb_align = tcb_first ? kAarch64TcbAlignment : kTcbAlignment;
  tls_align = tcb_align;
  for (const ObjectId id : namespaces[0].loaded) {
    if (!elf(id).tls) continue;
    const elf::TlsSegment& tls = *elf(id).tls;
    const int64_t align = alignment(tls), size = size_of(tls);
    const int64_t first_byte = -static_cast<int64_t>(tls.first_byte) & (align - 1);
    tls_align = std::max(tls_align, align);
    if (tcb_first) {
      int64_t at = round_up(offset, align);
      if (at - offset < first_byte) at += align;
      object(id).static_tls_offset = at - first_byte;
      offset = at + size - first_byte;
      continue;
    }
    if (free_bottom - free_top >= size) {
      const int64_t at = round_up(free_top + size - first_byte, align) + first_byte;
      if (at <= free_bottom) {
        free_top = at;
        object(id).static_tls_offset = at;
        continue;
      }
    }
    const int64_t at = round_up(offset + size - first_byte, align) + first_byte;
    if (at > offset + size + (free_bottom - free_top)) {
      free_top = offset;
      free_bottom = at - size;
    }
    offset = at;
    object(id).static_tls_offset = at;
  }
  tls_used = offset;
  tls_limit = round_up(offset + surplus, tcb_first ? tcb_align : tls_align);
}

bool Simulation::State::allocate_static_tls(ObjectId id, bool optional) {
  const elf::TlsSegment& tls = *elf(id).tls;
  const int64_t align = alignment(tls), size = size_of(tls);
  const auto first_byte = static_cast<int64_t>(tls.first_byte);
  if (align > tls_align) return false;
  int64_t use = 0, offset = 0;
  if (sim.machine_.elf_machine == elf::EM_AARCH64) {
    offset = round_up(tls_used - first_byte, align) + first_byte;
    use = offset + size - tls_used;
    if (offset + size > tls_limit) return false;
  } else {
    const int64_t free_bytes = tls_limit - tls_used, block = size + first_byte;
    if (free_bytes < block) return false;
    use = free_bytes - (free_bytes - block) / align * align - first_byte;
    offset = tls_used + use;
  }
  if (optional && use > tls_optional) return false;
  if (optional) tls_optional -= use;
  object(id).static_tls_start = tls_used;
  tls_used += use;
  object(id).static_tls_offset = offset;
  return true;
}

// Only space at the end of the used part comes back, and only as one run (elf/dl-close.c).
void Simulation::State::release_static_tls(const std::vector<ObjectId>& removed) {
  const bool upwards = sim.machine_.elf_machine == elf::EM_AARCH64;
  Run run;
  for (const ObjectId id : removed) {
    const int64_t offset = object(id).static_tls_offset;
    if (offset < 0 || !elf(id).tls) continue;
    const int64_t size = size_of(*elf(id).tls);
    object(id).static_tls_offset = -1;
    if (upwards) {
      give_back_upwards(run, {object(id).static_tls_start, offset + size}, tls_used);
    } else {
      give_back_downwards(run, {offset - size, offset}, tls_used);
    }
  }
  if (run.end >= 0 && run.end == tls_used) tls_used = run.start;
}

}  // namespace cohabit::sim
