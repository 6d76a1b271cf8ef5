// What a module is made of.
#pragma once

#include <cstdint>

namespace cohabit::python {

enum class ModuleKind : uint8_t {
  kSource,     // x.py; with a search list: x/__init__.py
  kNative,     // x.cpython-312-x86_64-linux-gnu.so, x.abi3.so, x.so; or x/__init__.*.so
  kBytecode,   // only x.pyc is there: nothing is known of its code
  kNamespace,  // directories without __init__
  kBuiltin,    // in the executable or libpython; no file
};

}  // namespace cohabit::python
