// Metadata of distributions from any bytes: METADATA, RECORD, requires.txt, direct_url.json, and
// what is made of the requirements in them.
#include <cstddef>
#include <cstdint>

#include "facts/python/distributions.h"
#include "facts/python/requirement.h"
#include "facts/python/wheel_metadata.h"

using namespace cohabit;

namespace {

void look_at(const std::string& requirement) {
  MarkerEnvironment environment;
  environment.python_version = "3.11";
  environment.python_full_version = "3.11.7";
  const auto version = PythonVersion::parse("2.0.post1+cu124");
  const auto parsed = PackageRequirement::parse(requirement);
  if (!parsed) return;
  (void)parsed->applies(environment, "extra");
  (void)parsed->specifiers.contains(*version);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const MetadataHeaders headers = parse_metadata_headers(text);
  (void)PythonVersion::parse(headers.version);
  (void)VersionSpecifiers::parse(headers.requires_python);
  for (const std::string& requirement : headers.requires_dist) look_at(requirement);
  for (const std::string& requirement : parse_egg_requirements(text)) look_at(requirement);
  for (const RecordRow& row : parse_record(text).rows) (void)normal_name(row.path);
  (void)native_names_of_record(text);
  (void)editable_location(text);
  return 0;
}
