// A bundle of `cohabit capture`, for doctor: the files of another machine, and what was examined
// there.
#pragma once

#include <optional>
#include <string>

#include "base/redaction.h"
#include "base/result.h"
#include "base/scratch.h"
#include "base/touch_log.h"
#include "base/tree.h"
#include "cli/doctor_options.h"
#include "report/report.h"

namespace cohabit {

bool is_bundle(const std::string& word);

class Bundle {
 public:
  explicit Bundle(std::string file) : file_(std::move(file)), scratch_("cohabit-bundle") {}

  // Unpacks it and turns the options into those of the examination that it was made of; what is
  // given for the subject goes before.
  Result<void> open(DoctorOptions& options);
  // Files are looked for in it.
  void prepare(Tree& tree);
  // To be called when nothing of its files is in use: what the examination asked for in vain is
  // unknown, and so is whether an order without findings is sound.
  void add_gaps(report::Report& report) const;
  // Of an examination that could not be made, because the bundle may lack what it needs.
  Error explained(Error error) const;

 private:
  std::string file_;
  ScratchDirectory scratch_;
  std::string directory_;
  std::string question_;       // the command that captures what is asked
  bool lacks_hashes_ = false;  // which are asked for
  TouchLog log_{TouchLog::Of::kBundle};
};

// What of the options and the machine a bundle remembers. `used`: its variables as they may be
// shown.
std::string format_manifest(const DoctorOptions& options, const Surroundings& used,
                            const Redaction& redaction);

}  // namespace cohabit
