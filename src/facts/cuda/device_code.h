// Which GPUs a library has code for: its fat binaries, as nvcc and fatbinary embed them.
//
// A container is a header of 16 bytes (magic, version, size) and entries one after the other: each
// a header that names kind and architecture, and a payload that may be compressed and is never
// looked at. Containers lie in .nv_fatbin, and in sections of any name: cuFFT keeps 29,000 of them
// in .ldata, cuBLASLt some in .cask_resource. There is no index, so they are found by walking: one
// page per entry is read, 5 ms for a library of 540 MB. The format is not documented by its maker;
// what is used of it agrees with `cuobjdump --list-elf --list-ptx`
// (tests/metadata/test_device_code.py).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace cohabit::cuda {

enum class CodeKind : uint8_t {
  kMachineCode,   // a cubin: for one architecture
  kPtx,           // compiled by the driver when it is first needed
  kIntermediate,  // for the linker at run time: runs nowhere by itself
};

struct DeviceCode {
  CodeKind kind = CodeKind::kMachineCode;
  int sm = 0;                        // 86: sm_86 or compute_86
  char suffix = 0;                   // 'a': this architecture only; 'f': its family only
  int ptx_major = 0, ptx_minor = 0;  // of PTX: the version of its language
  auto operator<=>(const DeviceCode&) const = default;
};

struct DeviceCodes {
  struct Row {
    DeviceCode code;
    uint64_t entries = 0;
    uint64_t bytes = 0;
  };
  std::vector<Row> rows;  // in the order of DeviceCode
  uint64_t containers = 0;
  std::vector<std::string> problems;

  bool empty() const { return rows.empty(); }
  uint64_t bytes() const;
};

// Of an ELF file; empty for anything else. A file without .nv_fatbin and .nvFatBinSegment is taken
// to have none: its other sections are not searched.
DeviceCodes read_device_code(Bytes file);

// Whether a GPU of this compute capability runs it; PTX after the driver has compiled it.
bool goes_with(const DeviceCode& code, int sm);

// "sm_90a", "compute_80 (PTX 8.4)"
std::string name_of(const DeviceCode& code);

}  // namespace cohabit::cuda
