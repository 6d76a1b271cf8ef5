// Which modules are compiled into an interpreter is told by config.c's table, which no symbol
// names; but every entry but a few is a PyInit_ function, and CPython exports those for programs
// that extend the table. A stripped static build without exports still has the names themselves as
// strings: the stems below are the C modules that CPython's own Modules/Setup can build in.
//
// The suffix of extension modules (SOABI) holds version, machine, C library and build options.
// Every build has files named with it; only an installation without any needs a guess.
#include "imports/builtins.h"

#include <algorithm>
#include <string_view>

#include "base/paths.h"
#include "facts/elf/object.h"

namespace cohabit::python {
namespace {

// In config.c, but started by another function than PyInit_.
constexpr const char* kAlways[] = {"_imp", "_warnings", "builtins", "gc", "marshal", "sys"};

constexpr const char* kCanBeBuiltIn[] = {
    "_abc",
    "_ast",
    "_asyncio",
    "_bisect",
    "_blake2",
    "_bz2",
    "_codecs",
    "_codecs_cn",
    "_codecs_hk",
    "_codecs_iso2022",
    "_codecs_jp",
    "_codecs_kr",
    "_codecs_tw",
    "_collections",
    "_contextvars",
    "_crypt",
    "_csv",
    "_ctypes",
    "_curses",
    "_curses_panel",
    "_datetime",
    "_dbm",
    "_decimal",
    "_elementtree",
    "_functools",
    "_gdbm",
    "_hashlib",
    "_heapq",
    "_hmac",
    "_interpchannels",
    "_interpqueues",
    "_interpreters",
    "_io",
    "_json",
    "_locale",
    "_lsprof",
    "_lzma",
    "_md5",
    "_multibytecodec",
    "_multiprocessing",
    "_opcode",
    "_operator",
    "_pickle",
    "_posixshmem",
    "_posixsubprocess",
    "_queue",
    "_random",
    "_remote_debugging",
    "_sha1",
    "_sha2",
    "_sha256",
    "_sha3",
    "_sha512",
    "_signal",
    "_socket",
    "_sqlite3",
    "_sre",
    "_ssl",
    "_stat",
    "_statistics",
    "_string",
    "_struct",
    "_suggestions",
    "_symtable",
    "_sysconfig",
    "_thread",
    "_tkinter",
    "_tokenize",
    "_tracemalloc",
    "_types",
    "_typing",
    "_uuid",
    "_weakref",
    "_xxinterpchannels",
    "_xxsubinterpreters",
    "_zoneinfo",
    "_zstd",
    "array",
    "atexit",
    "audioop",
    "binascii",
    "cmath",
    "errno",
    "faulthandler",
    "fcntl",
    "grp",
    "itertools",
    "math",
    "mmap",
    "nis",
    "ossaudiodev",
    "parser",
    "posix",
    "pwd",
    "pyexpat",
    "readline",
    "resource",
    "select",
    "spwd",
    "syslog",
    "termios",
    "time",
    "unicodedata",
    "xxsubtype",
    "zlib",
};

// The directories where the executable's libpython may be: what the loader would find, without
// simulating it.
std::vector<std::string> library_directories(const elf::Object& program,
                                             const Interpreter& interpreter) {
  std::vector<std::string> directories;
  const std::string paths(program.runpath.value_or(program.rpath.value_or("")));
  for (size_t begin = 0; begin < paths.size();) {
    const size_t end = std::min(paths.find(':', begin), paths.size());
    std::string directory = paths.substr(begin, end - begin);
    for (const std::string_view origin : {"$ORIGIN", "${ORIGIN}"})
      if (directory.starts_with(origin))
        directory.replace(0, origin.size(), directory_of(interpreter.real_path));
    directories.push_back(directory);
    begin = end + 1;
  }
  const std::string machine =
      interpreter.elf_machine == elf::EM_AARCH64 ? "aarch64-linux-gnu" : "x86_64-linux-gnu";
  for (const std::string& directory :
       {interpreter.base_prefix + "/lib", interpreter.base_prefix + "/lib64", "/usr/lib/" + machine,
        "/lib/" + machine, std::string("/usr/lib64"), std::string("/usr/lib"),
        std::string("/usr/local/lib"), std::string("/lib64"), std::string("/lib")})
    directories.push_back(directory);
  return directories;
}

std::string libpython_of(const Tree& tree, const elf::Object& program,
                         const Interpreter& interpreter) {
  if (!interpreter.has_shared_libpython()) return "";
  for (const std::string& directory : library_directories(program, interpreter)) {
    const std::string path = directory + "/" + interpreter.libpython_soname;
    if (const auto status = tree.stat(path); status && status->is_regular()) return path;
  }
  return "";
}

void add_exports(const elf::Object& object, std::vector<std::string>& names) {
  constexpr std::string_view kInit = "PyInit_";
  for (uint64_t i = 0; i < object.symbols.size(); i++) {
    if (object.symbols[i].st_shndx == elf::SHN_UNDEF) continue;
    const std::string_view name = object.symbol_name(static_cast<uint32_t>(i));
    if (name.starts_with(kInit)) names.emplace_back(name.substr(kInit.size()));
  }
}

void add_strings(std::string_view text, std::vector<std::string>& names) {
  for (const char* name : kCanBeBuiltIn) {
    const std::string whole = std::string(1, '\0') + name + '\0';
    if (text.find(whole) != std::string_view::npos) names.emplace_back(name);
  }
}

// ".cpython-312-x86_64-linux-gnu.so" of "math.cpython-312-x86_64-linux-gnu.so"; empty if the file
// has no such tag.
std::string tag_of(std::string_view file) {
  const size_t dot = file.find('.');
  if (dot == std::string_view::npos || !file.ends_with(".so")) return "";
  const std::string_view tag = file.substr(dot);
  const bool is_tag = tag.starts_with(".cpython-") || tag.starts_with(".pypy");
  return is_tag ? std::string(tag) : "";
}

std::string guessed_tag(const Interpreter& interpreter, bool free_threaded) {
  const bool musl = interpreter.elf_interpreter.find("ld-musl") != std::string::npos;
  return ".cpython-" + std::to_string(interpreter.major) + std::to_string(interpreter.minor) +
         (free_threaded ? "t" : "") +
         (interpreter.elf_machine == elf::EM_AARCH64 ? "-aarch64" : "-x86_64") +
         (musl ? "-linux-musl" : "-linux-gnu") + ".so";
}

// From _sysconfigdata__linux_x86_64-linux-gnu.py, where nothing is in lib-dynload.
std::string sysconfig_tag(const Tree& tree, const Interpreter& interpreter) {
  constexpr std::string_view kStart = "_sysconfigdata_", kPlatform = "_linux_";
  for (const std::string& name : tree.list(interpreter.standard_library)) {
    if (!name.starts_with(kStart) || !name.ends_with(".py")) continue;
    const size_t platform = name.find(kPlatform, kStart.size());
    if (platform == std::string::npos) continue;
    const std::string flags = name.substr(kStart.size(), platform - kStart.size());
    const size_t triplet = platform + kPlatform.size();
    return ".cpython-" + std::to_string(interpreter.major) + std::to_string(interpreter.minor) +
           flags + "-" + name.substr(triplet, name.size() - 3 - triplet) + ".so";
  }
  return "";
}

}  // namespace

std::vector<std::string> builtin_modules(const Tree& tree, const Interpreter& interpreter) {
  std::vector<std::string> names;
  if (const Result<MappedFile> program = tree.map(interpreter.real_path)) {
    const elf::Object object = elf::parse(program->bytes());
    add_exports(object, names);
    const std::string libpython = libpython_of(tree, object, interpreter);
    if (!libpython.empty()) {
      if (const Result<MappedFile> library = tree.map(libpython))
        add_exports(elf::parse(library->bytes()), names);
    } else if (names.empty()) {
      add_strings(program->bytes().text(), names);
    }
  }
  names.insert(names.end(), std::begin(kAlways), std::end(kAlways));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string native_code_of(const Tree& tree, const Interpreter& interpreter) {
  if (!interpreter.has_shared_libpython()) return interpreter.real_path;
  const Result<MappedFile> program = tree.map(interpreter.real_path);
  return program ? libpython_of(tree, elf::parse(program->bytes()), interpreter) : "";
}

std::vector<std::string> extension_suffixes(const Tree& tree, const Interpreter& interpreter) {
  const bool free_threaded = interpreter.standard_library.ends_with('t');
  std::string tag;
  for (const std::string& name : tree.list(interpreter.standard_library + "/lib-dynload")) {
    tag = tag_of(name);
    if (!tag.empty()) break;
  }
  if (tag.empty()) tag = sysconfig_tag(tree, interpreter);
  if (tag.empty()) tag = guessed_tag(interpreter, free_threaded);
  std::vector<std::string> suffixes = {tag};
  // A debug build loads the modules of a release build too.
  if (const size_t debug = tag.find("d-"); debug != std::string::npos && debug < tag.find('-', 9))
    suffixes.push_back(std::string(tag).erase(debug, 1));
  if (interpreter.implementation != "PyPy") {
    if (!free_threaded) suffixes.emplace_back(".abi3.so");
    suffixes.emplace_back(".so");
  }
  return suffixes;
}

}  // namespace cohabit::python
