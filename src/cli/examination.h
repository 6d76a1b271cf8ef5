// An examination: from what the user asked for to a report. Doctor draws it, capture packs what it
// read.
#pragma once

#include "base/result.h"
#include "base/tree.h"
#include "cli/doctor_options.h"
#include "report/report.h"

namespace cohabit {

// `used`, if given, gets what was taken from the machine besides files.
Result<report::Report> examine(const DoctorOptions& options, const Tree& tree,
                               Surroundings* used = nullptr);

}  // namespace cohabit
