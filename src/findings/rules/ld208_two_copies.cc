// Libraries that keep a state of the whole process, of which two copies know nothing of each other.
// This is the one rule of processes that goes by names: nothing in the files says that a library
// wants to be alone.
//
// Not listed: GNU's OpenMP runtime. Wheels bring copies of it under names of their own, several in
// every environment; they coexist, at the price of more threads than processors.
#include <fmt/format.h>

#include <map>

#include "findings/rules/rules.h"
#include "findings/words.h"

namespace cohabit::rules {
namespace {

using sim::ObjectId;

struct Single {
  std::string_view stems[3];  // "libx" is libx.so, libx.so.2 and libx-0a1b2c3d.so.2
  std::string_view what;
  Severity severity;
  std::string_view matters;
};

constexpr Single kSingles[] = {
    {{"libiomp5", "libomp", "libomp5"},
     "LLVM's OpenMP runtime",
     Severity::kWarning,
     "the second to start a parallel region ends the process (OMP: Error #15), unless "
     "KMP_DUPLICATE_LIB_OK is set"},
    {{"libcudnn", "", ""},
     "cuDNN",
     Severity::kWarning,
     "each opens its parts by name, and may get those of the other"},
    {{"libcudart", "", ""},
     "the CUDA runtime",
     Severity::kNote,
     "streams and the current device are shared, what is set up once is not"},
};

bool is_called(std::string_view file, std::string_view stem) {
  if (stem.empty() || !file.starts_with(stem)) return false;
  const std::string_view rest = file.substr(stem.size());
  return rest.starts_with(".so") || (rest.starts_with('-') && rest.find(".so") != rest.npos);
}

// "12" of libcudart.so.12 and libcudart-0a1b2c3d.so.12.4: copies of different majors have different
// symbols, and are meant to coexist.
std::string major_of(std::string_view file) {
  const size_t at = file.find(".so.");
  if (at == file.npos) return "";
  const size_t end = file.find('.', at + 4);
  return std::string(file.substr(at + 4, end == file.npos ? end : end - at - 4));
}

std::vector<Finding> check(const Case& examined) {
  const ProcessView& process = examined.process;
  std::vector<Finding> findings;
  for (const Single& single : kSingles) {
    std::map<std::string, std::vector<ObjectId>> copies;  // by major
    for (ObjectId id = 0; id < process.object_count(); id++) {
      if (!process.counts(id)) continue;
      const std::string path = process.image(id).path;
      const std::string file = path.substr(path.rfind('/') + 1);
      const bool is_one = is_called(file, single.stems[0]) || is_called(file, single.stems[1]) ||
                          is_called(file, single.stems[2]);
      const bool has_major = single.stems[1].empty();
      if (is_one) copies[has_major ? major_of(file) : ""].push_back(id);
    }
    for (const auto& [major, objects] : copies) {
      // Sorted: who comes first is another thing in each order, and the cause is one.
      std::map<std::string, ObjectId> files;
      for (const ObjectId id : objects) files.try_emplace(process.image(id).path, id);
      if (files.size() < 2) continue;
      Finding finding;
      finding.severity = single.severity;
      finding.headline =
          fmt::format("{} is there {} times{}", single.what, files.size(), when_imported(examined));
      for (const auto& [path, id] : files) {
        finding.libraries.push_back(library_of(process, id));
        finding.evidence.push_back(fact("opened", "a copy of it is", path_of(process, id)));
      }
      finding.evidence.push_back(fact("place", std::string(single.matters)));
      finding.help.push_back(
          {"take builds that share one copy, or keep them in processes of their own", "",
           Safety::kManual});
      findings.push_back(std::move(finding));
    }
  }
  return findings;
}

}  // namespace

const Rule kLd208 = {
    "LD208",
    "two-copies",
    Severity::kWarning,
    "A library that should be there once is loaded from two files.",
    "  Two files of LLVM's OpenMP runtime (libiomp5, libomp), of cuDNN or of the CUDA runtime of "
    "one "
    "major in\n"
    "  one process, by their names.",
    "  LLVM's OpenMP runtime ends the process; two copies of cuDNN mix their parts; two CUDA "
    "runtimes "
    "know\n"
    "  nothing of each other's settings.",
    "  `OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.`",
    "  Take builds that use the same copy.",
    "  Copies that are linked statically are not seen. GNU's libgomp is not counted: its copies "
    "coexist.",
    check,
};

}  // namespace cohabit::rules
