// Jupyter's kernel specs: directories with a kernel.json that says how a kernel is started.
//
// Jupyter looks for them in DIRECTORY/kernels/NAME, of the user's data directory, of prefixes
// (PREFIX/share/jupyter) and of the system. NAME is what notebooks store, in lower case.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/variables.h"

namespace cohabit {

struct KernelSpec {
  std::string name;          // of its directory
  std::string display_name;  // what notebooks show
  std::string environment;   // the prefix of the kernel's Python
  bool has_debugger = false;
  std::vector<std::string> command;  // "{connection_file}" stands for a path
};

// The directory of the user's kernels: JUPYTER_DATA_DIR, or XDG_DATA_HOME/jupyter, or
// ~/.local/share/jupyter. With a prefix: below that.
Result<std::string> kernel_directory(const VariableMap& variables, const std::string& prefix);

// As Jupyter takes names: ASCII letters, digits, "-", "." and "_".
bool is_kernel_name(const std::string& name);
// The nearest name to any text; "" where nothing of it can stay.
std::string kernel_name_of(const std::string& text);

// The text of kernel.json. Fails where a path is not UTF-8, which JSON cannot hold.
Result<std::string> format_kernel_spec(const KernelSpec& spec);
// Writes it, and the directories above. A spec of that name that is not ours stays: an error.
Result<void> write_kernel_spec(const std::string& directory, const KernelSpec& spec);
// Those that we have written, by name.
std::vector<KernelSpec> find_kernel_specs(const std::string& directory);
// Removes one that we have written, and nothing else.
Result<void> remove_kernel_spec(const std::string& directory, const std::string& name);

}  // namespace cohabit
