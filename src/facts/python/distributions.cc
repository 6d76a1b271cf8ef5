// An environment of 107 distributions has 29,500 lines of RECORD, of which 600 name native files:
// only lines with ".so" are taken apart.
#include "facts/python/distributions.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/each_place.h"
#include "base/paths.h"
#include "base/text.h"
#include "facts/python/requirement.h"
#include "facts/python/wheel_metadata.h"

namespace cohabit {
namespace {

constexpr size_t kMaxPath = 4096;           // PATH_MAX
constexpr uint64_t kMaxHeader = 256 << 10;  // of METADATA, whose description may follow for long
constexpr uint64_t kMaxSmallFile = 1 << 20;
constexpr size_t kMaxProblems = 32;

// "torch/lib/libtorch.so", "libcublas.so.12", "_C.cpython-311-x86_64-linux-gnu.so"
bool looks_native(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (size_t at = name.find(".so"); at != name.npos; at = name.find(".so", at + 1))
    if (at + 3 == name.size() || name[at + 3] == '.' || name[at + 3] == '-') return true;
  return false;
}

// The text of a file. Most are short, and read: to map and unmap five hundred of them takes longer,
// most of all while another thread is at work, which has to be told.
class FileText {
 public:
  FileText(const Tree& tree, const std::string& path) {
    constexpr uint64_t kShort = 64 << 10;
    const auto status = tree.stat(path);
    if (status && status->is_regular() && status->size > 0 && status->size <= kShort)
      own_ = tree.read_text(path, kShort);
    if (!own_) map_ = tree.map(path);  // which says what is wrong
  }
  explicit operator bool() const { return own_ || map_; }
  std::string_view text() const { return own_ ? std::string_view(*own_) : map_->bytes().text(); }
  const std::string& problem() const { return map_.error().message; }  // where there is no text

 private:
  std::optional<std::string> own_;
  Result<MappedFile> map_ = tl::unexpected<Error>(Error{});
};

template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (!visit(text.substr(begin, end - begin))) return;
    begin = end + 1;
  }
}

void read_headers(std::string_view text, Distribution& distribution) {
  MetadataHeaders headers = parse_metadata_headers(text);
  distribution.has_metadata = !headers.name.empty();
  distribution.name = std::move(headers.name);
  distribution.version = std::move(headers.version);
  distribution.requires_python = std::move(headers.requires_python);
  distribution.requires_dist = std::move(headers.requires_dist);
  distribution.provides_extra = std::move(headers.provides_extra);
}

// "torch-2.6.0.dist-info" -> torch, 2.6.0: for metadata that cannot be read.
void read_directory_name(std::string_view name, Distribution& distribution) {
  name = name.substr(0, name.rfind('.'));
  const size_t dash = name.find('-');
  if (distribution.name.empty()) distribution.name = name.substr(0, dash);
  if (distribution.version.empty() && dash != name.npos) {
    const std::string_view rest = name.substr(dash + 1);
    distribution.version = rest.substr(0, rest.find('-'));  // an egg has "-py3.11" behind
  }
}

// One field of CSV at the start of text; moves text behind it. Quoted ones may hold anything.
std::string take_field(std::string_view& text) {
  std::string field;
  if (!text.starts_with('"')) {
    const size_t end = std::min(text.find_first_of(",\n"), text.size());
    field = trim(text.substr(0, end));
    text.remove_prefix(end);
    return field;
  }
  size_t at = 1;
  for (; at < text.size(); at++) {
    if (text[at] == '"' && !text.substr(at + 1).starts_with('"')) break;
    if (text[at] == '"') at++;
    field += text[at];
  }
  text.remove_prefix(std::min(at + 1, text.size()));
  return field;
}

// The parts of a conda-meta file that we need, without building a tree of the rest: such files
// list every path twice.
class CondaHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit CondaHandler(Distribution& distribution, const std::string& prefix)
      : distribution_(distribution), prefix_(prefix) {}

  bool key(string_t& name) override {
    if (depth_ == 1) key_ = name;
    return true;
  }
  bool string(string_t& value) override {
    if (depth_ == 1 && key_ == "name") distribution_.name = value;
    if (depth_ == 1 && key_ == "version") distribution_.version = value;
    // What the command line said of it: one text, or, newer, several.
    if ((depth_ == 1 && key_ == "requested_spec") || (depth_ == 2 && key_ == "requested_specs"))
      distribution_.is_requested |= !value.empty() && value != "None";
    if (depth_ == 2 && key_ == "files" && value.size() < kMaxPath) add_file(value);
    return true;
  }
  // The directories (or files) in which Python sees the package.
  const std::vector<std::string>& metadata() const { return metadata_; }
  bool start_object(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  void add_file(const std::string& name) {
    if (looks_native(name)) distribution_.native_files.push_back(join_normal(prefix_, name));
    // In old packages for any Python: where that lies was known when it was installed only.
    if (name.starts_with("site-packages/")) return;
    const std::string_view directory = std::string_view(name).substr(0, name.rfind('/'));
    const bool is_metadata = name.ends_with(".egg-info") ||
                             (directory.ends_with(".dist-info") && name.ends_with("/METADATA")) ||
                             (directory.ends_with(".egg-info") && name.ends_with("/PKG-INFO"));
    if (is_metadata) metadata_.push_back(join_normal(prefix_, name));
  }
  bool enter() {
    depth_++;
    return true;
  }
  bool leave() {
    depth_--;
    return true;
  }
  Distribution& distribution_;
  const std::string& prefix_;
  std::vector<std::string> metadata_;
  std::string key_;
  int depth_ = 0;
};

// The packages that metadata without a list of files names as its own.
void read_top_level(std::string_view text, const std::string& site, Distribution& distribution) {
  for_each_line(text, [&](std::string_view line) {
    const std::string_view name = trim(line);
    if (!name.empty() && name.size() < kMaxPath && name != "." && name != "..")
      distribution.owned_packages.push_back(join_normal(site, name));
    return true;
  });
}

// Of an .egg-info, whose installed-files.txt counts from the directory of the metadata.
void read_installed_files(std::string_view text, Distribution& distribution) {
  for_each_line(text, [&](std::string_view line) {
    const std::string_view name = trim(line);
    if (name.size() < kMaxPath && looks_native(name))
      distribution.native_files.push_back(join_normal(distribution.metadata, name));
    return true;
  });
}

void read_files(const Tree& tree, const std::string& site, Distribution& distribution) {
  if (const FileText record(tree, distribution.metadata + "/RECORD"); record) {
    for (const std::string& name : native_names_of_record(record.text()))
      distribution.native_files.push_back(join_normal(site, name));
  } else if (const FileText installed(tree, distribution.metadata + "/installed-files.txt");
             installed) {
    read_installed_files(installed.text(), distribution);
  } else if (const auto top =
                 tree.read_text(distribution.metadata + "/top_level.txt", kMaxSmallFile)) {
    read_top_level(*top, site, distribution);
  }
}

void read_small_files(const Tree& tree, Distribution& distribution) {
  distribution.is_requested = tree.stat(distribution.metadata + "/REQUESTED").has_value();
  if (const auto url = tree.read_text(distribution.metadata + "/direct_url.json", kMaxSmallFile))
    distribution.editable = editable_location(*url);
  if (distribution.metadata.ends_with(".dist-info")) return;
  if (const auto wanted = tree.read_text(distribution.metadata + "/requires.txt", kMaxSmallFile))
    distribution.requires_dist = parse_egg_requirements(*wanted);
}

// What an installer has written and somebody has spoiled; what is not there is not missed: other
// installers leave it out.
std::vector<std::string> damage_of(const Tree& tree, const Distribution& distribution) {
  std::vector<std::string> sentences;
  if (!distribution.metadata.ends_with(".dist-info")) return sentences;
  const auto add = [&](const std::string& path, const char* how, const std::string& unknown) {
    sentences.push_back(fmt::format("{} is {}, so {}; install {} {} again", path, how, unknown,
                                    distribution.name, distribution.version));
  };
  const std::string record = distribution.metadata + "/RECORD";
  const auto list = tree.stat(record);
  if (list && (!list->is_regular() || list->size == 0))
    add(record, list->is_regular() ? "empty" : "no file",
        fmt::format("nothing is known of the files of {}", distribution.name));
  const std::string wheel = distribution.metadata + "/WHEEL";
  if (const auto tags = tree.stat(wheel); tags && !tags->is_regular())
    add(wheel, "no file", "installers stop at it");
  return sentences;
}

// pip takes away the files of a package of conda when it installs another version or removes it,
// and leaves conda's record of it, which then tells of what is not there any more.
bool is_gone(const Tree& tree, const std::vector<std::string>& metadata,
             const Distribution& package, const std::vector<Distribution>& others) {
  const auto is_there = [&](const std::string& path) { return tree.stat(path).has_value(); };
  if (metadata.empty() || std::any_of(metadata.begin(), metadata.end(), is_there)) return false;
  const std::string name = normal_name(package.name);
  const bool is_replaced =
      std::any_of(others.begin(), others.end(), [&](const Distribution& other) {
        return !other.is_conda_package && is_below(other.site, package.site) &&
               normal_name(other.name) == name;
      });
  return is_replaced ||
         std::none_of(package.native_files.begin(), package.native_files.end(), is_there);
}

// Those whose modules the path is in, by the names of these alone.
std::vector<uint32_t> owners_of_packages(const std::vector<Distribution>& all,
                                         const std::string& path) {
  std::vector<uint32_t> result;
  for (uint32_t i = 0; i < all.size(); i++)
    for (const std::string& package : all[i].owned_packages)
      if (path.starts_with(package) && path.size() > package.size() &&
          (path[package.size()] == '/' || path[package.size()] == '.')) {
        result.push_back(i);
        break;
      }
  return result;
}

}  // namespace

struct Distributions::FileIds {
  std::map<FileId, std::vector<uint32_t>> owners;
  // Of paths that no RECORD names: who owns them is asked for each process that loads them.
  mutable std::mutex answering;  // of what follows
  mutable std::unordered_map<std::string, std::vector<uint32_t>> known;
};

namespace {

// Where the next ".so" begins; npos: nowhere. A RECORD has a million bytes and a hundred of these.
size_t find_so(std::string_view text) {
  const auto is_so = [](const char* at) {
    return (at[0] == '.') & (at[1] == 's') & (at[2] == 'o');
  };
  size_t found = text.npos;
  if (text.size() >= 3)
    each_place(text, 0, text.size() - 2, is_so, [&](size_t at) {
      found = at;
      return false;
    });
  return found;
}

}  // namespace

std::vector<std::string> native_names_of_record(std::string_view text) {
  std::vector<std::string> names;
  if (text.empty()) return names;
  const auto take = [&] {
    std::string name = take_field(text);
    if (name.size() < kMaxPath && looks_native(name)) names.push_back(std::move(name));
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  };
  // A quoted field may hold a line break, so such a file is taken apart field by field.
  if (std::memchr(text.data(), '"', text.size()) != nullptr) {
    while (!text.empty()) take();
    return names;
  }
  for (size_t at = 0; (at = find_so(text)) != text.npos;) {
    text.remove_prefix(text.rfind('\n', at) + 1);  // npos + 1 is 0
    take();
  }
  return names;
}

void Distributions::add_problem(std::string sentence) {
  if (problems_.size() < kMaxProblems) problems_.push_back(std::move(sentence));
}

void Distributions::read_site(const std::string& site) {
  std::vector<std::string> names = tree_.list(site);
  const auto place = names.empty() ? tree_.host_path(site) : std::nullopt;
  if (place && ::access(place->c_str(), R_OK | X_OK) != 0 && errno == EACCES)
    problems_.push_back(site +
                        " cannot be read by this user, so nothing is known of what is in it");
  for (const std::string& name : names) {
    if (name.starts_with('~')) {  // pip renames what it removes, and deletes that last
      leftovers_.push_back(join_normal(site, name));
      continue;
    }
    const bool is_dist_info = name.ends_with(".dist-info");
    if (!is_dist_info && !name.ends_with(".egg-info") && name != "EGG-INFO") continue;
    Distribution distribution;
    distribution.metadata = join_normal(site, name);
    distribution.site = site;
    const auto status = tree_.stat(distribution.metadata);
    if (!status) continue;
    std::string headers = distribution.metadata;
    if (status->is_directory()) headers += is_dist_info ? "/METADATA" : "/PKG-INFO";
    const FileText file(tree_, headers);
    if (file) read_headers(file.text().substr(0, kMaxHeader), distribution);
    if (!file) add_problem(file.problem());
    read_directory_name(name == "EGG-INFO" ? site.substr(site.rfind('/') + 1) : name, distribution);
    if (status->is_directory()) {
      const auto installer = tree_.read_text(distribution.metadata + "/INSTALLER", kMaxSmallFile);
      distribution.installer = trim(installer.value_or(""));
      read_small_files(tree_, distribution);
      read_files(tree_, site, distribution);
      for (std::string& sentence : damage_of(tree_, distribution)) add_problem(std::move(sentence));
    }
    all_.push_back(std::move(distribution));
  }
}

void Distributions::read_conda(const std::string& prefix) {
  const std::string directory = join_normal(prefix, "conda-meta");
  std::unordered_set<std::string> requested;
  for (const std::string& name : tree_.list(directory)) {
    if (!name.ends_with(".json")) continue;
    Distribution distribution;
    distribution.metadata = join_normal(directory, name);
    distribution.is_conda_package = true;
    distribution.site = prefix;
    distribution.installer = "conda";
    const Result<MappedFile> file = tree_.map(distribution.metadata);
    const std::string_view text = file ? file->bytes().text() : std::string_view();
    CondaHandler handler(distribution, prefix);
    if (!nlohmann::json::sax_parse(text.begin(), text.end(), &handler))
      add_problem("cannot read " + distribution.metadata + " as JSON");
    if (distribution.is_requested) requested.insert(normal_name(distribution.name));
    if (is_gone(tree_, handler.metadata(), distribution, all_)) continue;
    if (!distribution.name.empty()) all_.push_back(std::move(distribution));
  }
  // The same package as Python sees it: conda writes no REQUESTED.
  for (Distribution& one : all_)
    if (is_below(one.site, prefix) && requested.contains(normal_name(one.name)))
      one.is_requested = true;
}

void Distributions::index() {
  for (uint32_t i = 0; i < all_.size(); i++) {
    by_name_.try_emplace(normal_name(all_[i].name), i);
    for (const std::string& path : all_[i].native_files) {
      std::vector<uint32_t>& owners = by_path_[path];
      if (owners.empty() || owners.back() != i) owners.push_back(i);
    }
  }
}

Distributions Distributions::read(const Tree& tree,
                                  const std::vector<std::string>& site_directories,
                                  const std::vector<std::string>& conda_prefixes) {
  Distributions result;
  result.tree_ = tree;
  for (const std::string& site : site_directories) result.read_site(site);
  for (const std::string& prefix : conda_prefixes) result.read_conda(prefix);
  result.index();
  return result;
}

Distributions Distributions::read(const Tree& tree, const Interpreter& interpreter) {
  std::vector<std::string> prefixes = {interpreter.prefix};
  if (interpreter.base_prefix != interpreter.prefix) prefixes.push_back(interpreter.base_prefix);
  return read(tree, interpreter.site_directories, prefixes);
}

const Distributions::FileIds& Distributions::file_ids() const {
  static std::mutex making;  // two threads may ask for the first time
  const std::lock_guard lock(making);
  if (ids_) return *ids_;
  auto ids = std::make_shared<FileIds>();
  for (uint32_t i = 0; i < all_.size(); i++)
    for (const std::string& path : all_[i].native_files) {
      const auto status = tree_.stat(path);
      if (!status) continue;
      std::vector<uint32_t>& owners = ids->owners[status->id];
      if (owners.empty() || owners.back() != i) owners.push_back(i);
    }
  ids_ = ids;
  return *ids_;
}

std::vector<const Distribution*> Distributions::pick(const std::vector<uint32_t>& indexes) const {
  std::vector<const Distribution*> result;
  result.reserve(indexes.size());
  for (const uint32_t i : indexes) result.push_back(&all_[i]);
  return result;
}

std::vector<const Distribution*> Distributions::owners(const std::string& path) const {
  const std::string normal = join_normal("/", path);
  if (const auto found = by_path_.find(normal); found != by_path_.end()) return pick(found->second);
  const FileIds& ids = file_ids();
  const std::lock_guard lock(ids.answering);
  const auto [known, is_new] = ids.known.try_emplace(path);
  if (is_new) {
    // Another name of a library that a RECORD names, or in a directory that is owned as a whole.
    if (!path.ends_with(".py"))
      if (const auto status = tree_.stat(path))
        if (const auto found = ids.owners.find(status->id); found != ids.owners.end())
          known->second = found->second;
    if (known->second.empty()) known->second = owners_of_packages(all_, normal);
  }
  return pick(known->second);
}

const Distribution* Distributions::find(std::string_view name) const {
  const auto known = by_name_.find(normal_name(name));
  return known == by_name_.end() ? nullptr : &all_[known->second];
}

}  // namespace cohabit
