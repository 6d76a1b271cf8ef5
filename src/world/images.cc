#include "world/images.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/not_in_bundle.h"

namespace cohabit {
namespace {

using elf::Object;
using elf::Sym;

// Both end with NUL, or are empty: a name that is outside its table.
bool same_name(Bytes a, Bytes b) {
  const char* x = a.text().data();
  const char* y = b.text().data();
  if (a.empty() || b.empty()) return a.empty() && b.empty();
  return x == y || std::strncmp(x, y, std::min(a.size(), b.size())) == 0;
}

constexpr size_t kFirstTableSize = 1 << 12;
constexpr int kCrowd = 64;  // more different names of one hash than chance brings together
constexpr uint64_t kManySymbols = 20000, kManyRelocations = 20000;

size_t slot_of(uint32_t hash, size_t mask) {
  return (hash * size_t{0x9e3779b1u} >> 8) & mask;
}

// What check_match in elf/dl-lookup.c demands of any definition, whoever asks.
bool can_be_definition(const Sym& symbol) {
  if (symbol.st_value == 0 && symbol.st_shndx != elf::SHN_ABS && symbol.type() != elf::STT_TLS)
    return false;
  switch (symbol.type()) {
    case elf::STT_NOTYPE:
    case elf::STT_OBJECT:
    case elf::STT_FUNC:
    case elf::STT_COMMON:
    case elf::STT_TLS:
    case elf::STT_GNU_IFUNC:
      return true;
    default:
      return false;
  }
}

VersionId version_of(const Image& image, uint32_t symbol) {
  if (image.elf.versym.empty()) return 0;
  const uint16_t index = image.elf.versym[symbol] & elf::kVersionIndex;
  return index < image.versions.size() ? image.versions[index] : 0;
}

uint16_t definition_flags(const Object& object, const Sym& symbol, uint32_t index) {
  unsigned flags = 0;
  if (symbol.st_shndx == elf::SHN_UNDEF) flags |= Definition::kUndefined;
  if (!object.versym.empty() && !object.versions.empty()) {
    const uint16_t version = object.versym[index];
    flags |= Definition::kVersioned;
    if (version & elf::kVersionHidden) flags |= Definition::kVersionHidden;
    if ((version & elf::kVersionIndex) < 3) flags |= Definition::kLowVersion;
  }
  if (symbol.visibility() == elf::STV_HIDDEN || symbol.visibility() == elf::STV_INTERNAL)
    flags |= Definition::kHiddenVisibility;
  if (symbol.bind() == elf::STB_GLOBAL) flags |= Definition::kGlobal;
  if (symbol.bind() == elf::STB_WEAK) flags |= Definition::kWeak;
  if (symbol.bind() == elf::STB_GNU_UNIQUE) flags |= Definition::kUnique;
  return static_cast<uint16_t>(flags);
}

// How many symbols the hash table proves: DT_SYMTAB itself has no length.
uint64_t hashed_symbol_count(const Object& object) {
  if (!object.gnu_hash)
    return object.sysv_hash ? std::min(object.sysv_hash->chain.size(), object.symbols.size()) : 0;
  const elf::GnuHash& table = *object.gnu_hash;
  uint32_t last = 0;
  for (uint32_t bucket = 0; bucket < table.bucket_count; bucket++)
    last = std::max(last, table.buckets[bucket]);
  if (last < table.symbol_offset) return std::min<uint64_t>(last, object.symbols.size());
  uint64_t at = last - table.symbol_offset;
  while (at < table.chain.size() && !(table.chain[at] & 1)) at++;
  return std::min(table.symbol_offset + at + 1, object.symbols.size());
}

}  // namespace

std::vector<elf::Defect> Image::defects() const {
  std::vector<elf::Defect> all = elf.defects;
  all.insert(all.end(), index_defects.begin(), index_defects.end());
  return all;
}

MappedFile::Words Image::extract(
    const std::string& kind,
    const std::function<MappedFile::Words(const elf::Object&, Bytes)>& read) const {
  return map.extract(kind, [&](Bytes bytes) {
    const bool is_same = bytes.text().data() == map.bytes().text().data();
    return is_same ? read(elf, bytes) : read(elf::parse(bytes), bytes);
  });
}

// Room for three large frameworks at once, so that nothing is copied while it grows. Memory that is
// never written costs nothing. Small processes do not come here.
void Images::make_room() {
  constexpr size_t kNames = 3 << 20, kDefinitions = 4 << 20, kTableSize = 1 << 20;
  if (table_.size() < kTableSize) resize_table(kTableSize);
  names_.reserve(kNames);
  hashes_.reserve(kNames);
  heads_.reserve(kNames);
  tails_.reserve(kNames);
  several_.reserve(kNames);
  definitions_.reserve(kDefinitions);
}

// Reads the references of large images on another core, while this one loads and binds. Where no
// thread can be had, index() reads them.
void Images::read_early(Image& image) {
  if (count_relocations(image.elf) < kManyRelocations) return;
  try {
    image.early =
        std::async(std::launch::async, [&object = image.elf] { return read_references(object); });
  } catch (const std::system_error&) {
    image.early = {};
  }
}

void Images::settle() const {
  for (const auto& image : images_)
    if (image->early.valid()) image->early.wait();
}

const Images::Probe& Images::open(const std::string& path, uint16_t machine) {
  const auto found = probes_.find(path);
  if (found != probes_.end()) {
    if (found->second.image != kNone) images_[found->second.image]->foreseen = false;
    return found->second;
  }
  return probes_.emplace(path, look_at(path, machine)).first->second;
}

Images::Probe Images::look_at(const std::string& path, uint16_t machine) {
  Probe probe;
  const auto status = tree_.stat(path);
  if (!status) {
    probe.error = status.error();
    return probe;
  }
  if (const auto known = find(status->id)) {
    probe.image = *known;
    if (Image& image = *images_[*known]; std::exchange(image.foreseen, false)) image.path = path;
    return probe;
  }
  if (S_ISDIR(status->mode)) {
    probe.error = EISDIR;
    return probe;
  }
  const auto fd = tree_.open(path);
  if (!fd) {
    probe.error = fd.error();
    return probe;
  }
  auto map = tree_.map(*fd, path);
  struct statvfs mount{};
  const bool mounted = tree_.root().empty() && ::fstatvfs(*fd, &mount) == 0;
  struct stat opened{};
  const bool is_known = ::fstat(*fd, &opened) == 0;
  ::close(*fd);
  if (!map) {
    probe.error = EIO;
    return probe;
  }
  probe = take(path, std::move(*map), status->id, machine);
  if (probe.image == kNone) return probe;
  Image& image = *images_[probe.image];
  image.no_execution = mounted && (mount.f_flag & ST_NOEXEC);
  if (is_known) {
    image.modified = nanoseconds(opened.st_mtim);
    image.changed = nanoseconds(opened.st_ctim);
  }
  return probe;
}

Images::Probe Images::take(const std::string& path, MappedFile map, FileId file, uint16_t machine) {
  Probe probe;
  probe.header = elf::check_header(map.bytes(), machine);
  if (is_of_bundle(tree_) && map.damaged()) probe.error = kNotInBundle;
  if (probe.error || probe.header.verdict != elf::HeaderVerdict::kLoadable) return probe;
  auto image = std::make_unique<Image>();
  image->path = path;
  image->real_path = tree_.real_path(path, real_paths_).value_or(path);
  image->file = file;
  image->file_size = map.bytes().size();
  image->map = std::move(map);
  image->elf = elf::parse(image->map.bytes());
  if (is_of_bundle(tree_) && image->map.damaged()) {
    probe.error = kNotInBundle;
    return probe;
  }
  if (!is_taking_) read_early(*image);
  const std::lock_guard lock(changes_);
  probe.image = static_cast<ImageId>(images_.size());
  by_file_[file.inode * 31 + file.device].push_back(probe.image);
  images_.push_back(std::move(image));
  return probe;
}

bool Images::add_file(const std::string& path, int fd, uint16_t machine) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return false;
  const FileId file{status.st_dev, status.st_ino};
  auto map = MappedFile::map(fd, path);
  if (!map) return false;
  const Probe probe = take(path, std::move(*map), file, machine);
  probes_[path] = probe;
  return probe.image != kNone;
}

std::optional<ImageId> Images::find_opened(const std::string& path) const {
  const auto status = tree_.stat(path);
  return status ? find(status->id) : std::nullopt;
}

bool Images::directory_exists(const std::string& path) {
  const auto found = directories_.find(path);
  if (found != directories_.end()) return found->second;
  const auto status = tree_.stat(path);
  return directories_.emplace(path, status && S_ISDIR(status->mode)).first->second;
}

std::optional<ImageId> Images::find(FileId file) const {
  const auto found = by_file_.find(file.inode * 31 + file.device);
  if (found == by_file_.end()) return std::nullopt;
  for (const ImageId id : found->second)
    if (images_[id]->file == file) return id;
  return std::nullopt;
}

std::string_view Images::name(NameId id) const {
  return text_at(names_[id]).c_string(0).value_or(std::string_view());
}

void Images::resize_table(size_t size) {
  HugeVector<Slot> table(size, Slot{0, kNone});
  const size_t mask = size - 1;
  for (NameId id = 0; id < names_.size(); id++) {
    if (std::binary_search(crowded_ids_.begin(), crowded_ids_.end(), id)) continue;
    size_t at = slot_of(hashes_[id], mask);
    while (table[at].id != kNone) at = (at + 1) & mask;
    table[at] = {hashes_[id], id};
  }
  table_.take(std::move(table));
}

void Images::prefetch(uint32_t hash) const {
  if (!table_.empty()) __builtin_prefetch(&table_[slot_of(hash, table_.size() - 1)]);
}

NameId Images::intern(uint32_t hash, Place place) {
  if ((names_.size() + 1) * 4 > table_.size() * 3)
    resize_table(std::max(table_.size() * 2, kFirstTableSize));
  const size_t mask = table_.size() - 1;
  size_t at = slot_of(hash, mask);
  const Bytes name = text_at(place);
  int alike = 0;
  for (; table_[at].id != kNone; at = (at + 1) & mask) {
    if (table_[at].hash != hash) continue;
    if (same_name(text_at(names_[table_[at].id]), name)) return table_[at].id;
    if (++alike == kCrowd) break;
  }
  const auto id = static_cast<NameId>(names_.size());
  if (alike < kCrowd) {
    table_.change(at) = {hash, id};
  } else {
    const auto [known, added] = crowded_.emplace(name.c_string(0).value_or(std::string_view()), id);
    if (!added) return known->second;
    crowded_ids_.push_back(id);
  }
  names_.push_back(place);
  hashes_.push_back(hash);
  heads_.push_back(kNone);
  tails_.push_back(kNone);
  several_.push_back(0);
  return id;
}

NameId Images::find_name(std::string_view name) const {
  if (table_.empty()) return kNone;
  const uint32_t hash = elf::gnu_hash(name) >> 1;
  const size_t mask = table_.size() - 1;
  int alike = 0;
  for (size_t at = slot_of(hash, mask); table_[at].id != kNone; at = (at + 1) & mask) {
    if (table_[at].hash != hash) continue;
    if (this->name(table_[at].id) == name) return table_[at].id;
    if (++alike < kCrowd) continue;
    const auto crowded = crowded_.find(name);
    return crowded == crowded_.end() ? kNone : crowded->second;
  }
  return kNone;
}

VersionId Images::intern_version(uint32_t hash, std::string_view name) {
  if (hash == 0) return 0;
  return version_ids_.try_emplace({hash, name}, static_cast<VersionId>(version_ids_.size() + 1))
      .first->second;
}

void Images::add_definition(ImageId id, uint32_t symbol, uint32_t hash,
                            std::vector<NameId>& symbol_names) {
  const Image& image = *images_[id];
  const Sym entry = image.elf.symbols[symbol];
  if (!can_be_definition(entry)) return;
  const NameId name = intern(hash, {id, entry.st_name});
  if (symbol < symbol_names.size()) symbol_names[symbol] = name;
  const auto index = static_cast<uint32_t>(definitions_.size());
  definitions_.push_back(
      {id, symbol, kNone, version_of(image, symbol), definition_flags(image.elf, entry, symbol)});
  if (heads_[name] == kNone) {
    heads_.change(name) = index;
  } else {
    definitions_.change(tails_[name]).next = index;
    several_.change(name) = 1;
  }
  tails_[name] = index;
}

// Whether ld.so comes to this entry: the bucket is that of its hash, and the Bloom filter knows it.
// The chain keeps the hash without its lowest bit, which the bucket tells where there is more than
// one.
bool Images::is_found(const Object& object, uint32_t symbol, uint32_t hash, uint32_t bucket) {
  const elf::GnuHash& table = *object.gnu_hash;
  const uint32_t even = hash & ~1u, odd = hash | 1u;
  if (table.bucket_count != 1)
    return (even % table.bucket_count == bucket && table.may_have(even)) ||
           (odd % table.bucket_count == bucket && table.may_have(odd));
  if (table.may_have(even) && table.may_have(odd)) return true;
  return table.may_have(elf::gnu_hash(object.symbol_name(symbol)));
}

// Chain order within one image is kept: it decides between several definitions of one name. What
// ld.so does not find is left out.
void Images::index_gnu_hash(ImageId id, std::vector<NameId>& symbol_names) {
  constexpr uint64_t kAhead = 16;
  const Object& object = images_[id]->elf;
  const elf::GnuHash& table = *object.gnu_hash;
  // Stops chains that a hostile file makes share their tails.
  std::vector<bool> visited(symbol_names.size());
  bool leads_behind = false;
  for (uint32_t bucket = 0; bucket < table.bucket_count; bucket++) {
    const uint32_t first = table.buckets[bucket];
    if (first == 0 || first < table.symbol_offset) continue;
    for (uint64_t symbol = first;; symbol++) {
      const uint64_t at = symbol - table.symbol_offset;
      leads_behind |= symbol >= object.symbols.size();
      if (at >= visited.size() || visited[at]) break;
      visited[at] = true;
      prefetch(table.chain[at + kAhead] >> 1);
      const uint32_t hash = table.chain[at];
      if (is_found(object, static_cast<uint32_t>(symbol), hash, bucket))
        add_definition(id, static_cast<uint32_t>(symbol), hash >> 1, symbol_names);
      if (hash & 1) break;
    }
  }
  if (leads_behind)
    images_[id]->index_defects.push_back({0, "DT_GNU_HASH leads behind the symbol table", true});
}

void Images::index_sysv_hash(ImageId id, std::vector<NameId>& symbol_names) {
  const Object& object = images_[id]->elf;
  const elf::SysvHash& table = *object.sysv_hash;
  std::vector<bool> visited(table.chain.size());
  for (uint32_t bucket = 0; bucket < table.buckets.size(); bucket++) {
    for (uint32_t symbol = table.buckets[bucket]; symbol != 0; symbol = table.chain[symbol]) {
      if (symbol >= visited.size() || visited[symbol]) break;
      visited[symbol] = true;
      const std::string_view name = object.symbol_name(symbol);
      if (elf::sysv_hash(name) % table.buckets.size() == bucket)
        add_definition(id, symbol, elf::gnu_hash(name) >> 1, symbol_names);
    }
  }
}

// Gives the references their names and versions. A symbol's own definition usually has the name
// already; but its stored hash may lie, and then ld.so does not find it, so the hash that was
// computed from the name decides.
void Images::name_references(ImageId id, std::vector<NameId>& symbol_names) {
  constexpr size_t kFar = 32, kNear = 16;
  Image& image = *images_[id];
  HugeVector<Reference>& references = image.own_references;
  const auto known_name = [&](const Reference& reference) {
    return reference.symbol < symbol_names.size() ? symbol_names[reference.symbol] : kNone;
  };
  for (size_t i = 0; i < references.size(); i++) {
    if (i + kFar < references.size()) {
      const Reference& soon = references[i + kFar];
      if (soon.symbol < symbol_names.size()) __builtin_prefetch(&symbol_names[soon.symbol]);
    }
    if (i + kNear < references.size()) {
      const Reference& soon = references[i + kNear];
      const NameId known = known_name(soon);
      known == kNone ? prefetch(soon.name) : __builtin_prefetch(&hashes_[known]);
    }
    Reference& reference = references[i];
    reference.version =
        reference.version < image.versions.size() ? image.versions[reference.version] : 0;
    const NameId known = known_name(reference);
    if (known != kNone && hashes_[known] == reference.name) {
      reference.name = known;
      continue;
    }
    const uint32_t text = image.elf.symbols[reference.symbol].st_name;
    reference.name = intern(reference.name, {id, text});
    if (reference.symbol < symbol_names.size()) symbol_names[reference.symbol] = reference.name;
  }
  image.references = references;
}

void Images::index_versions(Image& image) {
  for (const elf::Version& version : image.elf.versions)
    image.versions.push_back(intern_version(version.hash, version.name));
}

void Images::index(ImageId id) {
  Image& image = *images_[id];
  if (image.indexed) return;
  const std::lock_guard lock(changes_);
  if (is_kept_) make_own();
  image.indexed = true;
  index_versions(image);
  const uint64_t symbol_count = hashed_symbol_count(image.elf);
  if (symbol_count > kManySymbols) make_room();
  std::vector<NameId> symbol_names(symbol_count, kNone);
  if (image.elf.gnu_hash) {
    index_gnu_hash(id, symbol_names);
  } else if (image.elf.sysv_hash) {
    index_sysv_hash(id, symbol_names);
  }
  References references = image.early.valid() ? image.early.get() : read_references(image.elf);
  image.own_references = std::move(references.list);
  image.own_static_tls = references.own_static_tls;
  image.unexpected = references.unexpected;
  image.unexpected_lazily = references.unexpected_lazily;
  image.index_defects.insert(image.index_defects.end(), references.defects.begin(),
                             references.defects.end());
  name_references(id, symbol_names);
}

}  // namespace cohabit
