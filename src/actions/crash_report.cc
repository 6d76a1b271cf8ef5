#include "actions/crash_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "base/paths.h"
#include "base/rows.h"
#include "base/tree.h"
#include "facts/elf/object.h"
#include "findings/mangled.h"

namespace cohabit {
namespace {

constexpr size_t kMostMappings = 1 << 17;
constexpr size_t kMostFrames = 256;

struct Mapping {
  uint64_t begin = 0, end = 0, offset = 0;
  std::string_view path;
};

struct Crash {
  bool fault = false;  // not sent by somebody
  uint64_t pc = 0, caller = 0;
  std::vector<Mapping> mappings;
  std::vector<uint64_t> frames;
};

std::optional<uint64_t> number(std::string_view text, int base) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "7f00-7f10 r-xp 0000a000 08:01 1234      /a path"
std::optional<Mapping> parse_mapping(std::string_view line) {
  constexpr size_t kFields = 5;  // in front of the path
  std::vector<std::string_view> fields;
  while (fields.size() < kFields && !line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    fields.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  if (fields.size() < kFields) return std::nullopt;
  const auto range = split(fields[0], '-');
  if (range.size() != 2) return std::nullopt;
  const auto begin = number(range[0], 16), end = number(range[1], 16);
  const auto offset = number(fields[2], 16);
  if (!begin || !end || !offset) return std::nullopt;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return Mapping{*begin, *end, *offset, line};
}

// "crash PID SIGNAL FAULT PC CALLER", of this process and signal.
std::optional<Crash> parse_head(std::string_view line, pid_t process, int signal) {
  const auto fields = split(line, ' ');
  if (fields.size() != 6) return std::nullopt;
  const auto pid = number(fields[1], 10), sent = number(fields[2], 10);
  const auto pc = number(fields[4], 16), caller = number(fields[5], 16);
  if (pid != static_cast<uint64_t>(process) || sent != static_cast<uint64_t>(signal) || !pc ||
      !caller)
    return std::nullopt;
  Crash crash;
  crash.fault = fields[3] == "1";
  crash.pc = *pc;
  crash.caller = *caller;
  return crash;
}

void add_line(std::string_view line, Crash& crash) {
  if (line.starts_with("frame ")) {
    const auto address = number(line.substr(6), 16);
    if (address && crash.frames.size() < kMostFrames) crash.frames.push_back(*address);
  } else if (const auto mapping = parse_mapping(line);
             mapping && crash.mappings.size() < kMostMappings) {
    crash.mappings.push_back(*mapping);
  }
}

// A handler of the program may have survived earlier ones, or have sent the signal on: the last
// fault is what it died of; of signals that were sent, the last.
std::optional<Crash> find_crash(std::string_view report, pid_t process, int signal) {
  std::optional<Crash> best, current;
  const auto close = [&] {
    auto ended = std::exchange(current, std::nullopt);
    if (ended && (ended->fault || !best || !best->fault)) best = std::move(ended);
  };
  for (const std::string_view line : split(report, '\n')) {
    if (line.starts_with("crash ")) {
      close();
      current = parse_head(line, process, signal);
    } else if (current) {
      add_line(line, *current);
    }
  }
  close();
  return best;
}

// What the unwinder says begins in the handler; behind the place of the crash stand return
// addresses.
std::vector<uint64_t> addresses_of(const Crash& crash) {
  std::vector<uint64_t> addresses = {crash.pc};
  const auto place = std::find(crash.frames.begin(), crash.frames.end(), crash.pc);
  if (crash.caller != 0)
    addresses.push_back(crash.caller);  // the unwinder knows no way out of a bad address
  else if (place != crash.frames.end())
    addresses.insert(addresses.end(), place + 1, crash.frames.end());
  return addresses;
}

// The exported functions of files, each file mapped once.
class Symbols {
 public:
  // `offset`: in the file.
  void name(uint64_t offset, NativeFrame& frame) {
    const auto [entry, fresh] = libraries_.try_emplace(frame.library);
    Library& library = entry->second;
    if (fresh) {
      if (auto file = tree_.map(frame.library)) {
        library.file = std::move(*file);
        library.object = elf::parse(library.file.bytes());
      }
    }
    frame.offset = offset;
    for (const elf::Phdr& segment : library.object.segments)
      if (offset >= segment.p_offset && offset - segment.p_offset < segment.p_filesz)
        frame.offset = segment.p_vaddr + (offset - segment.p_offset);
    find_symbol(library.object, frame);
  }

 private:
  struct Library {
    MappedFile file;
    elf::Object object;
  };

  static void find_symbol(const elf::Object& object, NativeFrame& frame) {
    const uint64_t address = frame.offset;
    for (uint32_t i = 1; i < object.symbols.size(); i++) {
      const elf::Sym symbol = object.symbols[i];
      const bool code = symbol.type() == elf::STT_FUNC || symbol.type() == elf::STT_GNU_IFUNC;
      if (!code || symbol.st_shndx == elf::SHN_UNDEF || address < symbol.st_value ||
          address - symbol.st_value >= symbol.st_size)
        continue;
      frame.symbol = object.symbol_name(i);
      frame.offset = address - symbol.st_value;
      return;
    }
  }

  Tree tree_{""};
  std::map<std::string, Library> libraries_;
};

}  // namespace

std::vector<NativeFrame> read_crash_report(std::string_view report, pid_t process, int signal) {
  const auto crash = find_crash(report, process, signal);
  if (!crash) return {};
  Symbols symbols;
  std::vector<NativeFrame> frames;
  for (const uint64_t address : addresses_of(*crash)) {
    // A call that does not return may be the last of its function: look at the call itself.
    const uint64_t place = frames.empty() ? address : address - 1;
    NativeFrame& frame = frames.emplace_back();
    frame.offset = place;
    for (const Mapping& mapping : crash->mappings) {
      if (place < mapping.begin || place >= mapping.end) continue;
      frame.library = mapping.path;
      symbols.name(place - mapping.begin + mapping.offset, frame);
      break;
    }
  }
  return frames;
}

std::string frame_text(const NativeFrame& frame) {
  constexpr size_t kLongestName = 120;  // of a template's instance
  if (frame.library.empty()) return fmt::format("{:#x}, in no library", frame.offset);
  std::string name = frame.symbol.empty() ? "" : demangle(frame.symbol);
  if (name.size() > kLongestName) name = name.substr(0, kLongestName) + "...";
  return fmt::format("{}{}+{:#x} in {}", name, name.empty() ? "" : " ", frame.offset,
                     last_part(frame.library));
}

}  // namespace cohabit
