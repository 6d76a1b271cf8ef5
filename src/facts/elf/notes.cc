#include "facts/elf/notes.h"

namespace cohabit::elf {
namespace {

constexpr uint64_t kNoteHeader = 12, kWord = 8;
constexpr uint32_t NT_GNU_BUILD_ID = 3, NT_GNU_PROPERTY_TYPE_0 = 5;
constexpr int kMostNotes = 64;  // that are looked through for a build id

struct Note {
  uint32_t namesz, descsz, type;
};

uint64_t align_up(uint64_t value, uint64_t to) {
  return (value + to - 1) & ~(to - 1);
}

bool is_gnu(Bytes notes, uint64_t at, const Note& note) {
  return note.namesz == 4 && notes.c_string(at + kNoteHeader) == "GNU";
}

std::string hex(Bytes bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes.text()) {
    const auto byte = static_cast<uint8_t>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// The array of one note. False: ld.so takes nothing of the segment.
bool read_array(Bytes array, Properties& found) {
  if (array.size() < kWord || array.size() % kWord != 0) return false;
  uint32_t last = 0;
  for (uint64_t at = 0; at + kWord <= array.size();) {
    const uint32_t type = *array.read<uint32_t>(at), size = *array.read<uint32_t>(at + 4);
    at += kWord;
    if (type < last || size > array.size() - at) return false;
    last = type;
    if (type > GNU_PROPERTY_X86_ISA_1_NEEDED) return true;
    const bool wanted = type == GNU_PROPERTY_1_NEEDED || type == GNU_PROPERTY_X86_FEATURE_1_AND ||
                        type == GNU_PROPERTY_X86_ISA_1_NEEDED;
    if (wanted && size != 4) return false;
    if (type == GNU_PROPERTY_1_NEEDED) found.needed_1 = *array.read<uint32_t>(at);
    if (type == GNU_PROPERTY_X86_ISA_1_NEEDED) {
      found.x86_isa_1_needed = *array.read<uint32_t>(at);
      return true;
    }
    at += align_up(size, kWord);
  }
  return true;
}

}  // namespace

Properties read_properties(Bytes notes) {
  Properties found;
  bool seen = false;
  for (uint64_t at = 0; at + kNoteHeader < notes.size();) {
    const Note note = *notes.read<Note>(at);
    if (note.type == NT_GNU_PROPERTY_TYPE_0 && is_gnu(notes, at, note)) {
      const auto array = notes.slice(at + kNoteHeader + note.namesz, note.descsz);
      if (seen || !array || !read_array(*array, found)) return {};
      seen = true;
    }
    at = align_up(at + kNoteHeader + note.namesz, kWord) + align_up(note.descsz, kWord);
  }
  return found;
}

std::string read_build_id(Bytes notes) {
  std::string found;
  uint64_t at = 0;
  for (int i = 0; i < kMostNotes; i++) {
    const auto note = notes.read<Note>(at);
    if (!note) break;
    const uint64_t text = at + kNoteHeader + align_up(note->namesz, 4);
    if (note->type == NT_GNU_BUILD_ID && note->descsz <= 64 && is_gnu(notes, at, *note))
      if (const auto id = notes.slice(text, note->descsz)) found = hex(*id);
    at = text + align_up(note->descsz, 4);
  }
  return found;
}

}  // namespace cohabit::elf
