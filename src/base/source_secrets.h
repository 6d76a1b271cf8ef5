// Secrets that a user wrote into a program: what a literal holds that is given to a name that tells
// of one (`os.environ["HF_TOKEN"] = "..."`, `login(token="...")`, `{"api_key": "..."}`), what a
// text tells of (`"export API_TOKEN=..."`, `"Authorization: Bearer ..."`), comments, and magic
// commands of notebooks (`%env HF_TOKEN=...`). What programs look up, compare or import by stays as
// it is, so that the same follows from the code.
#pragma once

#include <string>
#include <string_view>

namespace cohabit {

// Whether a file of this path, with this text, is a program of the user: Python source or a
// notebook that is neither installed nor of the standard library.
bool is_own_source(std::string_view path, std::string_view text);

// Whether it holds settings of the user: TOML, INI, YAML, JSON, that is not installed.
bool is_settings(std::string_view path);

// As many x stand in the place of each byte of a secret; lines stay.
void hide_source_secrets(std::string& source);

// The same for a text that is no program.
void hide_told_secrets(std::string& text);

// The same for the text of a cell, with its magic commands.
void hide_cell_secrets(std::string& cell);

// The same for the cells of a notebook (JSON), whose outputs are dropped. It has the same size, if
// it is not larger than before; a text that is no notebook stays.
void hide_notebook_secrets(std::string& notebook);

}  // namespace cohabit
