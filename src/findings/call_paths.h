// Who calls whom inside one library, read from its machine code.
//
// A symbol table tells that a library's own references to g() were bound elsewhere, but not which
// of its functions reach g(). That decides whether a split is alive: libstdc++'s
// std::random_device::_M_init(string const&) ends in a call of its other _M_init, so when that one
// is captured, whoever enters the first works with two implementations of one object. Where the
// same class only *constructs* through a captured function that no entered member calls, nothing
// happens.
//
// No disassembler is needed. Function bounds come from .eh_frame_hdr (which lists also functions
// without a symbol); a 32-bit field whose value, taken relative to its end, is the first byte of a
// function, a PLT stub or a GOT slot is a reference to it: in 2 GB of address space a random match
// is one in thousands of kilobytes of code. On AArch64 B, BL and ADRP pairs are decoded instead.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "facts/elf/function_bounds.h"
#include "world/images.h"

namespace cohabit {

class CallPaths {
 public:
  explicit CallPaths(const Image& image);

  // False: no unwind table or an unknown machine, so nothing can be said.
  bool known() const { return known_; }
  // Symbols (of the image's table) of exported functions from which one of the `targets` (symbols
  // that the image refers to) is called, directly or through functions that are not exported. A
  // path may also lead through exported functions for which may_pass is true.
  template <class MayPass>
  std::unordered_set<uint32_t> callers_of(const std::vector<uint32_t>& targets,
                                          MayPass may_pass) const;

 private:
  void read_got(const Image& image);
  void read_exports(const Image& image);
  void scan_x86_64(const Image& image);
  void scan_aarch64(const Image& image);
  void add_edge(uint64_t site, uint64_t target);
  uint32_t function_at(uint64_t address) const;

  bool known_ = false;
  std::vector<elf::FunctionBounds> functions_;
  std::unordered_map<uint64_t, uint32_t> function_by_begin_;         // address -> function
  std::unordered_map<uint64_t, uint32_t> symbol_of_slot_;            // GOT address -> symbol
  std::unordered_map<uint64_t, uint32_t> symbol_of_stub_;            // PLT stub -> symbol
  std::unordered_map<uint32_t, std::vector<uint32_t>> exported_as_;  // function -> symbols
  std::unordered_map<uint32_t, std::vector<uint32_t>> callers_;      // function -> functions
  std::unordered_map<uint32_t, std::vector<uint32_t>> users_;        // symbol -> functions
};

template <class MayPass>
std::unordered_set<uint32_t> CallPaths::callers_of(const std::vector<uint32_t>& targets,
                                                   MayPass may_pass) const {
  std::unordered_set<uint32_t> exported;
  std::unordered_set<uint32_t> seen;
  std::vector<uint32_t> work;
  const auto push = [&](const auto& map, uint32_t key) {
    if (const auto found = map.find(key); found != map.end())
      for (const uint32_t function : found->second)
        if (seen.insert(function).second) work.push_back(function);
  };
  for (const uint32_t target : targets) push(users_, target);
  while (!work.empty()) {
    const uint32_t function = work.back();
    work.pop_back();
    const auto names = exported_as_.find(function);
    bool pass = names == exported_as_.end();
    if (!pass) {
      for (const uint32_t symbol : names->second) {
        exported.insert(symbol);
        pass |= may_pass(symbol);
      }
    }
    if (pass) push(callers_, function);
  }
  return exported;
}

}  // namespace cohabit
