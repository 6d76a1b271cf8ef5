#include "actions/trace_program.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/mapped_file.h"

namespace cohabit {
namespace {

constexpr int kMaxScripts = 5;  // a #! line may name a script again; the kernel stops there too
constexpr size_t kScriptLine = 256;

Result<MappedFile> map_file(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  auto file = MappedFile::map(fd, path);
  ::close(fd);
  return file;
}

std::string real_path(const std::string& path) {
  char buffer[PATH_MAX];
  return ::realpath(path.c_str(), buffer) ? buffer : path;
}

bool is_executable_file(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

std::string below(const std::string& directory, const std::string& path) {
  return path.starts_with('/') ? path : directory + "/" + path;
}

Result<std::string> search_command(const std::string& name, std::string_view search_path,
                                   const std::string& directory) {
  if (name.find('/') != name.npos) {
    std::string path = below(directory, name);
    if (is_executable_file(path)) return path;
    return fail(fmt::format("{} is not an executable file", name));
  }
  while (true) {
    size_t colon = search_path.find(':');
    std::string place(search_path.substr(0, colon));
    std::string path = below(directory, place.empty() ? name : fmt::format("{}/{}", place, name));
    if (is_executable_file(path)) return path;
    if (colon == search_path.npos) break;
    search_path.remove_prefix(colon + 1);
  }
  return fail(fmt::format("command not found: {}", name));
}

bool gains_privileges(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return false;
  if ((status.st_mode & S_ISUID) && status.st_uid != ::geteuid()) return true;
  if ((status.st_mode & S_ISGID) && status.st_gid != ::getegid()) return true;
  return ::geteuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

const char* machine_name(uint16_t machine) {
  if (machine == EM_X86_64) return "x86_64";
  if (machine == EM_AARCH64) return "aarch64";
  return nullptr;
}

uint16_t own_machine() {
#if defined(__x86_64__)
  return EM_X86_64;
#else
  return EM_AARCH64;
#endif
}

std::string find_loader(Bytes bytes, const Elf64_Ehdr& header) {
  auto table = bytes.table<Elf64_Phdr>(header.e_phoff, header.e_phnum);
  for (uint64_t i = 0; table && i < table->size(); ++i) {
    Elf64_Phdr segment = (*table)[i];
    if (segment.p_type != PT_INTERP) continue;
    auto name = bytes.c_string(segment.p_offset);
    if (name) return std::string(*name);
  }
  return "";
}

// Linked for any address (-static-pie), and so no different from a library or from ld.so itself by
// its type. Only programs are marked as such.
bool is_static_program(Bytes bytes, const Elf64_Ehdr& header) {
  if (header.e_type == ET_EXEC) return true;
  auto table = bytes.table<Elf64_Phdr>(header.e_phoff, header.e_phnum);
  for (uint64_t i = 0; table && i < table->size(); ++i) {
    const Elf64_Phdr segment = (*table)[i];
    if (segment.p_type != PT_DYNAMIC) continue;
    auto entries = bytes.table<Elf64_Dyn>(segment.p_offset, segment.p_filesz / sizeof(Elf64_Dyn));
    for (uint64_t j = 0; entries && j < entries->size(); ++j) {
      const Elf64_Dyn entry = (*entries)[j];
      if (entry.d_tag == DT_FLAGS_1 && (entry.d_un.d_val & DF_1_PIE) != 0) return true;
    }
  }
  return false;
}

// musl and Android have loaders of their own, with other rules and no such log.
bool is_foreign_loader(const std::string& loader) {
  return loader.find("/ld-musl") != std::string::npos || loader.ends_with("/linker64");
}

Result<bool> read_elf(TracedProgram& program) {
  auto file = map_file(program.executable);
  if (!file) return tl::unexpected(file.error());
  auto header = file->bytes().read<Elf64_Ehdr>(0);
  const std::string& path = program.executable;
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
    return fail(fmt::format("{} is neither an ELF program nor a script with a #! line", path));
  }
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != own_machine()) {
    return fail(fmt::format("{} is not a program for this machine; no trace is possible", path));
  }
  program.machine = machine_name(header->e_machine);
  program.loader = find_loader(file->bytes(), *header);
  if (program.loader.empty() && is_static_program(file->bytes(), *header)) {
    return fail(fmt::format(
        "{} is statically linked: it loads no tracer and opens nothing; no trace is possible",
        path));
  }
  if (program.loader.empty()) program.loader = path;  // ld.so itself
  if (is_foreign_loader(program.loader)) {
    return fail(fmt::format("{} uses the loader {}, which is not glibc's; no trace is possible",
                            path, program.loader));
  }
  return true;
}

}  // namespace

std::vector<std::string> script_interpreter(const std::string& path) {
  auto file = map_file(path);
  if (!file) return {};
  std::string_view line = file->bytes().text().substr(0, kScriptLine);
  if (!line.starts_with("#!")) return {};
  line = line.substr(2, line.find('\n') - 2);
  auto trim = [](std::string_view text) {
    size_t first = text.find_first_not_of(" \t");
    if (first == text.npos) return std::string_view();
    return text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
  };
  line = trim(line);
  size_t end = std::min(line.find_first_of(" \t"), line.size());
  std::vector<std::string> words{std::string(line.substr(0, end))};
  std::string_view argument = trim(line.substr(end));
  if (!argument.empty()) words.emplace_back(argument);
  return words[0].empty() ? std::vector<std::string>() : words;
}

Result<TracedProgram> find_program(const std::string& name, const std::string& search_path,
                                   const std::string& working_directory) {
  auto command = search_command(name, search_path, working_directory);
  if (!command) return tl::unexpected(command.error());
  TracedProgram program;
  program.command = program.program = *command;
  for (int i = 0; i < kMaxScripts; ++i) {
    auto words = script_interpreter(program.program);
    if (words.empty()) break;
    program.program = below(working_directory, words[0]);
    program.script = words;
  }
  program.executable = real_path(program.program);
  if (gains_privileges(program.executable)) {
    return fail(fmt::format(
        "{} gains privileges when started (setuid, setgid or capabilities): ld.so ignores the "
        "tracer there; no trace is possible",
        program.executable));
  }
  if (auto readable = read_elf(program); !readable) return tl::unexpected(readable.error());
  return program;
}

std::vector<std::string> active_hwcaps(const std::string& loader,
                                       const std::vector<std::string>& options,
                                       const std::vector<std::string>& environment) {
  std::vector<std::string> names;
  int ends[2];
  if (loader.empty() || ::pipe2(ends, O_CLOEXEC) != 0) return names;
  std::vector<char*> variables;
  for (const auto& entry : environment) {
    if (entry.starts_with("GLIBC_TUNABLES=")) variables.push_back(const_cast<char*>(entry.c_str()));
  }
  variables.push_back(nullptr);
  std::vector<std::string> words = {loader};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--help");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  bool started = ::posix_spawn(&pid, loader.c_str(), &actions, nullptr, arguments.data(),
                               variables.data()) == 0;
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; started && (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  ::close(ends[0]);
  if (started) ::waitpid(pid, nullptr, 0);
  // "  x86-64-v3 (supported, searched)", "  given (searched)" of --glibc-hwcaps-prepend; glibc
  // before 2.37 then lists the older kind.
  const size_t first = std::min(text.find("glibc-hwcaps"), text.size());
  text.resize(std::min(text.find("Legacy HWCAP"), text.size()));
  for (size_t at = first; (at = text.find("searched)", at)) != text.npos; ++at) {
    const size_t end = text.rfind(" (", at), begin = text.find_last_of(" \n", end - 1) + 1;
    if (end > first) names.push_back(text.substr(begin, end - begin));
  }
  return names;
}

}  // namespace cohabit
