// A simulated process, prepared for judging: who is whose dependency, what the language runtimes
// are, and which name a symbol of an object is.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "findings/ownership.h"
#include "sim/simulation.h"

namespace cohabit {

// Which files look like the C++ runtime, as far as that was asked; of one Images.
using CppRuntimes = std::unordered_map<ImageId, bool>;

class ProcessView {
 public:
  // `tracer`: path of a preloaded tracer that is part of the process, or empty. `known`: null, or
  // what was found out for other processes; grows.
  ProcessView(const sim::Simulation& simulation, const Ownership& ownership,
              const std::string& tracer = "", CppRuntimes* known = nullptr);

  const sim::Simulation& simulation() const { return simulation_; }
  const Ownership& ownership() const { return ownership_; }
  uint32_t object_count() const { return static_cast<uint32_t>(simulation_.objects().size()); }
  const sim::Object& object(sim::ObjectId id) const { return simulation_.objects()[id]; }
  const Image& image(sim::ObjectId id) const {
    return simulation_.images()[simulation_.objects()[id].image];
  }

  // Mapped to the end, and part of the examined program: neither the loader, whose few symbols are
  // the C library's business, nor what we ourselves preload.
  bool counts(sim::ObjectId id) const { return counts_[id]; }
  // The object and what its DT_NEEDED entries lead to, breadth first: what its linker saw.
  const std::vector<sim::ObjectId>& closure(sim::ObjectId id) const { return closures_[id]; }
  bool in_closure(sim::ObjectId of, sim::ObjectId what) const {
    return closure_bits_[size_t{of} * object_count() + what];
  }
  // Live objects made of an image.
  const std::vector<sim::ObjectId>& objects_of(ImageId image) const {
    return objects_of_image_[image];
  }
  // The C library's family, the C++ runtime, and what that needs: see docs/design/findings.md.
  bool is_runtime(sim::ObjectId id) const { return runtime_[id]; }
  bool is_cpp_runtime(sim::ObjectId id) const { return cpp_runtime_[id]; }
  bool is_c_library(sim::ObjectId id) const { return c_library_[id]; }

  const Reference& reference(const sim::Binding& binding) const {
    return image(binding.from).references[binding.slot];
  }

 private:
  void find_closures();
  void find_runtimes(CppRuntimes& known);
  void find_c_library();
  bool looks_like_cpp_runtime(sim::ObjectId id) const;

  const sim::Simulation& simulation_;
  const Ownership& ownership_;
  std::vector<bool> counts_;
  std::vector<std::vector<sim::ObjectId>> closures_;
  std::vector<bool> closure_bits_;
  std::vector<std::vector<sim::ObjectId>> objects_of_image_;
  std::vector<bool> runtime_;
  std::vector<bool> cpp_runtime_;
  std::vector<bool> c_library_;
};

}  // namespace cohabit
