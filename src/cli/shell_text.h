// Which Python the text of a shell, or a makefile, starts: read, not run.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/tree.h"

namespace cohabit {

// The interpreter (path) that the text names first: a path to one, or that of an environment which
// it activates (`source DIR/bin/activate`, `conda activate NAME`, PATH=DIR/bin:...); else what a
// bare "python" is. Variables that the text itself sets, and those of this process, are put in;
// relative paths are tried in `directory` (where the text lies), in the current one, and behind
// each `cd`. Files that it sources, and scripts of a shell that it names, are read too.
std::optional<std::string> python_in_shell_text(const Tree& tree, const std::string& text,
                                                const std::string& directory);

bool is_conda(std::string_view command);                    // or mamba, micromamba
bool chooses_conda_environment(const std::string& option);  // -n and -p of `conda run`

// The environment (a directory) of conda that a command or a text chooses by name or path.
std::optional<std::string> conda_environment(const Tree& tree, const std::string& name);

// The path of the interpreter, and of the file, of a word of a command: what a shell would start.
struct FoundWord {
  std::string interpreter, file;
};
std::optional<FoundWord> interpreter_of_word(const Tree& tree, const std::string& word);

// A text file of at most 256 KiB; none where it is no plain file (what comes out of a pipe is the
// command's to read), or holds a zero byte.
std::optional<std::string> text_of_script(const Tree& tree, const std::string& path);

}  // namespace cohabit
