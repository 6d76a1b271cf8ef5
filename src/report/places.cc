#include "report/places.h"

#include "base/paths.h"

namespace cohabit::report {

Place shown_place(const Finding& finding) {
  constexpr std::string_view kNotebook = ".ipynb";
  Place place = finding.place;
  if (place.file.empty() && !finding.libraries.empty()) place.file = finding.libraries.front().path;
  if (const size_t cell = place.file.find(".ipynb (cell "); cell != std::string::npos)
    place = {place.file.substr(0, cell + kNotebook.size()), 0};
  return place;
}

Place place_for_services(const Finding& finding, const Report& report) {
  Place place = shown_place(finding);
  if (place.file.empty()) place.file = report.own_file;
  return place;
}

std::optional<std::string> path_in_project(const std::string& path, const Report& report) {
  if (!is_below(path, report.directory) || is_below(path, report.environment)) return std::nullopt;
  return path.substr(report.directory.size() + 1);
}

}  // namespace cohabit::report
