// Images: every ELF file that a simulation has met, parsed once, and the index of all their names.
//
// The index is what makes further sequences cheap. A symbol name of any file becomes a NameId; for
// each NameId the index knows every definition in every image. 95 % of the references in real
// processes have one provider, so a lookup is one array access instead of a walk over a hundred
// bloom filters (measured in bench/).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/tree.h"
#include "facts/elf/object.h"

namespace cohabit {

using ImageId = uint32_t;
using NameId = uint32_t;
using VersionId = uint32_t;  // 0: no version; equal ids <=> equal hash and name
constexpr uint32_t kNone = 0xffffffff;

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
  uint32_t symbol;  // index in the image's symbol table
  NameId name;
  VersionId version;  // wanted; 0: none
  RefKind kind;
  bool version_hidden;  // the wanted version is for old binaries only
  bool weak;
  bool is_protected;
};

struct Definition {
  // Of the symbol and of its version table entry.
  enum Flag : uint16_t {
    kUndefined = 1,          // SHN_UNDEF with a value: a canonical PLT entry
    kVersioned = 2,          // the image has version tables
    kVersionHidden = 4,      // not the default version
    kLowVersion = 8,         // version index 0, 1 or 2: what unversioned references take
    kHiddenVisibility = 16,  // hidden or internal
    kGlobal = 32,
    kWeak = 64,
    kUnique = 128,
  };
  ImageId image;
  uint32_t symbol;
  uint32_t next;      // index of the next definition of this name, kNone at the end
  VersionId version;  // 0: none, or the base version
  uint16_t flags;
};

struct Image {
  std::string path;       // by which it was first opened
  std::string real_path;  // links resolved
  FileId file;
  uint64_t file_size = 0;
  MappedFile map;
  elf::Object elf;
  std::vector<Reference> references;  // in relocation order
  std::vector<VersionId> versions;    // by version index, as elf.versions
  bool own_static_tls = false;        // TPOFF against its own TLS segment
  bool indexed = false;
};

class Images {
 public:
  explicit Images(const Tree& tree) : tree_(tree) {}
  Images(const Images&) = delete;

  const Tree& tree() const { return tree_; }
  // What opening this path gives, as ld.so's open_verify sees it for programs of `machine`. The
  // file system counts as frozen: every path is looked at once.
  struct Probe {
    int error = 0;          // errno when the file could not be opened or read, else 0
    ImageId image = kNone;  // only when the header is loadable
    elf::HeaderCheck header;
  };
  const Probe& open(const std::string& path, uint16_t machine);
  // Whether the directory exists; looked at once.
  bool directory_exists(const std::string& path);
  const Image& operator[](ImageId id) const { return *images_[id]; }
  uint32_t size() const { return static_cast<uint32_t>(images_.size()); }

  // Makes references, versions and definitions of the image available. Idempotent.
  void index(ImageId id);

  uint32_t first_definition(NameId name) const { return heads_[name]; }
  const Definition& definition(uint32_t index) const { return definitions_[index]; }
  std::string_view name(NameId id) const;
  NameId name_count() const { return static_cast<NameId>(names_.size()); }
  VersionId intern_version(uint32_t hash, std::string_view name);
  // kNone if no indexed image mentions it.
  NameId find_name(std::string_view name) const;

 private:
  // A name is kept as its place in a string table, so that a definition whose hash no other has is
  // entered without its string ever being read. `hash` is the GNU hash without its lowest bit: the
  // chains of DT_GNU_HASH keep no more.
  NameId intern(uint32_t hash, Bytes name);
  Probe look_at(const std::string& path, uint16_t machine);
  std::optional<ImageId> find(FileId file) const;
  void make_room();
  void grow_table();
  void prefetch(uint32_t hash) const;
  void add_definition(ImageId image, uint32_t symbol, uint32_t hash,
                      std::vector<NameId>& symbol_names);
  void index_gnu_hash(ImageId id, std::vector<NameId>& symbol_names);
  void index_sysv_hash(ImageId id, std::vector<NameId>& symbol_names);
  void index_references(Image& image, std::vector<NameId>& symbol_names);
  NameId name_of(const Image& image, uint32_t symbol, std::vector<NameId>& symbol_names);
  void index_versions(Image& image);

  const Tree& tree_;
  std::vector<std::unique_ptr<Image>> images_;
  std::unordered_map<uint64_t, std::vector<ImageId>> by_file_;
  std::unordered_map<std::string, Probe> probes_;
  std::unordered_map<std::string, bool> directories_;

  std::vector<Bytes> names_;      // by NameId: from the first letter to the end of the table
  std::vector<uint32_t> hashes_;  // by NameId
  std::vector<uint32_t> heads_;   // by NameId: first definition
  std::vector<uint32_t> tails_;
  struct Slot {
    uint32_t hash;
    NameId id;
  };
  std::vector<Slot> table_;  // open addressing, power of two
  std::vector<Definition> definitions_;

  struct VersionKey {
    uint32_t hash;
    std::string_view name;
    bool operator==(const VersionKey&) const = default;
  };
  struct VersionKeyHash {
    size_t operator()(const VersionKey& key) const { return key.hash; }
  };
  std::unordered_map<VersionKey, VersionId, VersionKeyHash> version_ids_;
};

}  // namespace cohabit
