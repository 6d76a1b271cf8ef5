// Running somebody's installer, unchanged: its terminal, input, output and exit status are its own.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cohabit {

// The status is that of wait(). `lock`: a descriptor that the installer inherits, so that the lock
// is held as long as it runs, whatever becomes of us. Signals that are sent to us go to it.
Result<int> run_installer(const std::string& path, const std::vector<std::string>& command,
                          int lock);

}  // namespace cohabit
