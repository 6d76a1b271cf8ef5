// The parts of sys, os, glob, platform and pathlib that modules ask on import.
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "imports/missing_files.h"
#include "imports/models.h"

namespace cohabit::python {
namespace {

using I = Interpreter;
using A = Arguments;

// --- sys

Ref sys_setdlopenflags(I& in, Ref, const A& a) {
  if (Int* flags = as<Int>(a.get(0), Type::kInt)) in.dlopen_flags = static_cast<int>(flags->value);
  in.count_effect();
  return in.none();
}
Ref sys_getdlopenflags(I& in, Ref, const A&) {
  return in.integer(in.dlopen_flags);
}
Ref sys_exit(I& in, Ref, const A& a) {
  return in.raise_exit(a.get(0));
}
Ref os_exit(I& in, Ref, const A& a) {
  const Ref status = a.get(0, "status");
  return in.end_process(fmt::format("os._exit({})", status ? in.display(status).value_or("") : ""));
}
Ref os_abort(I& in, Ref, const A&) {
  return in.end_process("os.abort()");
}
Ref sys_intern(I& in, Ref, const A& a) {
  return a.get(0) ? a.get(0) : in.opaque();
}
Ref returns_none(I& in, Ref, const A&) {
  return in.none();
}
Ref returns_false(I& in, Ref, const A&) {
  return in.boolean(false);
}
Ref returns_first(I& in, Ref, const A& a) {
  return a.get(0) ? a.get(0) : in.opaque();
}

// What stands below every file: of a line of a .pth file, the function of site that *-nspkg.pth
// asks for `sitedir`.
Ref site_frame(I& in) {
  Module* line = in.module_of_frame(0);
  if (!line || line->spec.name != "site" || !line->spec.path.ends_with(".pth")) return in.opaque();
  auto* locals = in.make<Dict>();
  const std::string_view file = line->spec.path;
  in.dict_set(locals, "sitedir", in.constant(file.substr(0, file.rfind('/'))));
  locals->open = true;
  Instance* frame = in.instance_of("Frame");
  frame->names["f_locals"] = locals;
  frame->open = true;
  return frame;
}

// The names that stand in a frame. Null: it has ended since, as far as that is seen.
Scope* scope_of(I& in, Ref frame) {
  const Int* number = as<Int>(static_cast<Instance*>(frame)->names.get("number"), Type::kInt);
  if (!number || static_cast<size_t>(number->value) >= in.frame_count()) return nullptr;
  Scope* scope = in.scope_of_frame(static_cast<size_t>(number->value));
  return scope->module == static_cast<Instance*>(frame)->names.get("module") ? scope : nullptr;
}

Ref frame_numbered(I& in, size_t number) {
  Module* module = in.scope_of_frame(number)->module;
  Instance* code = in.instance_of("namespace");
  code->names["co_filename"] = in.constant(module->spec.path);
  code->open = true;
  Instance* frame = in.instance_of("Frame");
  frame->names["number"] = in.integer(static_cast<int64_t>(number));
  frame->names["module"] = module;
  frame->names["f_code"] = code;
  auto* globals = in.make<Dict>();
  in.dict_set(globals, "__name__", in.constant(module->spec.name));
  in.dict_set(globals, "__file__", in.constant(module->spec.path));
  globals->open = true;
  globals->variables_of = module;
  frame->names["f_globals"] = globals;
  frame->open = true;
  return frame;
}

// sys._getframe(n): modules ask it for the file of their caller.
Ref sys_getframe(I& in, Ref, const A& a) {
  Int* value = as<Int>(a.get(0), Type::kInt);
  const size_t depth = value && value->value > 0 ? static_cast<size_t>(value->value) : 0;
  Module* module = in.module_of_frame(depth);
  if (!module || module->spec.name.empty()) return site_frame(in);
  return frame_numbered(in, in.frame_count() - 1 - depth);
}

// Behind a module's own code stands importlib's, which is not run here.
Ref frame_back(I& in, Ref self, const A&) {
  Scope* scope = scope_of(in, self);
  if (!scope || scope->is_module()) return in.opaque();
  const size_t number = static_cast<size_t>(
      as<Int>(static_cast<Instance*>(self)->names.get("number"), Type::kInt)->value);
  Scope* caller = number > 0 ? in.scope_of_frame(number - 1) : nullptr;
  if (!caller || !caller->module || caller->module->spec.name.empty()) return in.opaque();
  return frame_numbered(in, number - 1);
}

// Those of a module are its variables.
Ref frame_locals(I& in, Ref self, const A&) {
  Scope* scope = scope_of(in, self);
  return scope && scope->is_module() && scope->module ? in.variables_of(scope->module)
                                                      : in.opaque();
}

Ref inspect_getfile(I& in, Ref, const A& a) {
  if (Module* module = as<Module>(a.get(0), Type::kModule))
    return module->spec.path.empty() ? in.opaque() : in.string(module->spec.path);
  Instance* frame = as<Instance>(a.get(0), Type::kInstance);
  if (!frame || frame->of->name != "Frame") return in.opaque();
  return in.attribute(frame->names["f_code"], "co_filename");
}

// Of a module the file's text; what it says of functions and classes is not worked out.
Ref inspect_getsource(I& in, Ref, const A& a) {
  constexpr uint64_t kMost = 1 << 20;
  const Module* module = as<Module>(a.get(0), Type::kModule);
  if (!module || module->spec.kind != ModuleKind::kSource) return in.opaque();
  const auto text = text_for_program(in, module->spec.path, kMost);
  return text ? in.string(*text) : in.opaque();
}

Ref returns_opaque(I& in, Ref, const A&) {
  return in.opaque();
}

// --- paths

std::string normal(std::string_view path) {
  std::vector<std::string_view> parts;
  const bool absolute = path.starts_with("/");
  for (size_t at = 0; at <= path.size();) {
    size_t end = path.find('/', at);
    if (end == std::string::npos) end = path.size();
    const std::string_view part = path.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == ".." && !parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (part != ".." || !absolute) {
      parts.push_back(part);
    }
  }
  std::string result;
  for (const std::string_view part : parts) result.append(result.empty() ? "" : "/").append(part);
  if (absolute) return "/" + result;
  return result.empty() ? "." : result;
}

std::string joined(std::string_view base, std::string_view part) {
  if (part.starts_with("/")) return std::string(part);
  return fmt::format("{}{}{}", base, base.empty() || base.ends_with("/") ? "" : "/", part);
}

std::pair<std::string_view, std::string_view> split_path(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  std::string_view head = path.substr(0, slash + 1);
  if (head.find_first_not_of('/') != head.npos)
    head = head.substr(0, head.find_last_not_of('/') + 1);
  return {head, path.substr(slash + 1)};
}

size_t extension_at(std::string_view name) {
  const size_t dot = name.rfind('.');
  const size_t first = name.find_first_not_of('.');
  return dot == std::string::npos || first == std::string::npos || dot < first ? name.size() : dot;
}

Ref path_join(I& in, Ref, const A& a) {
  std::string result;
  for (size_t i = 0; i < a.positional.size(); i++) {
    const std::string_view* part = text_of(a.positional[i]);
    if (!part) return in.opaque();
    result = i ? joined(result, *part) : *part;
  }
  return a.open || a.positional.empty() ? in.opaque() : in.string(std::move(result));
}

template <class F>
Ref on_text(I& in, const A& a, F function) {
  const std::string_view* text = text_of(a.get(0));
  return text ? function(*text) : in.opaque();
}

Ref path_dirname(I& in, Ref, const A& a) {
  return on_text(in, a, [&](std::string_view p) { return in.string(split_path(p).first); });
}
Ref path_basename(I& in, Ref, const A& a) {
  return on_text(in, a, [&](std::string_view p) { return in.string(split_path(p).second); });
}
Ref path_split(I& in, Ref, const A& a) {
  return on_text(in, a, [&](std::string_view p) -> Ref {
    const auto [head, tail] = split_path(p);
    return in.list({in.string(head), in.string(tail)}, Type::kTuple);
  });
}
Ref path_splitext(I& in, Ref, const A& a) {
  return on_text(in, a, [&](std::string_view p) -> Ref {
    const size_t name = p.rfind('/') == std::string::npos ? 0 : p.rfind('/') + 1;
    const size_t dot = name + extension_at(p.substr(name));
    return in.list({in.string(p.substr(0, dot)), in.string(p.substr(dot))}, Type::kTuple);
  });
}
Ref path_abspath(I& in, Ref, const A& a) {
  return on_text(in, a, [&](std::string_view p) {
    const auto path = in.absolute(p);
    return path ? in.string(normal(*path)) : in.opaque();
  });
}
void add_words(std::string_view command, std::vector<std::string_view>& words) {
  constexpr std::string_view kBetween = " \t\n;&|<>'\"()";
  for (size_t begin = 0; begin < command.size();) {
    const size_t end = std::min(command.find_first_of(kBetween, begin), command.size());
    if (end > begin) words.push_back(command.substr(begin, end - begin));
    begin = end + 1;
  }
}
// Its words may name what it makes, or say that it installs something. A word that is no path is
// one only where something is made: `pip show torch` makes no torch.
Ref start_process(I& in, Ref, const A& a) {
  constexpr std::array<std::string_view, 11> kMakers = {
      "cp", "git", "install", "ln", "mkdir", "mv", "rsync", "tar", "tee", "touch", "unzip"};
  in.processes_started++;
  std::vector<std::string_view> words;
  for (Ref given : a.positional) {
    if (const std::string_view* command = text_of(given)) add_words(*command, words);
    if (const Sequence* items = sequence_of(given))
      for (Ref item : items->items)
        if (const std::string_view* text = text_of(item)) add_words(*text, words);
  }
  bool makes = false;
  for (const std::string_view word : words) {
    in.may_install |= word == "install";
    makes |= std::find(kMakers.begin(), kMakers.end(), word.substr(word.rfind('/') + 1)) !=
             kMakers.end();
  }
  for (const std::string_view word : words)
    if (word[0] != '-' && (makes || word.find_first_of("./") != word.npos)) in.note_made(word);
  return in.opaque();
}
// A directory of this name, or a link; or what is moved or copied to it.
template <size_t At>
Ref make_path(I& in, Ref, const A& a) {
  if (const std::string_view* path = text_of(a.get(At))) in.note_made(*path);
  return in.opaque();
}
// What an archive holds is put below a directory, the current one if none is said.
template <size_t At>
Ref unpack(I& in, Ref, const A& a) {
  Ref place = a.get(At, "path");
  if (!place) place = a.get(At, "extract_dir");
  const bool is_said = place && place->type != Type::kNone;
  if (const std::string_view* path = text_of(place))
    in.note_made(*path);
  else if (!is_said && in.working_directory)
    in.note_made(*in.working_directory);
  return in.opaque();
}
Ref path_make(I& in, Ref self, const A&) {
  if (const std::string_view* path = text_of(self)) in.note_made(*path);
  return in.none();
}
Ref os_getcwd(I& in, Ref, const A&) {
  return in.working_directory ? in.string(*in.working_directory) : in.opaque();
}
Ref os_chdir(I& in, Ref, const A& a) {
  const std::string_view* path = text_of(a.get(0, "path"));
  in.working_directory = path ? in.absolute(*path) : std::nullopt;
  in.has_moved = true;
  return in.none();
}
Ref path_normpath(I& in, Ref, const A& a) {
  return on_text(in, a, [&](std::string_view p) { return in.string(normal(p)); });
}
Ref path_realpath(I& in, Ref, const A& a) {
  return on_text(in, a, [&](std::string_view p) {
    const auto path = in.absolute(p);
    if (!path) return in.opaque();
    return in.string(in.tree().real_path(*path).value_or(normal(*path)));
  });
}
Ref path_isabs(I& in, Ref, const A& a) {
  return on_text(in, a, [&](std::string_view p) { return in.boolean(p.starts_with("/")); });
}

std::optional<bool> check_file(I& in, std::string_view given, char kind) {
  if (given.empty()) return false;
  const auto path = in.absolute(given);
  if (!path) return std::nullopt;
  const auto status = in.tree().stat(*path);
  if (!status) return false;
  if (kind == 'd') return status->is_directory();
  if (kind == 'f') return status->is_regular();
  return true;
}
// What looks at a file that is to be there, and tells what is not followed.
Ref look_at_file(I& in, Ref self, const A& a) {
  return refuses_missing(in, text_of(self ? self : a.get(0))) ? nullptr : in.opaque();
}
Ref copy_file(I& in, Ref self, const A& a) {
  return refuses_missing(in, text_of(a.get(0, "src"))) ? nullptr : make_path<1>(in, self, a);
}
// Whether no directory of PATH has it.
bool lacks_command(I& in, std::string_view command) {
  in.observe(in.environment(), in.string("PATH"));
  const std::string_view* path = text_of(I::dict_get(in.environment(), "PATH"));
  if (command.empty() || !path) return false;
  for (size_t begin = 0; begin <= path->size();) {
    const size_t end = std::min(path->find(':', begin), path->size());
    const std::string file = fmt::format("{}/{}", path->substr(begin, end - begin), command);
    if (file[0] != '/' || in.may_be_made(file) || check_file(in, file, 'e') != std::optional(false))
      return false;
    begin = end + 1;
  }
  return true;
}
// What subprocess starts. In another environment than the program's own a command may be elsewhere.
Ref fork_exec(I& in, Ref self, const A& a) {
  const auto words = a.get(0) ? in.elements(a.get(0)) : std::nullopt;
  const std::string_view* command = words && !words->empty() ? text_of((*words)[0]) : nullptr;
  const Ref variables = a.get(5);
  if (command && variables && variables->type == Type::kNone) {
    const bool is_here = command->starts_with('/') || !a.get(4) || a.get(4)->type == Type::kNone;
    if (command->find('/') != command->npos) {
      if (is_here && refuses_missing(in, command)) return nullptr;
    } else if (in.expects("FileNotFoundError") && lacks_command(in, *command)) {
      return in.raise("FileNotFoundError",
                      fmt::format("[Errno 2] No such file or directory: '{}'", *command));
    }
  }
  return start_process(in, self, a);
}
// tarfile.open(name, mode)
Ref tar_open(I& in, Ref, const A& a) {
  const std::string_view *name = text_of(a.get(0, "name")), *mode = text_of(a.get(1, "mode"));
  const bool is_read = mode ? mode->starts_with("r") : !a.get(1, "mode");
  if (is_read && refuses_missing(in, name)) return nullptr;
  const auto* module = as<Module>(in.loaded_module("tarfile"), Type::kModule);
  auto* type = module ? as<Class>(module->names.get("TarFile"), Type::kClass) : nullptr;
  if (!type) return in.opaque();
  auto* archive = in.make<Instance>(type);
  archive->open = archive->unseen = true;
  return archive;
}
template <char Kind>
Ref path_check(I& in, Ref self, const A& a) {
  const std::string_view* path = text_of(self ? self : a.get(0));
  const auto is_there = path ? check_file(in, *path, Kind) : std::nullopt;
  if (is_there == std::optional(false) && in.may_be_made(*path)) return in.opaque();
  return in.boolean(is_there);
}

Ref names_below(I& in, std::string_view given) {
  const std::string directory(given);
  const auto status = in.tree().stat(directory);
  if (!status || !status->is_directory())
    return in.raise("FileNotFoundError", "No such file or directory: '" + directory + "'");
  auto* result = in.list({});
  for (const std::string& name : in.tree().list(directory))
    result->items.push_back(in.string(name));
  return result;
}
Ref os_listdir(I& in, Ref, const A& a) {
  return on_text(in, a, [&](std::string_view p) {
    const auto path = in.absolute(p);
    return path ? names_below(in, *path) : in.opaque();
  });
}

// glob with wildcards in any component; "**" goes any depth when recursive.
void expand(I& in, const std::string& base, const std::vector<std::string>& parts, size_t at,
            std::vector<std::string>& found, int depth) {
  if (found.size() > 10000 || depth > 12) return;
  if (at == parts.size()) {
    found.push_back(base);
    return;
  }
  const std::string& part = parts[at];
  if (part == "**") {
    expand(in, base, parts, at + 1, found, depth);
    for (const std::string& name : in.tree().list(base)) {
      const std::string below = joined(base, name);
      const auto status = in.tree().stat(below);
      if (status && status->is_directory()) expand(in, below, parts, at, found, depth + 1);
    }
    return;
  }
  if (part.find_first_of("*?[") == std::string::npos) {
    const std::string next = joined(base, part);
    if (in.tree().stat(next)) expand(in, next, parts, at + 1, found, depth);
    return;
  }
  for (const std::string& name : in.tree().list(base))
    if (fnmatch(part.c_str(), name.c_str(), FNM_PERIOD) == 0)
      expand(in, joined(base, name), parts, at + 1, found, depth);
}

std::vector<std::string> glob_in(I& in, std::string_view pattern) {
  std::vector<std::string> parts, found;
  for (size_t at = 1; at < pattern.size();) {
    size_t end = pattern.find('/', at);
    if (end == std::string::npos) end = pattern.size();
    if (end > at) parts.emplace_back(pattern.substr(at, end - at));
    at = end + 1;
  }
  expand(in, "/", parts, 0, found, 0);
  return found;
}

Ref glob_glob(I& in, Ref, const A& a) {
  return on_text(in, a, [&](std::string_view pattern) -> Ref {
    if (!pattern.starts_with("/")) return in.opaque();
    auto* result = in.list({});
    for (const std::string& path : glob_in(in, pattern)) result->items.push_back(in.string(path));
    return result;
  });
}

Ref os_getenv(I& in, Ref, const A& a) {
  const std::string_view* name = text_of(a.get(0));
  if (!name) return in.opaque();
  in.observe(in.environment(), a.get(0));
  if (Ref value = I::dict_get(in.environment(), *name)) return value;
  return a.get(1, "default") ? a.get(1, "default") : in.none();
}

// os.environ does not know of it.
Ref os_putenv(I& in, Ref, const A& a) {
  if (a.get(0) && a.get(1)) in.note_variable_set(a.get(0), a.get(1));
  return in.none();
}

Ref os_uname(I& in, Ref, const A&) {
  Instance* result = in.instance_of("object");
  result->names["sysname"] = in.string("Linux");
  result->names["machine"] =
      in.string(in.finder().interpreter().elf_machine == 183 ? "aarch64" : "x86_64");
  result->open = true;
  return result;
}

// --- platform

Ref platform_system(I& in, Ref, const A&) {
  return in.string("Linux");
}
Ref platform_machine(I& in, Ref, const A&) {
  return in.string(in.finder().interpreter().elf_machine == 183 ? "aarch64" : "x86_64");
}
Ref platform_implementation(I& in, Ref, const A&) {
  return in.string("CPython");
}
// Which version of it is the executable's, or that of a file that is given.
Ref platform_libc_ver(I& in, Ref, const A& a) {
  if (!a.positional.empty() || !a.keywords.empty() || a.open) return in.opaque();
  return in.list({in.string("glibc"), in.opaque()}, Type::kTuple);
}
Ref platform_version(I& in, Ref, const A&) {
  return in.string(in.finder().interpreter().version);
}
Ref platform_version_tuple(I& in, Ref, const A&) {
  const Interpreter& unused = in;
  (void)unused;
  const auto& python = in.finder().interpreter();
  return in.list({in.string(std::to_string(python.major)), in.string(std::to_string(python.minor)),
                  in.string("0")},
                 Type::kTuple);
}

// site.addpackage(sitedir, name, known_paths): the lines of a .pth file, up to one that fails.
Ref site_addpackage(I& in, Ref, const A& a) {
  constexpr uint64_t kMostPth = 1 << 20;
  const std::string_view* directory = text_of(a.get(0));
  const std::string_view* name = text_of(a.get(1));
  if (!directory || !name) return in.opaque();
  const auto text = in.tree().read_text(fmt::format("{}/{}", *directory, *name), kMostPth);
  std::string_view rest = text ? std::string_view(*text) : "";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trim(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("import ") || line.starts_with("import\t")) {
      if (in.run_text(line, in.make<Dict>())) continue;
      in.clear_raised();
      break;
    }
    const std::string place =
        line[0] == '/' ? std::string(line) : fmt::format("{}/{}", *directory, line);
    if (in.tree().stat(place)) in.sys_path()->items.push_back(in.string(place));
  }
  return a.get(2) ? a.get(2) : in.none();
}

// --- pathlib

Ref path_new(I& in, Ref, const A& a) {
  Ref text = path_join(in, nullptr, a);
  return text_of(text) ? in.path(*text_of(text)) : in.opaque();
}
Ref path_parent(I& in, Ref self, const A&) {
  const std::string_view* path = text_of(self);
  return path ? in.path(split_path(*path).first) : in.opaque();
}
Ref path_is_absolute(I& in, Ref self, const A&) {
  const std::string_view* path = text_of(self);
  return path ? in.boolean(path->starts_with("/")) : in.opaque();
}
Ref path_parents(I& in, Ref self, const A&) {
  if (!text_of(self)) return in.opaque();
  auto* result = in.list({}, Type::kTuple);
  std::string_view path = *text_of(self);
  for (int i = 0; i < 64 && path != "/" && !path.empty(); i++) {
    path = split_path(path).first;
    result->items.push_back(in.path(path));
  }
  return result;
}
Ref path_name(I& in, Ref self, const A&) {
  const std::string_view* path = text_of(self);
  return path ? in.string(split_path(*path).second) : in.opaque();
}
Ref path_stem(I& in, Ref self, const A&) {
  if (!text_of(self)) return in.opaque();
  const std::string_view name = split_path(*text_of(self)).second;
  return in.string(name.substr(0, extension_at(name)));
}
// The path with another last part, made of what is given and of the one that is there.
template <class Make>
Ref path_renamed(I& in, Ref self, const A& a, const Make& make) {
  const std::string_view* path = text_of(self);
  const std::string_view* given = text_of(a.get(0));
  if (!path || !given) return in.opaque();
  const auto [directory, name] = split_path(*path);
  if (name.empty()) return in.opaque();
  const std::string made = make(name, *given);
  return in.path(directory.empty()
                     ? made
                     : fmt::format("{}{}{}", directory, directory.ends_with('/') ? "" : "/", made));
}
Ref path_with_suffix(I& in, Ref self, const A& a) {
  return path_renamed(in, self, a, [](std::string_view name, std::string_view suffix) {
    return fmt::format("{}{}", name.substr(0, extension_at(name)), suffix);
  });
}
Ref path_with_name(I& in, Ref self, const A& a) {
  return path_renamed(in, self, a,
                      [](std::string_view, std::string_view name) { return std::string(name); });
}
Ref path_with_stem(I& in, Ref self, const A& a) {
  return path_renamed(in, self, a, [](std::string_view name, std::string_view stem) {
    return fmt::format("{}{}", stem, name.substr(extension_at(name)));
  });
}
Ref path_suffix(I& in, Ref self, const A&) {
  if (!text_of(self)) return in.opaque();
  const std::string_view name = split_path(*text_of(self)).second;
  return in.string(name.substr(extension_at(name)));
}
Ref path_suffixes(I& in, Ref self, const A&) {
  if (!text_of(self)) return in.opaque();
  const std::string_view name = split_path(*text_of(self)).second;
  auto* result = in.list({});
  const size_t first = name.find_first_not_of('.');
  for (size_t at = std::min(first, name.size()); (at = name.find('.', at)) != name.npos; at++)
    if (!name.ends_with("."))
      in.append(result, in.string(name.substr(at, name.find('.', at + 1) - at)));
  return result;
}
Ref path_joinpath(I& in, Ref self, const A& a) {
  A all(in.arena(), {self});
  all.positional.insert(all.positional.end(), a.positional.begin(), a.positional.end());
  return path_new(in, nullptr, all);
}
Ref path_resolve(I& in, Ref self, const A&) {
  const auto path = text_of(self) ? in.absolute(*text_of(self)) : std::nullopt;
  return path ? in.path(in.tree().real_path(*path).value_or(normal(*path))) : in.opaque();
}
Ref path_absolute(I& in, Ref self, const A&) {
  const auto path = text_of(self) ? in.absolute(*text_of(self)) : std::nullopt;
  return path ? in.path(*path) : in.opaque();
}
Ref path_write(I& in, Ref self, const A&) {
  if (const std::string_view* path = text_of(self)) in.note_written(*path);
  return in.opaque();
}
Ref path_cwd(I& in, Ref, const A&) {
  return in.working_directory ? in.path(*in.working_directory) : in.opaque();
}
Ref path_self(I&, Ref self, const A&) {
  return self;
}
// Without a user who asks, only this is known: what is not there may not be entered, what is there
// exists, and the home is the user's own.
Ref os_access(I& in, Ref, const A& a) {
  const std::string_view* path = text_of(a.get(0));
  const Int* mode = as<Int>(a.get(1), Type::kInt);
  const auto exists = path ? check_file(in, *path, 'e') : std::nullopt;
  if (!exists || (*exists && !mode)) return in.opaque();
  if (!*exists || mode->value == F_OK) return in.boolean(*exists);
  in.observe(in.environment(), in.constant("HOME"));
  const std::string_view* home = text_of(I::dict_get(in.environment(), "HOME"));
  const bool is_own = home && home->starts_with('/') && normal(*path) == normal(*home);
  return is_own ? in.boolean(true) : in.opaque();
}
// With the user's home for `~`, as far as HOME tells it; another user's is not known.
Ref path_expanduser(I& in, Ref self, const A& a) {
  Ref given = self ? self : a.get(0);
  const std::string_view* path = text_of(given);
  if (!path) return given ? given : in.opaque();
  if (!path->starts_with('~')) return given;
  in.observe(in.environment(), in.constant("HOME"));
  const std::string_view* home = text_of(I::dict_get(in.environment(), "HOME"));
  if (!home || (path->size() > 1 && (*path)[1] != '/')) return in.opaque();
  std::string_view start = *home;
  while (start.ends_with('/')) start.remove_suffix(1);
  const std::string all = fmt::format("{}{}", start, path->substr(1));
  if (given->type == Type::kPath) return in.path(all);
  return in.string(all.empty() ? "/" : all);
}
Ref path_home(I& in, Ref, const A&) {
  return path_expanduser(in, in.path("~"), {});
}

Ref path_as_string(I& in, Ref self, const A&) {
  const std::string_view* path = text_of(self);
  return path ? in.string(*path) : in.opaque();
}
Ref path_iterdir(I& in, Ref self, const A&) {
  if (!text_of(self)) return in.opaque();
  const std::string_view path = *text_of(self);
  if (!path.starts_with("/")) return in.opaque();
  Ref names = names_below(in, path);
  if (!names) return nullptr;
  for (Ref& item : sequence_of(names)->items) item = in.path(joined(path, *text_of(item)));
  return names;
}
template <bool Recursive>
Ref path_glob(I& in, Ref self, const A& a) {
  const std::string_view* pattern = text_of(a.get(0));
  if (!pattern || !text_of(self)) return in.opaque();
  const std::string_view path = *text_of(self);
  if (!path.starts_with("/")) return in.opaque();
  auto* result = in.list({});
  for (const std::string& found :
       glob_in(in, joined(path, fmt::format("{}{}", Recursive ? "**/" : "", *pattern))))
    result->items.push_back(in.path(found));
  return result;
}

Ref version_new(I& in, Ref, const A& a) {
  if (Str* version = as<Str>(a.get(0), Type::kVersion)) return version;
  const std::string_view* text = text_of(a.get(0));
  return text ? static_cast<Ref>(in.make<Str>(Type::kVersion, *text)) : in.opaque();
}

Ref version_part(I& in, Ref self, int part) {
  const Str* version = as<Str>(self, Type::kVersion);
  if (!version) return in.opaque();
  const std::string_view text = version->text;
  size_t at = 0;
  for (int i = 0; i < part && at != std::string::npos; i++) {
    at = text.find('.', at);
    if (at != std::string::npos) at++;
  }
  if (at == std::string::npos) return in.integer(0);
  return in.integer(std::strtoll(std::string(text.substr(at)).c_str(), nullptr, 10));
}
Ref version_major(I& in, Ref self, const A&) {
  return version_part(in, self, 0);
}
Ref version_minor(I& in, Ref self, const A&) {
  return version_part(in, self, 1);
}
Ref version_micro(I& in, Ref self, const A&) {
  return version_part(in, self, 2);
}
Ref version_release(I& in, Ref self, const A&) {
  return in.list({version_part(in, self, 0), version_part(in, self, 1), version_part(in, self, 2)},
                 Type::kTuple);
}
Ref version_public(I& in, Ref self, const A&) {
  const Str* version = as<Str>(self, Type::kVersion);
  return version ? in.string(version->text.substr(0, version->text.find('+'))) : in.opaque();
}

constexpr ModelRow kRows[] = {
    {"sys.setdlopenflags", sys_setdlopenflags},
    {"sys.getdlopenflags", sys_getdlopenflags},
    {"sys.exit", sys_exit},
    {"builtins.exit", sys_exit},
    {"builtins.quit", sys_exit},
    {"posix._exit", os_exit},
    {"posix.abort", os_abort},
    {"sys.intern", sys_intern},
    {"sys.gettrace", returns_none},
    {"sys.settrace", returns_none},
    {"sys.audit", returns_none},
    {"sys.is_finalizing", returns_false},
    {"sys._getframe", sys_getframe},
    {"Frame.f_back()", frame_back},
    {"Frame.f_locals()", frame_locals},
    {"inspect.getfile", inspect_getfile},
    {"inspect.getsourcefile", inspect_getfile},
    {"inspect.getsource", inspect_getsource},
    {"inspect.getsourcelines", returns_opaque},
    {"inspect.findsource", returns_opaque},
    // What these make out is not known in the end, and thousands of calls take long to get there.
    {"inspect.signature", returns_opaque},
    {"inspect.getfullargspec", returns_opaque},
    {"re._compile", returns_opaque},
    {"posix.uname", os_uname},
    {"posix.fspath", returns_first},
    {"posix.listdir", os_listdir},
    {"site.addpackage", site_addpackage},
    {"posix.mkdir", make_path<0>},
    {"os.mkdir", make_path<0>},
    {"os.makedirs", make_path<0>},
    {"posix.symlink", make_path<1>},
    {"os.symlink", make_path<1>},
    {"os.link", make_path<1>},
    {"os.rename", make_path<1>},
    {"os.replace", make_path<1>},
    {"shutil.copy", copy_file},
    {"shutil.copy2", copy_file},
    {"shutil.copyfile", copy_file},
    {"shutil.copytree", make_path<1>},
    {"shutil.move", make_path<1>},
    {"shutil.unpack_archive", unpack<1>},
    {"tarfile.open", tar_open},
    {"tarfile.TarFile.extract", unpack<1>},
    {"tarfile.TarFile.extractall", unpack<0>},
    {"zipfile.ZipFile.extract", unpack<1>},
    {"zipfile.ZipFile.extractall", unpack<0>},
    {"Path.mkdir", path_make},
    {"Path.symlink_to", path_make},
    {"Path.hardlink_to", path_make},
    {"Path.rename", make_path<0>},
    {"Path.replace", make_path<0>},
    {"posix.system", start_process},
    {"os.system", start_process},
    {"_posixsubprocess.fork_exec", fork_exec},
    {"posix.posix_spawn", start_process},
    {"posix.getcwd", os_getcwd},
    {"os.getcwd", os_getcwd},
    {"posix.chdir", os_chdir},
    {"os.chdir", os_chdir},
    {"posix.stat", look_at_file},
    {"posix.scandir", look_at_file},
    {"os.stat", look_at_file},
    {"posix.lstat", look_at_file},
    {"os.lstat", look_at_file},
    {"posix.remove", look_at_file},
    {"os.remove", look_at_file},
    {"posix.unlink", look_at_file},
    {"os.unlink", look_at_file},
    {"posix.access", os_access},
    {"os.access", os_access},
    {"os.fspath", returns_first},
    {"os.getenv", os_getenv},
    {"os.putenv", os_putenv},
    {"os.listdir", os_listdir},
    {"posixpath.join", path_join},
    {"posixpath.dirname", path_dirname},
    {"posixpath.basename", path_basename},
    {"posixpath.split", path_split},
    {"posixpath.splitext", path_splitext},
    {"posixpath.abspath", path_abspath},
    {"posixpath.normpath", path_normpath},
    {"posixpath.realpath", path_realpath},
    {"posixpath.isabs", path_isabs},
    {"posixpath.lexists", path_check<'e'>},
    {"posixpath.expanduser", path_expanduser},
    {"genericpath.exists", path_check<'e'>},
    {"genericpath.isfile", path_check<'f'>},
    {"genericpath.isdir", path_check<'d'>},
    {"posixpath.exists", path_check<'e'>},
    {"posixpath.isfile", path_check<'f'>},
    {"posixpath.isdir", path_check<'d'>},
    {"glob.glob", glob_glob},
    {"glob.iglob", glob_glob},
    {"platform.system", platform_system},
    {"platform.machine", platform_machine},
    {"platform.processor", platform_machine},
    {"platform.python_implementation", platform_implementation},
    {"platform.libc_ver", platform_libc_ver},
    {"platform.python_version", platform_version},
    {"platform.python_version_tuple", platform_version_tuple},
    {"Path.__new__", path_new},
    {"Path.parent()", path_parent},
    {"Path.parents()", path_parents},
    {"Path.name()", path_name},
    {"Path.stem()", path_stem},
    {"Path.suffix()", path_suffix},
    {"Path.suffixes()", path_suffixes},
    {"Path.with_suffix", path_with_suffix},
    {"Path.with_name", path_with_name},
    {"Path.with_stem", path_with_stem},
    {"Path.write_text", path_write},
    {"Path.write_bytes", path_write},
    {"Path.touch", path_write},
    {"Path.read_bytes", look_at_file},
    {"Path.stat", look_at_file},
    {"Path.lstat", look_at_file},
    {"Path.joinpath", path_joinpath},
    {"Path.resolve", path_resolve},
    {"Path.absolute", path_absolute},
    {"pathlib.Path.cwd", path_cwd},
    {"pathlib.Path.home", path_home},
    {"Path.__enter__", path_self},
    {"Path.__exit__", returns_none},
    {"Path.expanduser", path_expanduser},
    {"Path.is_absolute", path_is_absolute},
    {"Path.as_posix", path_as_string},
    {"Path.__str__", path_as_string},
    {"Path.__fspath__", path_as_string},
    {"Path.exists", path_check<'e'>},
    {"Path.is_file", path_check<'f'>},
    {"Path.is_dir", path_check<'d'>},
    {"Path.iterdir", path_iterdir},
    {"Path.glob", path_glob<false>},
    {"Path.rglob", path_glob<true>},
    {"pathlib.Path", path_new},
    {"pathlib.PosixPath", path_new},
    {"pathlib.PurePath", path_new},
    {"pathlib.PurePosixPath", path_new},
    {"distutils.version.LooseVersion", version_new},
    {"distutils.version.StrictVersion", version_new},
    {"packaging.version.Version", version_new},
    {"packaging.version.parse", version_new},
    // Copies of it that packages carry.
    {"pandas.util.version.Version", version_new},
    {"pandas.util.version.parse", version_new},
    {"scipy._lib._pep440.Version", version_new},
    {"scipy._lib._pep440.parse", version_new},
    {"sklearn.externals._packaging.version.Version", version_new},
    {"sklearn.externals._packaging.version.parse", version_new},
    {"Version.major()", version_major},
    {"Version.minor()", version_minor},
    {"Version.micro()", version_micro},
    {"Version.release()", version_release},
    {"Version.public()", version_public},
    {"Version.base_version()", version_public},
};

}  // namespace

bool refuses_missing(Interpreter& in, const std::string_view* name) {
  if (!name || !in.expects("FileNotFoundError") || in.may_be_made(*name) ||
      check_file(in, *name, 'e') != std::optional(false))
    return false;
  in.raise("FileNotFoundError", fmt::format("[Errno 2] No such file or directory: '{}'", *name));
  return true;
}

std::span<const ModelRow> system_models() {
  return kRows;
}

}  // namespace cohabit::python
