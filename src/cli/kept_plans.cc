#include "cli/kept_plans.h"

#include <algorithm>
#include <vector>

#include "cli/kept_files.h"
#include "imports/plan_bytes.h"

namespace cohabit {
namespace {

constexpr std::string_view kFormat = "cohabit plans 4\n";
constexpr size_t kMostPlans = 32;  // of one environment
constexpr uint64_t kLargestFile = uint64_t{32} << 20;
constexpr uint64_t kLargestCache = uint64_t{128} << 20;  // all files together

void pack_list(Packer& packer, const std::vector<std::string>& list) {
  packer.number(list.size());
  for (const std::string& text : list) packer.text(text);
}

void pack_interpreter(Packer& packer, const Interpreter& python) {
  for (const std::string* text :
       {&python.executable, &python.real_path, &python.prefix, &python.base_prefix,
        &python.implementation, &python.version, &python.user_site, &python.standard_library,
        &python.elf_interpreter, &python.libpython_soname})
    packer.text(*text);
  for (const auto number : {python.major, python.minor, static_cast<int>(python.kind),
                            static_cast<int>(python.system_site_packages), int{python.elf_machine}})
    packer.number(static_cast<uint64_t>(number));
  pack_list(packer, python.module_path);
  pack_list(packer, python.site_directories);
  for (const PthLine& line : python.pth_lines) {
    packer.text(line.file);
    packer.text(line.code);
  }
}

void pack_distribution(Packer& packer, const Distribution& one) {
  for (const std::string* text : {&one.name, &one.version, &one.installer, &one.metadata, &one.site,
                                  &one.editable, &one.requires_python})
    packer.text(*text);
  packer.number((one.is_conda_package ? 1u : 0u) | (one.has_metadata ? 2u : 0u) |
                (one.is_requested ? 4u : 0u));
  for (const auto* list :
       {&one.requires_dist, &one.provides_extra, &one.native_files, &one.owned_packages})
    pack_list(packer, *list);
}

// A shell's own book-keeping: another value at each command.
bool is_of_shell(std::string_view name) {
  return name == "_" || name == "OLDPWD" || name == "SHLVL";
}

bool asks_shell(const python::Plan& plan) {
  return std::any_of(plan.events.begin(), plan.events.end(), [&](const python::PlanEvent& event) {
    return event.kind == python::PlanEvent::kVariable && is_of_shell(plan.sought[event.index]);
  });
}

std::string digest_of(const python::PlanRequest& request) {
  Packer packer;
  pack_list(packer, request.imports);
  for (const std::string* text : {&request.code, &request.code_file, &request.run_module})
    packer.text(*text);
  packer.number(request.directory ? 1 : 0);
  packer.text(request.directory.value_or(""));
  pack_list(packer, request.arguments);
  packer.number(request.assume_gpu ? 1 : 0);
  for (const auto& [name, value] : request.environment) {
    if (is_of_shell(name)) continue;
    packer.text(name);
    packer.text(value);
  }
  return digest_of_text(packer.bytes());
}

}  // namespace

KeptPlans::KeptPlans(std::string file, std::string key)
    : file_(std::move(file)), key_(std::move(key)), start_(WatchedFiles::now()) {
  tree_.set_log(&log_);
}

std::unique_ptr<KeptPlans> KeptPlans::open(const Interpreter& python,
                                           const Distributions& distributions) {
  const std::string path = kept_path("plans", python.prefix);
  if (path.empty()) return nullptr;
  Packer packer;
  pack_ourselves(packer);
  packer.text(Tree().current_directory());
  pack_interpreter(packer, python);
  for (const Distribution& one : distributions.all()) pack_distribution(packer, one);
  const std::string key = digest_of_text(packer.bytes());
  std::unique_ptr<KeptPlans> plans(new KeptPlans(path, key));
  plans->read();
  return plans;
}

// The key, the files, the plans.
void KeptPlans::read() {
  const std::optional<KeptText> kept = read_kept(file_, kFormat, kLargestFile);
  if (!kept) return;
  Unpacker unpacker(kept->text);
  if (unpacker.text() != key_) return;
  WatchedFiles files = WatchedFiles::unpack(unpacker);
  Plans plans;
  for (size_t left = unpacker.count(); left > 0 && !unpacker.failed(); left--) {
    std::string of(unpacker.text());
    plans.emplace(std::move(of), unpacker.text());
  }
  if (!unpacker.is_whole() || !files.is_unchanged()) return;
  files_ = std::move(files);
  plans_ = std::move(plans);
}

std::optional<python::Plan> KeptPlans::find(const python::PlanRequest& request) const {
  const auto known = plans_.find(digest_of(request));
  if (known == plans_.end()) return std::nullopt;
  Unpacker unpacker(known->second);
  python::Plan plan = python::unpack_plan(unpacker);
  if (!unpacker.is_whole()) return std::nullopt;
  return plan;
}

void KeptPlans::add(const python::PlanRequest& request, const python::Plan& plan) {
  if (asks_shell(plan)) return;
  Packer packer;
  python::pack_plan(plan, packer);
  if (plans_.size() >= kMostPlans) plans_.clear();
  plans_[digest_of(request)] = packer.bytes();
  is_new_ = true;
}

void KeptPlans::forget(const python::PlanRequest& request) {
  plans_.erase(digest_of(request));
}

void KeptPlans::begin_saving() {
  if (!is_new_) return;
  wait();
  is_new_ = false;
  writing_ = std::async(std::launch::async | std::launch::deferred,
                        [this, plans = plans_] { write(plans); });
}

void KeptPlans::wait() {
  if (writing_.valid()) writing_.get();
}

void KeptPlans::save() {
  begin_saving();
  wait();
}

void KeptPlans::write(const Plans& plans) const {
  auto files = WatchedFiles::of(log_, start_);
  if (!files || !files->add(files_)) return;
  Packer packer;
  packer.text(key_);
  files->pack(packer);
  packer.number(plans.size());
  std::vector<std::string_view> order;  // the same plans make the same file
  for (const auto& [of, plan] : plans) order.push_back(of);
  std::sort(order.begin(), order.end());
  for (const std::string_view of : order) {
    packer.text(of);
    packer.text(plans.at(std::string(of)));
  }
  replace_kept(file_, kFormat, packer.bytes(), kLargestFile, kLargestCache);
}

}  // namespace cohabit
