// No disassembler is needed: a field of 32 bits behind the byte of a call or a %rip-relative
// operand, whose value leads to the first byte of a function, to a PLT stub, to a GOT slot or to a
// string, is a reference to it (as in findings/call_paths.h). Followed are calls and tail calls;
// from PyInit itself also the functions whose address it takes (boost::python::init_module is given
// one) and does not store (nanobind's records of a module's functions), and those of Py_mod_exec in
// the module's definition (PEP 489). Where such a function only hands the address of another one
// on, as Rust's do, that one too.
//
// A function that calls an import function with a name that it was itself given is one, too:
// pybind11::module_::import, and helpers of that kind.
//
// PyO3 makes a string of a name, which has a length and no end, and calls PyImport_Import with it;
// C code makes one of a name with an end, and boost::python::import is given such an object too.
//
// Python source that the code runs (PyRun_String) is looked through for its imports. What
// std::call_once is given runs as well: pybind11 looks for NumPy in it.
#include "imports/initial_code.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/each_place.h"
#include "facts/elf/addresses.h"
#include "facts/elf/function_bounds.h"
#include "imports/import_statements.h"
#include "imports/imported_names.h"
#include "imports/module_name.h"
#include "imports/registers.h"

namespace cohabit::python {
namespace {

constexpr std::array<std::string_view, 4> kImportFunctions = {
    "PyImport_ImportModule", "PyImport_ImportModuleNoBlock", "PyImport_ImportModuleLevel",
    "PyCapsule_Import"};
// What imports the module whose name an object holds, as PyO3 does.
constexpr std::string_view kImportByObject = "PyImport_Import";
// Where code in C makes it, and Boost.Python's str and import.
constexpr std::string_view kTextFunctions[] = {"PyUnicode_FromString",
                                               "PyUnicode_InternFromString"};
constexpr std::string_view kBoostImportName = "6python6importENS0_3strE";
constexpr std::string_view kBoostTextName = "6python6detail8str_baseC2EPKc";
// What runs the source that it is given, with PyRun_StringFlags and others behind macros.
constexpr std::string_view kRunFunctions[] = {"PyRun_String", "PyRun_StringFlags",
                                              "PyRun_SimpleString", "PyRun_SimpleStringFlags"};
// What calls the function that std::call_once is given.
constexpr std::string_view kOnceFunction = "__once_proxy";
constexpr size_t kMaxSource = 64 << 10;
constexpr size_t kMostSources = 64;  // of one module
// What Cython's import statements call.
constexpr std::string_view kImportStatement = "PyImport_ImportModuleLevelObject";
// What its code that makes a module's strings calls, near the address where it puts them.
constexpr std::string_view kInternFunctions = "PyUnicode_Intern";
constexpr size_t kInternDistance = 512;      // bytes before
constexpr size_t kInternDistanceAfter = 96;  // and behind
constexpr uint64_t kMaxCode = 8 << 20;       // that is read of one module
constexpr uint64_t kMaxFunction = 1 << 20;
constexpr uint64_t kSmallFunction = 4096;
constexpr uint64_t kTrampoline = 64;
constexpr size_t kMaxName = 200;
constexpr size_t kArgumentDistance = 48;  // bytes between a name and the call that is given it
constexpr int kMaxDistance = 13;          // calls between PyInit and an import, both counted
constexpr int kWrappers = 2;              // functions between a name and the import function
constexpr size_t kCallsBetween = 2;       // that which makes an object of a name, and the import
constexpr size_t kCallsBetweenText = 3;   // the same of code in C, which frees and compares between
constexpr size_t kStoreDistance = 16;     // bytes between an address and what stores it
constexpr size_t kLengthDistance = 16;    // bytes between a text's address and its length
// PyModuleDef.m_slots and PyModuleDef_Slot of CPython 3.5 to 3.14, 64 bits; kinds of slots begin
// at 1.
constexpr uint64_t kSlotsOffset = 72;
constexpr uint64_t kSlotSize = 16;
constexpr uint64_t kExecSlot = 2;
constexpr uint64_t kLastSlot = 4;
constexpr uint64_t kMaxSlots = 16;
constexpr uint64_t kMaxBefore = 32;  // bytes before a definition that is part of something else

// What stands before a displacement of 32 bits: call, jmp, call *slot(%rip), an operand with %rip.
bool leads_to_reference(char byte) {
  return ((byte & '\xfe') == '\xe8') | ((byte & '\xc7') == '\x05');
}

// The same, or the second byte of a conditional jump.
bool is_before_reference(const char* at) {
  return leads_to_reference(at[0]) | (((at[0] & '\xf0') == '\x80') & (at[-1] == '\x0f'));
}

bool is_name(std::string_view text) {
  return !text.empty() && text.front() != '.' && text.back() != '.' &&
         std::all_of(text.begin(), text.end(), is_name_character);
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

class Reader {
 public:
  // `cython`: its names, if it is such a module.
  Reader(const elf::Object& object, Bytes file, CythonNames* cython)
      : object_(object),
        file_(file),
        cython_(cython),
        functions_(elf::read_function_bounds(file)) {}

  InitialCode read() {
    if (object_.machine != elf::EM_X86_64 || functions_.empty()) return {};
    read_slots();
    for (uint64_t i = 0; i < object_.symbols.size(); i++) {
      const auto index = static_cast<uint32_t>(i);
      if (object_.symbols[i].st_shndx != elf::SHN_UNDEF &&
          object_.symbol_name(index).starts_with("PyInit_"))
        visit(object_.symbols[i].st_value, true);
    }
    // Nearest first. A long chain of direct calls is hardly ever walked as a whole, as each of them
    // may stand behind a condition: in duckdb one of sixteen leads to NumPy and is never taken.
    for (size_t i = 0; i < waiting_.size(); i++) {
      const Waiting next = waiting_[i];
      distance_ = next.distance;
      read_function(next.function, next.is_first);
    }
    InitialCode result;
    result.known = !visited_.empty() && left_ > 0;
    result.imported = imported_names();
    if (cython_) add_statements(result);
    for (std::string& name : mentioned_)
      if (std::find(result.imported.begin(), result.imported.end(), name) == result.imported.end())
        result.mentioned.push_back(std::move(name));
    return result;
  }

 private:
  enum class Function {
    kOther,
    kImport,
    kByObject,
    kStatement,
    kIntern,
    kByVariable,
    kText,
    kBoostImport,
    kRun,
    kOnce
  };

  // And the last name that was loaded into the first or second argument before; the text, if it is
  // given with its length.
  struct Call {
    uint64_t caller = 0;
    uint64_t callee = 0;
    Function kind = Function::kOther;
    std::string name;
    std::string text;
  };

  std::optional<uint64_t> offset_of(uint64_t address) const {
    return elf::offset_of(object_, address);
  }

  void read_slots() {
    const auto enter = [&](const elf::Rela& relocation) {
      if (relocation.type() != elf::R_X86_64_GLOB_DAT &&
          relocation.type() != elf::R_X86_64_JUMP_SLOT)
        return;
      const std::string_view name = object_.symbol_name(relocation.symbol());
      has_statements_ |= name == kImportStatement;
      has_once_ |= name == kOnceFunction;
      slots_.try_emplace(relocation.r_offset,
                         Slot{function_kind(name), defined_at(relocation.symbol())});
    };
    for (uint64_t i = 0; i < object_.jmprel.size(); i++) enter(object_.jmprel[i]);
    for (uint64_t i = object_.relative_count; i < object_.rela.size(); i++) enter(object_.rela[i]);
  }

  Function function_kind(std::string_view name) const {
    const auto is_one_of = [name](const auto& names) {
      return std::find(std::begin(names), std::end(names), name) != std::end(names);
    };
    if (is_one_of(kImportFunctions)) return Function::kImport;
    if (name == kImportByObject) return Function::kByObject;
    if (name == kImportStatement) return Function::kStatement;
    if (cython_ && name.starts_with(kInternFunctions)) return Function::kIntern;
    if (name == kOnceFunction) return Function::kOnce;
    if (is_one_of(kRunFunctions)) return Function::kRun;
    if (is_one_of(kTextFunctions) || name.ends_with(kBoostTextName)) return Function::kText;
    if (name.ends_with(kBoostImportName)) return Function::kBoostImport;
    return Function::kOther;
  }

  uint64_t defined_at(uint32_t symbol) const {
    const elf::Sym found = object_.symbols[symbol];
    return found.st_shndx == elf::SHN_UNDEF ? 0 : found.st_value;
  }

  // The pointer that is stored at an address, once relocated.
  std::optional<uint64_t> pointer_at(uint64_t address) {
    read_pointers();
    const auto found =
        std::lower_bound(pointers_.begin(), pointers_.end(), address,
                         [](const auto& one, uint64_t at) { return one.first < at; });
    if (found != pointers_.end() && found->first == address) return found->second;
    const auto offset = object_.has_relr ? offset_of(address) : std::nullopt;
    return offset ? file_.read<uint64_t>(*offset) : std::nullopt;
  }

  void read_pointers() {
    if (pointers_are_read_) return;
    pointers_are_read_ = true;
    for (uint64_t i = 0; i < object_.rela.size(); i++) {
      const elf::Rela relocation = object_.rela[i];
      const auto addend = static_cast<uint64_t>(relocation.r_addend);
      if (relocation.type() == elf::R_X86_64_RELATIVE)
        pointers_.emplace_back(relocation.r_offset, addend);
      else if (relocation.type() == elf::R_X86_64_64)
        pointers_.emplace_back(relocation.r_offset, defined_at(relocation.symbol()) + addend);
    }
    std::stable_sort(pointers_.begin(), pointers_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  }

  bool is_function(uint64_t address) const {
    const elf::FunctionBounds* found = elf::function_at(functions_, address);
    return found && found->begin == address;
  }

  void visit(uint64_t function, bool is_first = false) {
    if (distance_ < kMaxDistance && is_function(function) && visited_.insert(function).second)
      waiting_.push_back({function, is_first, distance_ + 1});
  }

  void read_function(uint64_t begin, bool is_first) {
    const elf::FunctionBounds* bounds = elf::function_at(functions_, begin);
    const auto offset = offset_of(begin);
    if (!bounds || !offset || left_ == 0) return;
    const Bytes rest = file_.from(*offset);
    const uint64_t size = std::min({bounds->end - begin, kMaxFunction, left_, rest.size()});
    left_ -= size;
    const std::string_view code = rest.text().substr(0, size);
    std::string argument;
    size_t argument_at = 0;
    bool is_in_first = false;
    text_.clear();
    source_at_ = std::nullopt;
    std::vector<uint64_t> taken;  // addresses of functions
    bool calls_once = false;
    Registers registers;
    computed_.clear();
    interned_at_ = std::nullopt;
    const auto look_at = [&](size_t at) {
      const auto before = static_cast<uint8_t>(code[at - 1]);
      if (!leads_to_reference(code[at - 1])) {
        if ((before & 0xf0) == 0x80 && at > 1 && code[at - 2] == '\x0f')
          visit_part(begin, begin + at + 4 + static_cast<int64_t>(*rest.read<int32_t>(at)));
        return;
      }
      const uint64_t target = begin + at + 4 + static_cast<int64_t>(*rest.read<int32_t>(at));
      if (at - argument_at > kArgumentDistance) {
        argument.clear();
        text_.clear();
      }
      if (cython_ && argument.empty())
        if (const uint64_t address = registers.first_address(at)) argument = name_at(address);
      if (before == 0xe8 || before == 0xe9) {
        if (!add_call(begin, target, argument)) {
          if (before == 0xe9) visit_part(begin, target);
          return;
        }
        argument.clear();
        run_source(at);
        add_step(at, bounds->end - begin, registers);
      } else if (before == 0x15 && at > 1 && code[at - 2] == '\xff') {
        if (!add_slot_call(begin, target, argument)) return;
        argument.clear();
        run_source(at);
        add_step(at, bounds->end - begin, registers);
      } else if (cython_ && is_load(code, at)) {
        registers.load(code, at, target);
        add_load(begin, target);
      } else if (cython_ && is_vector_load(code, at)) {
        add_load(begin, target);
      } else if (is_load(code, at)) {
        calls_once |= has_once_ && is_once(target);
        if (is_first) visit_slot(target);
      } else if ((before & 0xc7) == 0x05 && at > 2 && code[at - 2] == '\x8d' &&
                 (code[at - 3] & 0xfb) == 0x48) {
        add_address(target, is_first && !is_stored(code, at));
        if (cython_) {
          add_computed(at, target);
          registers.take_address(code, at, target);
        }
        if (has_once_) taken.push_back(target);
        const bool in_rdi = code[at - 3] == 0x48 && before == 0x3d;
        if (in_rdi) source_at_ = {at, target};
        if (is_first) visit_definition(target);
        if (!in_rdi && (code[at - 3] != 0x48 || before != 0x35)) return;
        // Of a name in each of both the second is that of an attribute.
        if (!in_rdi && is_in_first && !argument.empty()) return;
        is_in_first = in_rdi;
        argument = name_at(target);
        argument_at = at;
        text_ = cython_ ? "" : text_near(code, at, target, in_rdi);
      }
    };
    if (!cython_ && code.size() > 4) {
      look_at(1);
      each_place(code, 1, code.size() - 4, is_before_reference, [&](size_t at) {
        look_at(at + 1);
        return true;
      });
    }
    for (size_t at = 1; cython_ && at + 4 <= code.size(); at++) {
      const Registers::Seen seen = registers.see(code, at - 1);
      if (seen.address) add_computed(at, *seen.address);
      if (seen.variable) add_load(begin, *seen.variable);
      look_at(at);
    }
    if (calls_once)
      for (const uint64_t function : taken) visit(function);
    if (cython_) cython_->read_frame(object_, file_, registers.frame());
  }

  bool is_once(uint64_t address) const {
    const auto slot = slots_.find(address);
    return slot != slots_.end() && slot->second.kind == Function::kOnce;
  }

  // The text that the call which was added last is given, if it runs that.
  void run_source(size_t at) {
    const auto source = std::exchange(source_at_, std::nullopt);
    if (calls_.back().kind != Function::kRun || !source || at - source->first > kArgumentDistance)
      return;
    const auto offset = offset_of(source->second);
    if (!offset || read_sources_.size() >= kMostSources ||
        !read_sources_.insert(source->second).second)
      return;
    const std::string_view text = file_.from(*offset).text().substr(0, kMaxSource);
    const size_t end = text.find('\0');
    if (end == text.npos) return;
    for (ImportedName& name :
         python::imported_names(Syntax{std::string(text.substr(0, end))}).names)
      run_.push_back(std::move(name.module));
  }

  // The text at an address that goes into the first argument, or the second, if its length goes
  // into the next: mov $x,%esi or %edx; push $x, pop %rsi or %rdx.
  std::string text_near(std::string_view code, size_t at, uint64_t address, bool is_first) const {
    const auto offset = offset_of(address);
    const char mov = is_first ? '\xbe' : '\xba', pop = is_first ? '\x5e' : '\x5a';
    const size_t from = at > kLengthDistance ? at - kLengthDistance : 0;
    for (size_t i = from; offset && i < std::min(at + kLengthDistance, code.size() - 5); i++) {
      const bool is_moved =
          code[i] == mov && code.substr(i + 2, 3) == std::string_view("\0\0\0", 3);
      const bool is_pushed = code[i] == '\x6a' && code[i + 2] == pop;
      if (!is_moved && !is_pushed) continue;
      const std::string_view text =
          file_.from(*offset).text().substr(0, static_cast<uint8_t>(code[i + 1]));
      if (is_name(text)) return std::string(text);
    }
    return "";
  }

  // A function of the module's own, by its slot.
  void visit_slot(uint64_t address) {
    const auto slot = slots_.find(address);
    const auto function = slot == slots_.end() ? pointer_at(address) : slot->second.function;
    if (function && *function != 0) visit(*function, is_small(*function));
  }

  // lea x(%rip),%reg, and soon mov %reg to memory: a function that is kept to be called later, as
  // nanobind keeps those of a module.
  static bool is_stored(std::string_view code, size_t at) {
    const int rex = code[at - 3] & 0x04, field = code[at - 1] & 0x38;
    const size_t end = std::min(at + 4 + kStoreDistance, code.size() - 2);
    for (size_t i = at + 4; i < end; i++)
      if ((code[i] & '\xfa') == '\x48' && (code[i] & 0x04) == rex && code[i + 1] == '\x89' &&
          (code[i + 2] & 0x38) == field && (code[i + 2] & '\xc0') != '\xc0')
        return true;
    return false;
  }

  // mov x(%rip),%reg with 64 bits.
  static bool is_load(std::string_view code, size_t at) {
    return at > 2 && code[at - 2] == '\x8b' && (code[at - 3] & '\xfb') == 0x48 &&
           (code[at - 1] & '\xc7') == 0x05;
  }

  // movq x(%rip),%xmm and movhps x(%rip),%xmm: two names, which are stored together.
  static bool is_vector_load(std::string_view code, size_t at) {
    if (at < 5 || code[at - 3] != '\x0f') return false;
    const bool has_rex = (code[at - 4] & '\xf0') == '\x40';
    const bool has_prefix = code[has_rex ? at - 5 : at - 4] == '\xf3';
    return code[at - 2] == '\x16' || (code[at - 2] == '\x7e' && has_prefix);
  }

  // After the call has been added.
  void add_step(size_t at, uint64_t size, Registers& registers) {
    if (!cython_) return;
    const Call& call = calls_.back();
    steps_.push_back({CodeStep::kCall, registers.first(at), call.caller, call.callee,
                      call.kind == Function::kStatement, call.kind == Function::kByVariable,
                      size <= kSmallFunction, registers.third(at), registers.fifth(at),
                      registers.sixth(at)});
    registers.forget();
    if (call.kind != Function::kIntern) return;
    interned_at_ = at;
    for (auto one = computed_.rbegin(); one != computed_.rend(); ++one) {
      if (at - one->first > kInternDistance) break;  // they rise
      addresses_.insert(one->second);
    }
  }

  void add_load(uint64_t function, uint64_t variable) {
    steps_.push_back({CodeStep::kLoad, variable, function, 0, false, false, false, {}, {}, {}});
  }

  void add_computed(size_t at, uint64_t address) {
    computed_.emplace_back(at, address);
    if (interned_at_ && at - *interned_at_ <= kInternDistanceAfter) addresses_.insert(address);
  }

  // Compilers put code that seldom runs elsewhere; as PyInit does once. Its unwind entry is its
  // own.
  void visit_part(uint64_t from, uint64_t address) {
    const elf::FunctionBounds* part = elf::function_at(functions_, address);
    if (part && part->begin != from && is_code(address)) visit(part->begin);
  }

  // False: no call.
  bool add_call(uint64_t caller, uint64_t target, const std::string& argument) {
    if (const auto slot = slot_of_stub(target)) return add_slot_call(caller, *slot, argument);
    if (!is_function(target)) return false;
    calls_.push_back({caller, target, Function::kOther, argument, std::exchange(text_, {})});
    visit(target);
    return true;
  }

  bool add_slot_call(uint64_t caller, uint64_t address, const std::string& argument) {
    const auto slot = slots_.find(address);
    if (slot == slots_.end()) {
      // Rust calls its own functions by slots, as -fno-plt does those of others.
      if (const auto own = pointer_at(address); own && is_function(*own)) {
        calls_.push_back({caller, *own, Function::kOther, argument, std::exchange(text_, {})});
        visit(*own);
        return true;
      }
      if (!cython_ || !is_writable(address)) return false;
      calls_.push_back({caller, address, Function::kByVariable, argument, {}});
      return true;
    }
    calls_.push_back(
        {caller, slot->second.function, slot->second.kind, argument, std::exchange(text_, {})});
    visit(slot->second.function);
    return true;
  }

  // `jmp *slot(%rip)` (ff 25), with endbr64 and bnd before it or not.
  std::optional<uint64_t> slot_of_stub(uint64_t address) const {
    const auto offset = offset_of(address);
    if (!offset) return std::nullopt;
    Bytes code = file_.from(*offset);
    uint64_t at = code.read<uint32_t>(0) == 0xfa1e0ff3 ? 4 : 0;
    if (code.read<uint8_t>(at) == 0xf2) at++;
    const auto displacement = code.read<int32_t>(at + 2);
    if (code.read<uint16_t>(at) != 0x25ff || !displacement) return std::nullopt;
    return address + at + 6 + static_cast<int64_t>(*displacement);
  }

  void add_address(uint64_t address, bool by_first) {
    const std::string name = name_at(address);
    if (name.find('.') != std::string::npos) mentioned_.push_back(name);
    if (by_first) visit(address);
  }

  bool is_writable(uint64_t address) const { return elf::has_rights(object_, address, elf::PF_W); }
  bool is_code(uint64_t address) const { return elf::has_rights(object_, address, elf::PF_X); }

  // If this is one, or has one in it (Rust puts other fields before it): a module's definition,
  // with functions that run when the module is executed.
  void visit_definition(uint64_t address) {
    if (!is_writable(address)) return;
    for (uint64_t at = address; at <= address + kMaxBefore; at += 8)
      if (const auto slots = pointer_at(at + kSlotsOffset); slots && *slots != 0)
        visit_slots(*slots);
  }

  void visit_slots(uint64_t slots) {
    for (uint64_t i = 0; i < kMaxSlots; i++) {
      const auto offset = offset_of(slots + i * kSlotSize);
      const uint64_t kind = offset ? file_.read<uint64_t>(*offset).value_or(0) : 0;
      if (kind == 0 || kind > kLastSlot) return;
      if (kind != kExecSlot) continue;
      // A small one hands the real one to something that calls it.
      if (const auto function = pointer_at(slots + i * kSlotSize + 8))
        visit(*function, is_small(*function));
    }
  }

  bool is_small(uint64_t address) const {
    const elf::FunctionBounds* found = elf::function_at(functions_, address);
    return found && found->end - found->begin <= kTrampoline;
  }

  std::string name_at(uint64_t address) const {
    const auto offset = offset_of(address);
    if (!offset) return "";
    const std::string_view text = file_.from(*offset).text().substr(0, kMaxName + 1);
    const std::string_view word = text.substr(0, std::min(text.find('\0'), text.size()));
    return word.size() <= kMaxName && is_name(word) ? std::string(word) : "";
  }

  std::vector<std::string> imported_names() const {
    std::unordered_set<uint64_t> importers;
    std::vector<std::string> names;
    for (int round = 0; round < kWrappers; round++) {
      std::unordered_set<uint64_t> further;
      names.clear();
      for (const Call& call : calls_) {
        if (call.kind != Function::kImport && !importers.contains(call.callee)) continue;
        if (call.name.empty()) {
          further.insert(call.caller);
        } else {
          add_once(names, call.name);
        }
      }
      importers.insert(further.begin(), further.end());
    }
    add_names_by_object(names);
    add_names_by_text(names);
    for (const std::string& name : run_) add_once(names, name);
    return names;
  }

  // Of an import by an object: the name that a function of text was given shortly before.
  void add_names_by_text(std::vector<std::string>& names) const {
    for (size_t i = 0; i < calls_.size(); i++) {
      const Function kind = calls_[i].kind;
      if (kind != Function::kByObject && kind != Function::kBoostImport &&
          (kind != Function::kStatement || cython_))
        continue;
      for (size_t back = 1; back <= kCallsBetweenText && back <= i; back++) {
        const Call& text = calls_[i - back];
        if (text.caller != calls_[i].caller || text.kind == kind) break;
        if (text.kind != Function::kText || text.name.empty()) continue;
        add_once(names, text.name);
        break;
      }
    }
  }

  // Of a call of a function that only hands an object on to PyImport_Import: the text that it or
  // one of the calls before it is given. What makes the text and calls that itself keeps the module
  // for when it is needed (polars: pickle).
  void add_names_by_object(std::vector<std::string>& names) const {
    std::unordered_set<uint64_t> importers;
    for (int round = 0; round <= kWrappers; round++) {
      std::unordered_set<uint64_t> further;
      for (size_t i = 0; i < calls_.size(); i++) {
        const bool by_wrapper = importers.contains(calls_[i].callee);
        if (!by_wrapper && calls_[i].kind != Function::kByObject) continue;
        size_t from = i;
        while (from > 0 && i - from < kCallsBetween && calls_[from].text.empty() &&
               calls_[from - 1].caller == calls_[i].caller)
          from--;
        const std::string& name = calls_[from].text;
        if (name.empty())
          further.insert(calls_[i].caller);
        else if (by_wrapper)
          add_once(names, name);
      }
      importers.insert(further.begin(), further.end());
    }
  }

  void add_statements(InitialCode& result) {
    ImportStatements statements = read_statements(steps_, addresses_, *cython_);
    // Where others have Cython's own functions, a call of these is known by the names only.
    const bool is_seen = has_statements_ || !cython_->empty();
    result.statements_known = result.known && statements.complete && is_seen;
    result.imported.insert(result.imported.end(), statements.names.begin(), statements.names.end());
    result.stated = std::move(statements.names);
  }

  struct Slot {
    Function kind = Function::kOther;
    uint64_t function = 0;  // of the module's own
  };

  const elf::Object& object_;
  Bytes file_;
  CythonNames* cython_;
  std::vector<elf::FunctionBounds> functions_;
  std::unordered_map<uint64_t, Slot> slots_;             // of the GOT
  std::vector<std::pair<uint64_t, uint64_t>> pointers_;  // by where they are stored
  bool pointers_are_read_ = false;
  bool has_statements_ = false;
  bool has_once_ = false;
  std::unordered_set<uint64_t> visited_;
  struct Waiting {
    uint64_t function = 0;
    bool is_first = false;  // PyInit, or as good as that
    int distance = 0;
  };
  std::vector<Waiting> waiting_;  // those that were read stay
  int distance_ = 0;              // calls from PyInit to what the function that is read calls
  std::vector<Call> calls_;
  std::vector<CodeStep> steps_;                           // of Cython modules
  std::vector<std::pair<size_t, uint64_t>> computed_;     // addresses, in the function that is read
  std::optional<size_t> interned_at_;                     // the last such call
  std::string text_;                                      // given with its length to the next call
  std::optional<std::pair<size_t, uint64_t>> source_at_;  // the first argument, and where it is set
  std::unordered_set<uint64_t> read_sources_;
  std::vector<std::string> run_;            // by source that the code runs
  std::unordered_set<uint64_t> addresses_;  // where such a module may put its strings
  std::vector<std::string> mentioned_;
  uint64_t left_ = kMaxCode;
};

}  // namespace

InitialCode read_initial_code(const elf::Object& object, Bytes file) {
  return Reader(object, file, nullptr).read();
}

InitialCode read_initial_code(const elf::Object& object, Bytes file,
                              std::vector<StringTable> tables) {
  if (object.machine != elf::EM_X86_64) return {};
  CythonNames names(object, file, std::move(tables));
  return Reader(object, file, &names).read();
}

}  // namespace cohabit::python
