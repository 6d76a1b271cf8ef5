// The reports of `cohabit matrix`.
#pragma once

#include <string>
#include <vector>

#include "facts/cuda/releases.h"
#include "findings/compatibility.h"

namespace cohabit::report {

// A command that installs what was chosen, or what is missing to write it.
struct InstallCommand {
  std::string installer;  // "pip", "uv"
  std::string command;    // empty: `missing` says why
  std::string missing;
};

struct ChosenBuild {
  Judged judged;
  std::vector<const cuda::Undeclared*> undeclared;  // what the commands install besides, and why
  std::vector<InstallCommand> commands;
};

// One framework, or one distribution.
struct MatrixPart {
  std::string name;
  std::vector<Judged> builds;       // without --for: all that are shown
  size_t left_out = 0;              // older ones
  std::vector<ChosenBuild> chosen;  // with --for
  Judged miss;                      // with --for, where nothing is chosen
};

// Two frameworks, with the rows of both orders.
struct MatrixPair {
  std::string first, second;
  std::vector<cuda::SimulatedPair> rows;
  size_t left_out = 0;  // that do not go with the machine
  std::vector<std::string>
      sound;  // requirements of the newest pair with a sound order, in that order
  std::vector<const cuda::Undeclared*> undeclared;
  std::vector<InstallCommand> commands;  // that install it; only with --for
};

struct Matrix {
  bool is_for_machine = false;
  WantedMachine wanted;
  std::vector<MatrixPart> parts;
  std::vector<MatrixPair> pairs;
};

std::string table(const Matrix& matrix, bool colour);
// data/schema/matrix.schema.json describes it.
std::string json(const Matrix& matrix);

}  // namespace cohabit::report
