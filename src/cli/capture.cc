// cohabit capture: examine as doctor does, and pack what was read.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "actions/capture.h"
#include "base/paths.h"
#include "base/read_file.h"
#include "base/say.h"
#include "base/source_secrets.h"
#include "base/variables.h"
#include "cli/arguments.h"
#include "cli/bundle.h"
#include "cli/commands.h"
#include "cli/configuration.h"
#include "cli/doctor_options.h"
#include "cli/examination.h"
#include "cli/gpu_options.h"
#include "findings/environment.h"

namespace cohabit {
namespace {

// The project's settings belong to its report.
Result<std::vector<BundleText>> configuration_text(const Redaction& redaction, Surroundings& used) {
  std::vector<BundleText> texts;
  const auto configuration = read_configuration("");
  if (!configuration) return tl::unexpected<Error>(configuration.error());
  used.configuration_file = configuration->file;
  if (configuration->file.empty()) return texts;
  auto text = read_file(configuration->file);
  if (!text) return tl::unexpected<Error>(text.error());
  hide_told_secrets(*text);
  redaction.apply(*text);
  texts.push_back({fmt::format("{}/{}", kBundleConfiguration, last_part(configuration->file)),
                   std::move(*text)});
  return texts;
}

Result<int> capture(const DoctorOptions& options, const std::string& out) {
  if (!is_bundle(out))
    return fail(fmt::format("a bundle's name ends in .tar.zst; --out cannot be {}", out));
  TouchLog log(TouchLog::Of::kMachine);
  Tree tree;
  tree.set_log(&log);
  Surroundings used;
  const auto report = examine(options, tree, &used);
  if (!report) return tl::unexpected<Error>(report.error());
  const auto own = own_variables("");
  const Redaction redaction(own, options.arguments);
  used.variables = redaction.applied(std::move(used.variables));
  auto texts = configuration_text(redaction, used);
  if (!texts) return tl::unexpected<Error>(texts.error());
  texts->insert(texts->begin(), {kBundleManifest, format_manifest(options, used, redaction)});
  const auto size = write_bundle(
      {log, redaction, used.directory, variable_of(own, "HOME"), std::move(*texts), out});
  if (!size) return tl::unexpected<Error>(size.error());
  say("{}: {:.1f} MB, from an examination with {}\n"
      "it holds Python source, metadata and headers of what was examined, with the paths of "
      "this machine; secrets in variables and addresses are replaced. See what is in it: "
      "tar --zstd -tvf {}\n",
      out, static_cast<double>(*size) / 1e6, count_of(report->findings.size(), "finding"), out);
  return 0;
}

}  // namespace

void add_capture_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DoctorOptions>();
  auto out = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "capture", "Pack what doctor reads, so that it says the same on another machine");
  command->footer("`cohabit doctor FILE` examines the bundle. Exit code: 0, or 2 Cohabit failed.");
  add_subject_options(*command, *options);
  add_gpu_options(*command, options->host);
  command->add_option("--out", *out, "The bundle to write: NAME.tar.zst")->required();
  command->callback(
      [options, out, &exit_code] { exit_code = exit_code_of(capture(*options, *out)); });
}

}  // namespace cohabit
