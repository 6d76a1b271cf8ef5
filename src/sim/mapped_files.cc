#include "sim/mapped_files.h"

namespace cohabit::sim {

std::vector<std::string_view> mapped_files(const Simulation& simulation) {
  std::vector<std::string_view> files;
  for (const Object& object : simulation.objects()) {
    files.push_back(object.name);
    if (object.image != kNone) files.push_back(simulation.images()[object.image].real_path);
  }
  return files;
}

}  // namespace cohabit::sim
