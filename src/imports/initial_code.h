// What the machine code of an extension module gives to Python's import functions while the module
// is initialised.
//
// A string in the file does not tell when its module is imported: psycopg2 asks for ssl in
// PyInit__psycopg and for decimal in a function that nobody has called yet. So the code that
// PyInit_<module> reaches by direct calls is read, and no other; there a name that is loaded into
// an argument in front of a call of PyImport_ImportModule is imported.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "facts/elf/object.h"
#include "imports/cython_names.h"

namespace cohabit::python {

struct InitialCode {
  // False: another machine than x86-64, no PyInit function, no unwind table, or too much code.
  bool known = false;
  // Of a module made by Cython: that its import statements could be read.
  bool statements_known = false;
  // In the order of the code; those of import statements after the others, with dots before them
  // where they are relative. "from a import b" gives "a" and "a.b".
  std::vector<std::string> imported;
  std::vector<std::string> stated;     // of import statements alone
  std::vector<std::string> mentioned;  // other dotted names that the code refers to
};

InitialCode read_initial_code(const elf::Object& object, Bytes file);
// Of a module made by Cython, with the string tables that its file has.
InitialCode read_initial_code(const elf::Object& object, Bytes file,
                              std::vector<StringTable> tables);

}  // namespace cohabit::python
