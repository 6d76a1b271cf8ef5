#include "findings/families.h"

#include <utility>

#include "findings/mangled.h"
#include "findings/symbols.h"

namespace cohabit {
namespace {

bool is_c_definition(const elf::Object& elf, uint32_t index) {
  const elf::Sym symbol = elf.symbols[index];
  if (symbol.st_shndx == elf::SHN_UNDEF || symbol.bind() == elf::STB_LOCAL) return false;
  if (symbol.type() != elf::STT_FUNC && symbol.type() != elf::STT_OBJECT &&
      symbol.type() != elf::STT_GNU_IFUNC)
    return false;
  return !elf.is_mangled(index);
}

}  // namespace

uint32_t Families::cpp_family(NameId name) {
  const size_t at = name / std::tuple_size_v<Block>;
  if (at >= cpp_.size()) cpp_.resize(at + 1);
  if (!cpp_[at]) cpp_[at] = std::make_unique<Block>();
  uint32_t& known = (*cpp_[at])[name % std::tuple_size_v<Block>];
  if (known == 0) {
    const std::string_view text = family_text(parse_mangled(images_.name(name)));
    if (text.empty()) {
      known = 1;
    } else {
      const auto next = static_cast<uint32_t>(texts_.size());
      const auto [place, is_new] = places_.try_emplace(text, next);
      if (is_new) texts_.push_back(text);
      known = place->second + 2;
    }
  }
  return known == 1 ? kNone : known - 2;
}

uint32_t Families::size(ImageId image) {
  const auto [entry, is_new] = sizes_.try_emplace(image, 0);
  if (is_new) entry->second = symbol_count(images_[image].elf);
  return entry->second;
}

const std::unordered_set<NameId>& Families::c_exports(ImageId image) {
  const auto [entry, is_new] = exports_.try_emplace(image);
  if (!is_new) return entry->second;
  const elf::Object& elf = images_[image].elf;
  for (uint32_t i = 1; i < size(image); i++)
    if (is_c_definition(elf, i)) entry->second.insert(images_.find_name(elf.symbol_name(i)));
  entry->second.erase(kNone);
  return entry->second;
}

ImageId Families::home(NameId name, const ProcessView& process) {
  ImageId best = kNone;
  for (uint32_t at = images_.first_definition(name); at != kNone;
       at = images_.definition(at).next) {
    const ImageId image = images_.definition(at).image;
    if (process.objects_of(image).empty()) continue;
    if (best == kNone || size(image) < size(best)) best = image;
  }
  return best;
}

double Families::coverage(ImageId library, ImageId by) {
  const auto [entry, is_new] = coverage_.try_emplace({library, by}, 0.0);
  if (!is_new) return entry->second;
  const auto& names = c_exports(library);
  size_t shared = 0;
  for (const NameId name : names)
    for (uint32_t at = images_.first_definition(name); at != kNone;
         at = images_.definition(at).next)
      if (images_.definition(at).image == by) {
        shared++;
        break;
      }
  entry->second =
      names.empty() ? 0.0 : static_cast<double>(shared) / static_cast<double>(names.size());
  return entry->second;
}

// A framework that exports all of zlib among ten thousand names is not a copy of zlib.
bool Families::copies(ImageId a, ImageId b) {
  constexpr double kMostly = 0.5;
  constexpr double kGoodPart = 0.25;
  constexpr size_t kComparable = 8;
  if (a == b) return true;
  if (size(a) > size(b)) std::swap(a, b);
  return size_t{size(b)} <= size(a) * kComparable && coverage(a, b) >= kMostly &&
         coverage(b, a) >= kGoodPart;
}

}  // namespace cohabit
