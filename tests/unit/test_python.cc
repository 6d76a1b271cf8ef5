// Expected values come from Python itself where the machine has one (python3 -m venv, sys, site,
// importlib.metadata); the rest are made-up environments, one for each kind of tool.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "facts/python/distributions.h"
#include "facts/python/interpreter.h"
#include "temp_tree.h"

using namespace cohabit;

namespace {

using Strings = std::vector<std::string>;

void put(std::string& bytes, uint64_t value, int size) {
  for (int i = 0; i < size; i++) bytes += static_cast<char>(value >> (8 * i));
}

// A program for x86-64 that needs one library (or none), as small as our ELF reader takes it.
std::string program(const std::string& needed = "") {
  std::string bytes =
      "\x7f"
      "ELF\2\1\1";
  bytes.resize(16);
  put(bytes, 3, 2);  // ET_DYN
  put(bytes, 62, 2);
  put(bytes, 1, 4);
  put(bytes, 0, 8);
  put(bytes, 64, 8);  // program headers
  put(bytes, 0, 8);
  put(bytes, 0, 4);
  put(bytes, 64, 2);
  put(bytes, 56, 2);
  put(bytes, 2, 2);
  put(bytes, 64, 2);
  put(bytes, 0, 4);
  const uint64_t dynamic = 64 + 2 * 56;
  const uint64_t strings = dynamic + 4 * 16;
  const uint64_t size = strings + needed.size() + 2;
  const auto segment = [&](uint32_t type, uint64_t offset, uint64_t length) {
    put(bytes, type, 4);
    put(bytes, 4, 4);
    for (int i = 0; i < 3; i++) put(bytes, offset, 8);
    for (int i = 0; i < 2; i++) put(bytes, length, 8);
    put(bytes, 8, 8);
  };
  segment(1, 0, size);
  segment(2, dynamic, 4 * 16);
  const uint64_t entries[] = {
      needed.empty() ? 0x6ffffef5U : 1U, 1, 5, strings, 10, needed.size() + 2, 0, 0};
  for (const uint64_t word : entries) put(bytes, word, 8);
  return bytes + '\0' + needed + '\0';
}

PythonVariables no_variables() {
  return {};
}

// A base installation below `prefix` with python3.11.
void install_python(const TempTree& temp, const std::string& prefix) {
  temp.file(prefix + "/bin/python3.11", program("libpython3.11.so.1.0"));
  temp.link(prefix + "/bin/python3", "python3.11");
  temp.file(prefix + "/lib/python3.11/os.py");
  temp.directory(prefix + "/lib/python3.11/site-packages");
}

void make_venv(const TempTree& temp, const std::string& venv, const std::string& base,
               const std::string& configuration) {
  temp.link(venv + "/bin/python", temp / (base + "/bin/python3.11"));
  temp.file(venv + "/pyvenv.cfg", "home = " + temp / (base + "/bin") + "\n" + configuration);
  temp.directory(venv + "/lib/python3.11/site-packages");
  temp.link(venv + "/lib64", "lib");
}

std::string error_of(const Result<Interpreter>& result) {
  return result ? "" : result.error().message;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void install(const TempTree& temp, const std::string& directory, const std::string& name,
             const std::string& version, const std::string& record) {
  temp.file(directory + "/METADATA", "Metadata-Version: 2.1\nname: " + name + "\nVersion: " +
                                         version + "\n\nName: not this\nVersion: 0\n");
  temp.file(directory + "/RECORD", record);
  temp.file(directory + "/INSTALLER", "uv\n");
}

Strings names_of(const std::vector<const Distribution*>& owners) {
  Strings names;
  for (const Distribution* owner : owners) names.push_back(owner->name + " " + owner->version);
  return names;
}

}  // namespace

TEST_CASE("python: a real venv, as its own interpreter describes it") {
  const TempTree temp;
  output_of("python3 -m venv --without-pip " + temp / "env");
  const std::string ask = R"(import json, os, site, sys; print(json.dumps({
    'executable': sys.executable, 'prefix': sys.prefix, 'base_prefix': sys.base_prefix,
    'version': '%d.%d' % sys.version_info[:2], 'implementation': sys.implementation.name,
    'sites': [p for p in sys.path if 'packages' in p and os.path.isdir(p)],
    'shared': any('libpython' in line for line in open('/proc/self/maps'))})))";
  const std::string answer = output_of(temp / "env/bin/python -c \"" + ask + "\"");
  if (answer.empty()) {
    MESSAGE("skipped: no python3 that can make a venv");
    return;
  }
  const nlohmann::json real = nlohmann::json::parse(answer);
  for (const char* named : {"env", "env/", "env/bin", "env/bin/python", "env/./bin//python"}) {
    CAPTURE(named);
    const Result<Interpreter> found = find_interpreter(Tree(), temp / named, no_variables());
    REQUIRE_MESSAGE(found, error_of(found));
    CHECK(found->executable == real["executable"].get<std::string>());
    CHECK(found->prefix == real["prefix"].get<std::string>());
    CHECK(found->base_prefix == real["base_prefix"].get<std::string>());
    CHECK(found->version.starts_with(std::string(real["version"])));
    CHECK(found->site_directories == real["sites"].get<Strings>());
    CHECK(found->has_shared_libpython() == real["shared"].get<bool>());
    CHECK(found->implementation == "CPython");
    CHECK(found->kind == EnvironmentKind::kVenv);
    CHECK(found->problems == Strings{});
    CHECK(found->elf_machine != 0);
  }
}

TEST_CASE("python: this machine's distributions, as importlib.metadata lists them") {
  const std::string ask = R"(
import json, sys
import importlib.metadata as m
seen = []
for d in m.distributions():
    if d.metadata['Name']: seen.append([d.metadata['Name'], d.version, (d.read_text('INSTALLER') or '').strip()])
print(json.dumps({'executable': sys.executable, 'seen': sorted(seen)})))";
  const std::string answer = output_of("cd / && env -u PYTHONPATH python3 -c \"" + ask + "\"");
  if (answer.empty()) {
    MESSAGE("skipped: no python3 of at least 3.8");
    return;
  }
  const nlohmann::json real = nlohmann::json::parse(answer);
  PythonVariables variables = PythonVariables::from_environment();
  variables.python_path.clear();
  const auto found = find_interpreter(Tree(), real["executable"], variables);
  REQUIRE_MESSAGE(found, error_of(found));
  std::vector<Strings> ours;
  const Distributions installed = Distributions::read(Tree(), *found);
  for (const Distribution& one : installed.all())
    if (!one.is_conda_package) ours.push_back({one.name, one.version, one.installer});
  std::sort(ours.begin(), ours.end());
  CHECK(ours == real["seen"].get<std::vector<Strings>>());
}

TEST_CASE("python: uv, virtualenv and conda environments") {
  const TempTree temp;
  install_python(temp, "base");
  make_venv(temp, "uv", "base",
            "implementation = CPython\nuv = 0.9\nversion_info = 3.11.7\n"
            "include-system-site-packages = false\n");
  const std::string user_site = "home/.local/lib/python3.11/site-packages";
  temp.directory(user_site);
  PythonVariables variables;
  variables.home = temp / "home";
  auto found = find_interpreter(Tree(), temp / "uv", variables);
  REQUIRE_MESSAGE(found, error_of(found));
  CHECK(found->user_site.empty());  // a venv does not see it
  CHECK(found->version == "3.11.7");
  CHECK(found->prefix == temp / "uv");
  CHECK(found->base_prefix == temp / "base");
  CHECK(found->real_path == temp / "base/bin/python3.11");
  CHECK(found->libpython_soname == "libpython3.11.so.1.0");
  CHECK(found->site_directories == Strings{temp / "uv/lib/python3.11/site-packages"});

  make_venv(temp, "virtualenv", "base",
            "implementation = CPython\nversion_info = 3.11.7.final.0\nvirtualenv = 20.25.0\n"
            "include-system-site-packages = true\n");
  found = find_interpreter(Tree(), temp / "virtualenv/bin/python", variables);
  REQUIRE_MESSAGE(found, error_of(found));
  CHECK(found->version == "3.11.7");
  CHECK(found->user_site == temp / user_site);
  CHECK(found->site_directories == Strings{temp / "virtualenv/lib/python3.11/site-packages",
                                           temp / user_site,
                                           temp / "base/lib/python3.11/site-packages"});

  // PYTHONUSERBASE stands in place of ~/.local, also where there is no home.
  const std::string other_site = "other/lib/python3.11/site-packages";
  temp.directory(other_site);
  const PythonVariables elsewhere = PythonVariables::of({{"PYTHONUSERBASE", temp / "other"}});
  found = find_interpreter(Tree(), temp / "virtualenv/bin/python", elsewhere);
  REQUIRE_MESSAGE(found, error_of(found));
  CHECK(found->user_site == temp / other_site);

  install_python(temp, "conda");
  temp.file("conda/bin/python3.11", program());  // conda links it statically
  temp.file("conda/conda-meta/python-3.11.9-h955ad1f_0.json", "{}");
  found = find_interpreter(Tree(), temp / "conda", no_variables());
  REQUIRE_MESSAGE(found, error_of(found));
  CHECK(found->kind == EnvironmentKind::kConda);
  CHECK(found->version == "3.11.9");
  CHECK(found->prefix == temp / "conda");
  CHECK(found->base_prefix == temp / "conda");
  CHECK_FALSE(found->has_shared_libpython());
}

TEST_CASE("python: which environment is meant when none is named") {
  const TempTree temp;
  install_python(temp, "base");
  install_python(temp, "conda");
  make_venv(temp, "venv", "base", "version = 3.11.7\n");
  PythonVariables variables;
  CHECK(has(error_of(find_interpreter(Tree(), "", variables)), "none is active"));
  variables.path = "/nowhere:" + temp / "base/bin";
  CHECK(find_interpreter(Tree(), "", variables)->executable == temp / "base/bin/python3");
  variables.conda_prefix = temp / "conda";
  CHECK(find_interpreter(Tree(), "", variables)->prefix == temp / "conda");
  variables.virtual_env = temp / "venv";
  CHECK(find_interpreter(Tree(), "", variables)->prefix == temp / "venv");
}

TEST_CASE("python: scripts and shims lead to their interpreter") {
  const TempTree temp;
  install_python(temp, "base");
  make_venv(temp, "venv", "base", "version = 3.11.7\n");
  temp.file("venv/bin/torchrun", "#!" + temp / "venv/bin/python" + "\nimport sys\n");
  temp.file("venv/bin/long",
            "#!/bin/sh\n'''exec' \"" + temp / "venv/bin/python" + "\" \"$0\"\n'''");
  temp.file("venv/bin/env", "#!/usr/bin/env python3\n");
  temp.file("pyenv/shims/python", "#!/usr/bin/env bash\nexec pyenv\n");
  temp.file("pyenv/version", "9.9.9\n");
  install_python(temp, "pyenv/versions/9.9.9");
  PythonVariables variables;
  variables.path = temp / "venv/bin:" + temp / "base/bin";
  for (const char* script : {"torchrun", "long"}) {
    const auto found = find_interpreter(Tree(), temp / "venv/bin/" + script, variables);
    REQUIRE_MESSAGE(found, error_of(found));
    CHECK(found->executable == temp / "venv/bin/python");
  }
  CHECK(find_interpreter(Tree(), temp / "venv/bin/env", variables)->prefix == temp / "base");
  const auto shim = find_interpreter(Tree(), temp / "pyenv/shims/python", variables);
  REQUIRE_MESSAGE(shim, error_of(shim));
  CHECK(shim->prefix == temp / "pyenv/versions/9.9.9");
}

TEST_CASE("python: below another root, Debian's directories") {
  const TempTree temp;
  install_python(temp, "image/usr");
  temp.link("image/bin", "usr/bin");
  temp.directory("image/usr/lib/python3/dist-packages");
  temp.directory("image/usr/local/lib/python3.11/dist-packages");
  temp.directory(
      "image/root"
      "/.local/lib/python3.11/site-packages");
  temp.file("image/usr/local/lib/python3.11/dist-packages/more.pth",
            "# comment\nimport os\n/opt/editable\n\nnot-there\n");
  temp.directory("image/opt/editable");
  temp.link("image/venv/bin/python", "/usr/bin/python3");
  temp.file("image/venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n");
  temp.directory("image/venv/lib/python3.11/site-packages");
  const Tree tree(temp / "image");
  const auto found = find_interpreter(tree, "", PythonVariables::from_environment());
  REQUIRE_MESSAGE(found, error_of(found));
  CHECK(found->executable == "/usr/bin/python3");
  CHECK(found->user_site ==
        "/root"
        "/.local/lib/python3.11/site-packages");
  CHECK(found->site_directories == Strings{"/root"
                                           "/.local/lib/python3.11/site-packages",
                                           "/usr/local/lib/python3.11/dist-packages",
                                           "/opt/editable", "/usr/lib/python3/dist-packages"});
  const auto venv = find_interpreter(tree, "/venv", {});
  REQUIRE_MESSAGE(venv, error_of(venv));
  CHECK(venv->prefix == "/venv");
  CHECK(venv->base_prefix == "/usr");
  CHECK(venv->real_path == "/usr/bin/python3.11");
}

TEST_CASE("python: errors say what was found, where, and what to do") {
  const TempTree temp;
  install_python(temp, "base");
  make_venv(temp, "project/.venv", "base", "version = 3.11.7\n");
  temp.directory("empty");
  temp.link("broken/bin/python", "/nowhere/bin/python3.11");
  temp.file("broken/pyvenv.cfg", "home = /nowhere/bin\nversion = 3.11.7\n");
  temp.file("text", "hello");
  temp.file("script", "#!/bin/sh\n");
  temp.file("program", program());
  temp.file("alone/bin/python", program());
  const auto error = [&](const std::string& name) {
    return error_of(find_interpreter(Tree(), temp / name, no_variables()));
  };
  CHECK(has(error("missing/env"), "nearest directory that exists is " + temp.path()));
  CHECK(has(error("empty"), "without bin/python"));
  CHECK(has(error("project"), temp / "project/.venv"));
  CHECK(has(error("project/.venv/lib/python3.11/site-packages"),
            "lies in the environment " + temp / "project/.venv"));
  CHECK(has(error("broken"), "create the environment again"));
  CHECK(has(error("broken"), "/nowhere/bin/python3.11"));
  CHECK(has(error("text"), "neither a program nor a script"));
  CHECK(has(error("script"), "names no Python interpreter"));
  CHECK(has(error("program"), "neither named python nor linked to libpython"));
  CHECK(has(error("alone"), "no version of Python"));

  make_venv(temp, "moved", "base", "version = 3.11.7\n");
  temp.file("moved/pyvenv.cfg", "home = /nowhere/bin\nversion = 3.11.7\n");
  const auto moved = find_interpreter(Tree(), temp / "moved", no_variables());
  REQUIRE_MESSAGE(moved, error_of(moved));
  CHECK(moved->base_prefix == temp / "base");
  REQUIRE(moved->problems.size() == 1);
  CHECK(has(moved->problems[0], "/nowhere/bin"));
}

// As CPython 3.11.7 does where `python3.12 -m venv` was run over its venv: bin/python stays.
TEST_CASE("python: a venv that was made again with another version") {
  const TempTree temp;
  install_python(temp, "base");
  make_venv(temp, "env", "base", "");
  temp.directory("env/lib/python3.12/site-packages");
  temp.file("other/lib/python3.12/os.py");
  temp.file("other/bin/python3.12", program("libpython3.12.so.1.0"));
  temp.file("env/pyvenv.cfg", "home = " + temp / "other/bin" + "\nversion = 3.12.1\n");
  const auto found = find_interpreter(Tree(), temp / "env", no_variables());
  REQUIRE_MESSAGE(found, error_of(found));
  CHECK(found->major == 3);
  CHECK(found->minor == 11);
  CHECK(found->base_prefix == temp / "base");
  CHECK(found->prefix == temp / "env");
  REQUIRE(found->problems.size() == 1);
  CHECK(has(found->problems[0], "says version 3.12.1"));
}

TEST_CASE("python: who owns a native library") {
  const TempTree temp;
  const std::string site = "env/lib/python3.11/site-packages";
  install(temp, site + "/torch-2.6.0.dist-info", "torch", "2.6.0+cu124",
          "torch/lib/libtorch.so,sha256=x,1\r\ntorch/_C.cpython-311-x86_64-linux-gnu.so,,\n"
          "torch/x.solution,,\n../../../bin/torchrun,,\n\"torch/odd, \"\"name\"\".so.1\",,\n"
          "../../../lib/libshared.so,,\ntorch/__init__.py,,");
  install(temp, site + "/onnxruntime-1.0.dist-info", "onnxruntime", "1.0", "ort/core.so,,\n");
  install(temp, site + "/onnxruntime_gpu-1.0.dist-info", "onnxruntime-gpu", "1.1",
          "ort/core.so,,\nort/core.so,,\n");
  temp.directory(site + "/nameless-3.dist-info");
  temp.file(site + "/old-1.2-py3.11.egg-info/PKG-INFO", "Name: old\nVersion: 1.2\n");
  temp.file(site + "/old-1.2-py3.11.egg-info/installed-files.txt", "../old/_x.so\nPKG-INFO\n");
  temp.file(site + "/debian-4.egg-info/PKG-INFO", "Name: debian\nVersion: 4\n");
  temp.file(site + "/debian-4.egg-info/top_level.txt", "deb\n");
  temp.file(site + "/single-5.egg-info", "Name: single\nVersion: 5\n");
  temp.file(
      "env/conda-meta/libgcc-ng-13.json",
      R"({"files": ["lib/libgcc_s.so.1", "lib/x.txt"], "name": "libgcc-ng", "version": "13.2.0",
               "link": {"files": ["no.so"], "name": "x", "version": "0"}})");
  ;
  temp.file("env/conda-meta/broken.json", R"({"name": "broken", )");
  temp.file(site + "/torch/lib/libtorch.so");
  std::filesystem::create_hard_link(temp / (site + "/torch/lib/libtorch.so"), temp / "hard.so");
  temp.link("link.so", temp / (site + "/torch/lib/libtorch.so"));
  temp.link("env/lib64", "lib");

  const Distributions all = Distributions::read(Tree(), {temp / site}, {temp / "env"});
  const auto owners = [&](const std::string& name) { return names_of(all.owners(temp / name)); };
  const Strings torch = {"torch 2.6.0+cu124"};
  CHECK(owners(site + "/torch/lib/libtorch.so") == torch);
  CHECK(owners(site + "/torch/../torch/./lib//libtorch.so") == torch);
  CHECK(owners("env/lib64/python3.11/site-packages/torch/lib/libtorch.so") == torch);
  CHECK(owners("hard.so") == torch);
  CHECK(owners("link.so") == torch);
  CHECK(owners(site + "/torch/odd, \"name\".so.1") == torch);
  CHECK(owners("env/lib/libshared.so") == torch);
  CHECK(owners(site + "/ort/core.so") == Strings{"onnxruntime 1.0", "onnxruntime-gpu 1.1"});
  CHECK(owners(site + "/old/_x.so") == Strings{"old 1.2"});
  CHECK(owners(site + "/deb/sub/_y.so") == Strings{"debian 4"});
  CHECK(owners(site + "/debx/_y.so").empty());
  CHECK(owners("env/lib/libgcc_s.so.1") == Strings{"libgcc-ng 13.2.0"});
  CHECK(owners("no.so").empty());
  CHECK(all.find("Torch")->native_files.size() == 4);
  CHECK(all.find("ONNXRuntime_GPU")->version == "1.1");
  CHECK(all.find("onnxruntime-gpu")->installer == "uv");
  CHECK(all.find("nameless")->version == "3");
  CHECK(all.find("single")->version == "5");
  CHECK(all.find("libgcc_ng")->is_conda_package);
  CHECK(all.find("nothing") == nullptr);
  CHECK(all.problems().size() == 2);  // no METADATA in nameless, broken.json
}

TEST_CASE("python: what pip has taken away from conda") {
  const TempTree temp;
  const std::string site = "env/lib/python3.11/site-packages";
  const auto record = [&](const std::string& name, const std::string& files) {
    temp.file("env/conda-meta/" + name + "-1.json",
              R"({"name": ")" + name + R"(", "version": "1", "files": [")" + files + R"("]})");
  };
  const std::string place = "lib/python3.11/site-packages/";
  install(temp, site + "/kept-1.dist-info", "kept", "1", "kept/_x.so,,\n");
  record("kept", place + "kept-1.dist-info/METADATA\", \"" + place + "kept/_x.so");
  install(temp, site + "/replaced-2.dist-info", "replaced", "2", "replaced/_x.so,,\n");
  record("replaced", place + "replaced-1.dist-info/METADATA\", \"" + place + "replaced/_x.so");
  record("removed", place + "removed-1.dist-info/METADATA");
  record("library", "lib/libgone.so");  // Python never saw it
  temp.file("env/lib/libstays.so");
  record("partly", place + "other_name-1.dist-info/METADATA\", \"lib/libstays.so");
  record("any-python", "site-packages/any-1.dist-info/METADATA");

  const Distributions all = Distributions::read(Tree(), {temp / site}, {temp / "env"});
  Strings seen;
  for (const Distribution& one : all.all())
    seen.push_back(one.name + " " + one.version + (one.is_conda_package ? " of conda" : ""));
  std::sort(seen.begin(), seen.end());
  CHECK(seen == Strings{"any-python 1 of conda", "kept 1", "kept 1 of conda", "library 1 of conda",
                        "partly 1 of conda", "replaced 2"});
  CHECK(names_of(all.owners(temp / (site + "/replaced/_x.so"))) == Strings{"replaced 2"});
}

TEST_CASE("python: hostile RECORDs") {
  CHECK(native_names_of_record("").empty());
  CHECK(native_names_of_record("\n\n\r\n,,\n").empty());
  CHECK(native_names_of_record("\"").empty());
  CHECK(native_names_of_record("\"a.so") == Strings{"a.so"});
  CHECK(native_names_of_record("\"a\nb.so\",1,2\nc.so,,") == Strings{"a\nb.so", "c.so"});
  CHECK(native_names_of_record("x.py,.so,\ny.so") == Strings{"y.so"});
  CHECK(native_names_of_record(std::string(1 << 20, 'a') + ".so\nb.so\n") == Strings{"b.so"});
  const TempTree temp;
  install(temp, "site/evil-1.dist-info", "evil", "1",
          "../../../../../../../../../../../../../../etc/passwd.so,,\n/abs/x.so,,\n");
  const Distributions all = Distributions::read(Tree(), {temp / "site"}, {});
  CHECK(all.find("evil")->native_files == Strings{"/etc/passwd.so", "/abs/x.so"});
}
