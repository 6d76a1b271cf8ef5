// What an image looks up when it is relocated, read from its file alone.
#pragma once

#include <cstdint>
#include <vector>

#include "base/huge_pages.h"
#include "facts/elf/object.h"

namespace cohabit {

using NameId = uint32_t;
using VersionId = uint32_t;  // 0: no version; equal ids <=> equal hash and name

// How ld.so looks a reference up, from its relocation type (elf_machine_type_class) and table.
enum class RefKind : uint8_t {
  kData,       // any definition or, for addresses of functions, a canonical PLT entry
  kTls,        // DTPMOD, DTPOFF: class PLT
  kStaticTls,  // TPOFF: class PLT, needs the object in the static TLS block
  kTlsDesc,    // class PLT, static if there is room
  kJumpSlot,   // DT_JMPREL: class PLT, may be bound at the first call
  kPltNow,     // a JUMP_SLOT outside DT_JMPREL, or one that is never lazy
  kCopy,       // skips the executable
};

// One thing an object looks up when it is relocated. Duplicates are folded: the first stays. What
// binding needs of the symbol table is copied here, so that it need not be read again.
struct Reference {
  uint32_t symbol;    // index in the image's symbol table
  NameId name;        // as read: the GNU hash of the name without its lowest bit
  VersionId version;  // wanted; 0: none. As read: the version index
  RefKind kind;
  bool version_hidden;  // the wanted version is for old binaries only
  bool weak;
  bool is_protected;
};

// A relocation of a type that ld.so does not know: relocation ends there with an error.
struct UnexpectedType {
  uint32_t type = 0;
  size_t after = SIZE_MAX;  // as many references are bound before; SIZE_MAX: there is none
  bool plt = false;         // "unexpected PLT reloc type": met when jump slots are prepared
};

struct References {
  HugeVector<Reference> list;   // in relocation order
  bool own_static_tls = false;  // TPOFF against its own TLS segment
  UnexpectedType unexpected;    // where everything is bound at once
  UnexpectedType unexpected_lazily;
  std::vector<elf::Defect> defects;  // at most one of a kind
};

// Relocations that may look something up: an upper bound for the size of the list.
uint64_t count_relocations(const elf::Object& object);
// `list` as read. Touches most of the string table: 0.1 s for TensorFlow's largest library.
References read_references(const elf::Object& object);

}  // namespace cohabit
