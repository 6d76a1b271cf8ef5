// A Jupyter notebook (.ipynb, nbformat 3 and 4) as one Python text: its code cells in order.
//
// Cells are IPython, not Python: lines that start with % or ! are commands of the shell around it.
// What they do is not known, so they are left out, and noted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "imports/plan.h"

namespace cohabit::python {

struct Notebook {
  struct Cell {
    int number = 0;           // as counted from 1 over all cells, text cells included
    uint32_t first_line = 0;  // of `code`
  };
  std::string code;
  std::vector<Cell> cells;         // those with code
  std::vector<Undecided> skipped;  // what was left out; its lines are of `code`
};

// `name` is for messages.
Result<Notebook> read_notebook(std::string_view text, const std::string& name);

// Turns lines of the code into places that a reader of the notebook finds: "x.ipynb (cell 3)" and
// the line in that cell. `name` is the code_file of the plan.
void name_cells(const Notebook& notebook, const std::string& name, Plan& plan);

}  // namespace cohabit::python
