// The index of images as it is kept from one run to the next: its columns as they lie in memory,
// and what is to be known of each file.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "world/images.h"

namespace cohabit {
namespace {

void pack_unexpected(Packer& packer, const UnexpectedType& type) {
  packer.number(type.type);
  packer.number(type.after + 1);  // 0: there is none
  packer.number(type.plt ? 1 : 0);
}

UnexpectedType unpack_unexpected(Unpacker& unpacker) {
  UnexpectedType type;
  type.type = static_cast<uint32_t>(unpacker.number());
  type.after = unpacker.number() - 1;
  type.plt = unpacker.number() != 0;
  return type;
}

void pack_image(Packer& packer, const Image& image) {
  packer.text(image.path);
  for (const uint64_t number :
       {image.file.device, image.file.inode, image.file_size, static_cast<uint64_t>(image.modified),
        static_cast<uint64_t>(image.changed), uint64_t{image.elf.machine},
        uint64_t{image.own_static_tls}, uint64_t{image.indexed}})
    packer.number(number);
  pack_unexpected(packer, image.unexpected);
  pack_unexpected(packer, image.unexpected_lazily);
  packer.number(image.index_defects.size());
  for (const elf::Defect& defect : image.index_defects) {
    packer.number(defect.offset);
    packer.text(defect.what);
    packer.number(defect.fatal ? 1 : 0);
  }
}

// Whether its bytes are values of the type at all.
bool is_reference(const Reference& reference) {
  uint8_t bytes[sizeof reference];
  std::memcpy(bytes, &reference, sizeof bytes);
  return bytes[offsetof(Reference, kind)] <= static_cast<uint8_t>(RefKind::kCopy) &&
         bytes[offsetof(Reference, version_hidden)] <= 1 && bytes[offsetof(Reference, weak)] <= 1 &&
         bytes[offsetof(Reference, is_protected)] <= 1;
}

template <class List, class Is>
bool all(const List& list, const Is& is) {
  return std::all_of(list.begin(), list.end(), is);
}

}  // namespace

bool Images::give_index(Packer& packer, SectionWriter& sections) const {
  if (!crowded_ids_.empty()) return false;
  packer.number(images_.size());
  for (const auto& image : images_) {
    if (image->changed == 0 || image->map.damaged()) return false;
    pack_image(packer, *image);
    if (!image->indexed) continue;
    sections.add(image->references);
    sections.add(std::span<const VersionId>(image->versions));
  }
  packer.number(version_ids_.size());
  sections.add(names_.span());
  sections.add(hashes_.span());
  sections.add(heads_.span());
  sections.add(several_.span());
  sections.add(definitions_.span());
  sections.add(table_.span());
  return true;
}

bool Images::take_index(Unpacker& unpacker, SectionReader& sections) {
  is_taking_ = true;
  is_kept_ = take_images(unpacker, sections) && take_columns(sections) &&
             (sections.is_known() || is_consistent()) && unpacker.number() == version_ids_.size() &&
             !unpacker.failed();
  is_taking_ = false;
  if (!is_kept_) forget_index();
  return is_kept_;
}

// The files, in their order, and what is known of each.
bool Images::take_images(Unpacker& unpacker, SectionReader& sections) {
  const size_t count = unpacker.count();
  for (ImageId id = 0; id < count; id++) {
    const std::string path(unpacker.text());
    uint64_t numbers[8];
    for (uint64_t& number : numbers) number = unpacker.number();
    const auto [device, inode, size, modified, changed, machine, static_tls, indexed] = numbers;
    if (unpacker.failed() || probes_.contains(path)) return false;
    if (open(path, static_cast<uint16_t>(machine)).image != id) return false;
    Image& image = *images_[id];
    if (image.file != FileId{device, inode} || image.file_size != size ||
        image.modified != static_cast<int64_t>(modified) ||
        image.changed != static_cast<int64_t>(changed))
      return false;
    image.foreseen = true;
    image.own_static_tls = static_tls != 0;
    image.indexed = indexed != 0;
    image.unexpected = unpack_unexpected(unpacker);
    image.unexpected_lazily = unpack_unexpected(unpacker);
    for (size_t left = unpacker.count(); left > 0 && !unpacker.failed(); left--) {
      elf::Defect& defect = image.index_defects.emplace_back();
      defect.offset = unpacker.number();
      defect.what = unpacker.text();
      defect.fatal = unpacker.number() != 0;
    }
    if (!image.indexed) continue;
    image.references = sections.next<Reference>();
    const auto versions = sections.next<VersionId>();
    image.versions.assign(versions.begin(), versions.end());
  }
  return !unpacker.failed() && !sections.failed();
}

bool Images::take_columns(SectionReader& sections) {
  names_.view(sections.next<Place>());
  hashes_.view(sections.next<uint32_t>());
  heads_.view(sections.next<uint32_t>());
  several_.view(sections.next<uint8_t>());
  definitions_.view(sections.next<Definition>());
  table_.view(sections.next<Slot>());
  if (sections.failed()) return false;
  // The numbers of versions are by who was indexed first: each has the number that it had.
  std::vector<std::pair<ImageId, size_t>> firsts;  // by number
  for (ImageId id = 0; id < size(); id++) {
    const std::vector<VersionId>& versions = images_[id]->versions;
    if (images_[id]->indexed && versions.size() != images_[id]->elf.versions.size()) return false;
    for (size_t i = 0; i < versions.size(); i++) {
      if (versions[i] > definitions_.size() + names_.size()) return false;
      if (versions[i] >= firsts.size()) firsts.resize(versions[i] + 1, {kNone, 0});
      if (firsts[versions[i]].first == kNone) firsts[versions[i]] = {id, i};
    }
  }
  for (size_t number = 1; number < firsts.size(); number++) {
    const auto [id, i] = firsts[number];
    if (id == kNone) return false;
    const elf::Version& version = images_[id]->elf.versions[i];
    if (intern_version(version.hash, version.name) != number) return false;
  }
  const size_t known = version_ids_.size();
  for (const auto& image : images_)
    for (size_t i = 0; i < image->versions.size(); i++)
      if (intern_version(image->elf.versions[i].hash, image->elf.versions[i].name) !=
          image->versions[i])
        return false;
  return version_ids_.size() == known;
}

// Whether every number leads to where there is something.
bool Images::is_consistent() const {
  const size_t images = images_.size(), names = names_.size(), definitions = definitions_.size(),
               versions = version_ids_.size();
  if (hashes_.size() != names || heads_.size() != names || several_.size() != names) return false;
  // Open addressing ends at a free place.
  const size_t slots = table_.size();
  if ((slots & (slots - 1)) != 0 || names * 4 > slots * 3) return false;
  size_t taken = 0;
  for (const Slot& slot : table_) taken += slot.id != kNone;
  if (taken != names) return false;
  const auto leads = [](uint32_t at, size_t end) { return at == kNone || at < end; };
  uint32_t at = 0;  // the next of a name stands behind it
  const auto is_definition = [&](const Definition& one) {
    const bool forward = one.next == kNone || (one.next > at && one.next < definitions);
    at++;
    return forward && one.image < images && one.version <= versions;
  };
  return all(names_, [&](const Place& place) { return place.image < images; }) &&
         all(heads_, [&](uint32_t head) { return leads(head, definitions); }) &&
         all(table_, [&](const Slot& slot) { return leads(slot.id, names); }) &&
         all(definitions_, is_definition) && has_each_several() &&
         std::all_of(images_.begin(), images_.end(), [&](const auto& image) {
           return all(image->references, [&](const Reference& reference) {
             return reference.name < names && reference.version <= versions &&
                    reference.symbol < image->elf.symbols.size() && is_reference(reference);
           });
         });
}

bool Images::has_each_several() const {
  for (NameId name = 0; name < names_.size(); name++) {
    const uint32_t head = heads_[name];
    if (several_[name] != (head != kNone && definitions_[head].next != kNone)) return false;
  }
  return true;
}

void Images::forget_index() {
  for (const auto& image : images_) {
    image->indexed = image->own_static_tls = false;
    image->unexpected = image->unexpected_lazily = {};
    image->index_defects.clear();
    image->references = {};
    image->versions.clear();
    read_early(*image);
  }
  version_ids_.clear();
  names_.view({});
  hashes_.view({});
  heads_.view({});
  several_.view({});
  definitions_.view({});
  table_.view({});
}

// Something new comes to what an earlier run has kept.
void Images::make_own() {
  is_kept_ = false;
  names_.make_own();
  hashes_.make_own();
  heads_.make_own();
  several_.make_own();
  definitions_.make_own();
  table_.make_own();
  tails_.assign(names_.size(), kNone);
  for (NameId name = 0; name < names_.size(); name++)
    for (uint32_t at = heads_[name]; at != kNone; at = definitions_[at].next) tails_[name] = at;
}

}  // namespace cohabit
