// Opens that failed, and which of them ended the process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "findings/rule.h"

namespace cohabit {

// Many healthy programs probe for libraries and go on without them. A failed open is a finding only
// if the recorded process itself ended with an error, nothing opened the same name later, and it
// was the last one to fail: Python raises on it, unwinds and exits. Several rules share this; each
// takes the messages with its phrase. What a file that is cut short seems to lack is no failure:
// the process dies in it instead (IO901). In the headline {file} is what the loader's message is
// about ("it", or "x.so, which it needs,"), {symbol} the name that is not defined.
std::vector<Finding> failed_opens(const Case& examined, std::string_view phrase,
                                  std::string_view headline, std::string_view help);

// The others, of a process that is not killed: the program went on without what it had asked for.
// An error where the library's distribution requires another version of what is installed than
// there is (torchvision of another torch: its operators are missing as soon as they are used), else
// a warning.
std::vector<Finding> survived_opens(const Case& examined, std::string_view phrase,
                                    std::string_view headline, std::string_view help);

// Where the file should end by its PT_LOAD segments, if whole pages of them are not there: touching
// one raises SIGBUS. The rest of the last page reads as zero. 0: all is there.
uint64_t cut_short(const Image& image);

}  // namespace cohabit
