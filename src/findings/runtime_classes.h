// Classes of the C++ runtime whose members are spread over two copies.
//
// Static copies of libstdc++ are exported by many frameworks and shared in good health, so counting
// names says nothing: std::thread and std::logic_error are spread in runs that work. A class is
// broken where the two copies are different code and both work on one object: TensorFlow's
// std::random_device::_M_init opens a file, and the system's _M_getval calls a function that it
// takes from a field which that one never wrote.
#pragma once

#include <string_view>
#include <vector>

#include "findings/candidates.h"
#include "findings/captures.h"
#include "findings/families.h"
#include "findings/process_view.h"

namespace cohabit {

class RuntimeClasses {
 public:
  RuntimeClasses(const ProcessView& process, Families& families)
      : process_(process), simulation_(process.simulation()), families_(families) {}

  // The runtime's references to itself (it was first mapped in the scope of another copy), class by
  // class. The machine code is asked: does a member that others enter lead to a member that was
  // captured, while another entered member stayed? (call_paths.h)
  void find_split_in_itself(const std::vector<Candidate>& candidates,
                            std::vector<CaptureGroup>& groups);

  // References of one object to one class, when one copy got some and another the rest. `own` of a
  // group is who got the rest, which need not be in the closure of the consumer: its own copy may
  // have got none.
  void find_split_for_others(const std::vector<Candidate>& candidates,
                             std::vector<CaptureGroup>& groups);

 private:
  struct Scope;
  void collect_members(Scope& scope);
  bool is_other_code(const sim::Binding& binding, sim::ObjectId copy) const;
  bool is_other_code_than_runtimes(const sim::Binding& binding) const;
  void add_split(const Scope& scope, std::vector<CaptureGroup>& groups) const;

  const ProcessView& process_;
  const sim::Simulation& simulation_;
  // Members of one class are of one family, which is known without reading their names again.
  Families& families_;
};

}  // namespace cohabit
