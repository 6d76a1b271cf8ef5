// Images: every ELF file that a simulation has met, parsed once, and the index of all their names.
//
// The index is what makes further sequences cheap. A symbol name of any file becomes a NameId; for
// each NameId the index knows every definition in every image. 95 % of the references in real
// processes have one provider, so a lookup is one array access instead of a walk over a hundred
// bloom filters (measured in bench/).
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/column.h"
#include "base/packed.h"
#include "base/real_paths.h"
#include "base/sections.h"
#include "base/tree.h"
#include "facts/elf/object.h"
#include "world/references.h"

namespace cohabit {

using ImageId = uint32_t;
constexpr uint32_t kNone = 0xffffffff;

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
  int64_t modified = 0, changed = 0;  // nanoseconds of the clock; 0: of no file of the tree
  MappedFile map;
  elf::Object elf;
  std::span<const Reference> references;  // in relocation order
  std::vector<VersionId> versions;        // by version index, as elf.versions
  bool own_static_tls = false;            // TPOFF against its own TLS segment
  UnexpectedType unexpected, unexpected_lazily;
  std::vector<elf::Defect> index_defects;  // of its hash table and its references
  bool no_execution = false;               // its file system is mounted so
  bool indexed = false;
  bool foreseen = false;  // opened for what an earlier run has kept, and not yet else
  HugeVector<Reference> own_references;      // where they are not kept
  std::vector<elf::Defect> defects() const;  // of the file, and of its references once indexed
  // MappedFile::extract with the object in those bytes: what is read by `elf` a log would note.
  MappedFile::Words extract(
      const std::string& kind,
      const std::function<MappedFile::Words(const elf::Object&, Bytes)>& read) const;
  std::future<References> early;  // being read on another core; last, so that it ends first
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
  // Makes this path be the open file `fd` (not consumed), whatever the tree has there. False: it is
  // no loadable ELF file.
  bool add_file(const std::string& path, int fd, uint16_t machine);
  // The image of a file that was opened before, by this path or another.
  std::optional<ImageId> find_opened(const std::string& path) const;
  // Whether the directory exists; looked at once.
  bool directory_exists(const std::string& path);
  const Image& operator[](ImageId id) const { return *images_[id]; }
  uint32_t size() const { return static_cast<uint32_t>(images_.size()); }

  // Makes references, versions and definitions of the image available. Idempotent.
  void index(ImageId id);
  // Waits for what is read of files in other threads.
  void settle() const;
  // All of the above is for one thread. Others may read what this one has indexed; while they do
  // they hold this, and what would change the tables waits.
  std::shared_lock<std::shared_mutex> hold() const { return std::shared_lock(changes_); }

  uint32_t first_definition(NameId name) const { return heads_[name]; }
  // Whether there is more than one: of one name in forty.
  bool has_several(NameId name) const { return several_[name] != 0; }
  // Grows with each image that is indexed.
  size_t definition_count() const { return definitions_.size(); }
  // Told some references ahead, near and nearer, they bring the definitions into the cache.
  void prefetch_name(NameId name) const { __builtin_prefetch(&heads_[name]); }
  void prefetch_definition(NameId name) const {
    if (heads_[name] != kNone) __builtin_prefetch(&definitions_[heads_[name]]);
  }
  const Definition& definition(uint32_t index) const { return definitions_[index]; }
  std::string_view name(NameId id) const;
  NameId name_count() const { return static_cast<NameId>(names_.size()); }
  VersionId intern_version(uint32_t hash, std::string_view name);
  // kNone if no indexed image mentions it.
  NameId find_name(std::string_view name) const;

  // All of the above as it is now, for take_index of a later run of this program. `sections` refers
  // to it. False: it is nothing to be kept, as some of it is of no file, or damaged.
  bool give_index(Packer& packer, SectionWriter& sections) const;
  // What give_index has written, before anything is opened. Opens its files, and looks at all
  // numbers before it believes them, if they are not known. False: a file is not what it was, or
  // the rest does not fit; then nothing is indexed. `sections` is of memory that outlives this.
  bool take_index(Unpacker& unpacker, SectionReader& sections);

 private:
  // A name is kept as its place in a string table, so that a definition whose hash no other has is
  // entered without its string ever being read.
  struct Place {
    ImageId image;
    uint32_t offset;  // in the string table
  };
  Bytes text_at(Place place) const { return images_[place.image]->elf.strings.from(place.offset); }
  // `hash` is the GNU hash without its lowest bit: the chains of DT_GNU_HASH keep no more.
  NameId intern(uint32_t hash, Place place);
  void make_own();
  bool take_images(Unpacker& unpacker, SectionReader& sections);
  bool take_columns(SectionReader& sections);
  bool is_consistent() const;
  bool has_each_several() const;
  void forget_index();
  Probe look_at(const std::string& path, uint16_t machine);
  Probe take(const std::string& path, MappedFile map, FileId file, uint16_t machine);
  std::optional<ImageId> find(FileId file) const;
  void make_room();
  void resize_table(size_t size);
  void prefetch(uint32_t hash) const;
  void add_definition(ImageId image, uint32_t symbol, uint32_t hash,
                      std::vector<NameId>& symbol_names);
  static bool is_found(const elf::Object& object, uint32_t symbol, uint32_t hash, uint32_t bucket);
  void index_gnu_hash(ImageId id, std::vector<NameId>& symbol_names);
  void index_sysv_hash(ImageId id, std::vector<NameId>& symbol_names);
  static void read_early(Image& image);
  void name_references(ImageId id, std::vector<NameId>& symbol_names);
  void index_versions(Image& image);

  const Tree& tree_;
  mutable std::shared_mutex changes_;
  std::vector<std::unique_ptr<Image>> images_;
  std::unordered_map<uint64_t, std::vector<ImageId>> by_file_;
  std::unordered_map<std::string, Probe> probes_;
  std::unordered_map<std::string, bool> directories_;
  RealPaths real_paths_;

  bool is_taking_ = false;   // take_index is at work
  bool is_kept_ = false;     // what follows is of an earlier run, and nothing has come to it
  Column<Place> names_;      // by NameId
  Column<uint32_t> hashes_;  // by NameId
  Column<uint32_t> heads_;   // by NameId: first definition
  HugeVector<uint32_t> tails_;
  Column<uint8_t> several_;  // by NameId: 1 or 0
  struct Slot {
    uint32_t hash;
    NameId id;
  };
  Column<Slot> table_;  // open addressing, power of two
  // Names made to have one hash would be looked through one by one: from some number on they stand
  // here, by another hash.
  std::unordered_map<std::string_view, NameId> crowded_;
  std::vector<NameId> crowded_ids_;  // rising
  Column<Definition> definitions_;

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
