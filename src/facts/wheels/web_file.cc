#include "facts/wheels/web_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/addresses.h"
#include "base/descriptor.h"

namespace cohabit::wheels {
namespace {

constexpr long kPartial = 206, kWhole = 200, kFirstError = 400;
constexpr uint64_t kMaxWhole = uint64_t{16} << 30;
constexpr long kMaxRedirects = 5, kConnectSeconds = 30, kStalledSeconds = 60;

bool same_start(std::string_view text, std::string_view start) {
  return text.size() >= start.size() &&
         std::equal(start.begin(), start.end(), text.begin(), [](char a, char b) {
           return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b + 32) : b);
         });
}

// "https://host:port" of an address without credentials.
std::string server_of(std::string_view address) {
  const size_t scheme = address.find("://");
  if (scheme == address.npos) return "";
  return std::string(address.substr(0, address.find_first_of("/?#", scheme + 3)));
}

int make_nameless() {
  const char* set = std::getenv("TMPDIR");
  const int fd = ::open(set && *set ? set : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  return fd >= 0 ? fd : ::memfd_create("cohabit wheel", MFD_CLOEXEC);
}

// The newer names of these options are unknown to libraries before 7.85.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
void allow_web_only(const WebLibrary& web, CURL* handle) {
  constexpr long kWeb = CURLPROTO_HTTP | CURLPROTO_HTTPS;
  web.set(handle, CURLOPT_PROTOCOLS, kWeb);
  web.set(handle, CURLOPT_REDIR_PROTOCOLS, kWeb);
}
#pragma GCC diagnostic pop

}  // namespace

void collect_credentials(const std::string& text, WebSettings& settings) {
  for (size_t at = text.find("://"); at != std::string::npos; at = text.find("://", at + 3)) {
    size_t scheme = at;
    while (scheme > 0 && text[scheme - 1] >= 'a' && text[scheme - 1] <= 'z') scheme--;
    const size_t end = std::min(text.find_first_of("/?# \t\n'\"`<>", at + 3), text.size());
    const size_t mark = text.rfind('@', end - 1);
    if (mark == std::string::npos || mark <= at + 3) continue;
    const std::string server =
        text.substr(scheme, at + 3 - scheme) + text.substr(mark + 1, end - mark - 1);
    settings.credentials.emplace(server, text.substr(at + 3, mark - at - 3));
  }
}

// One request: what comes of it goes into `text`, or, if the server sends all, into the file.
struct WebFile::Transfer {
  WebFile& file;
  uint64_t wanted = 0;
  std::string text{};
  std::optional<uint64_t> first{}, total{};  // of Content-Range
  std::string problem{};
};

Result<WebFile> WebFile::open(std::string address, const WebSettings& settings) {
  const auto web = web_library();
  if (!web) return tl::unexpected<Error>(web.error());
  CURL* handle = (*web)->easy_init();
  if (!handle) return fail("libcurl has no memory");
  WebFile file(**web, handle, std::move(address));
  const auto set = (*web)->set;
  set(handle, CURLOPT_URL, file.address_.c_str());
  allow_web_only(**web, handle);
  set(handle, CURLOPT_FOLLOWLOCATION, 1L);
  set(handle, CURLOPT_MAXREDIRS, kMaxRedirects);
  set(handle, CURLOPT_NOSIGNAL, 1L);  // we have threads
  set(handle, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(handle, CURLOPT_LOW_SPEED_TIME, kStalledSeconds);
  set(handle, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  set(handle, CURLOPT_USERAGENT, "cohabit");
  if (!settings.certificates.empty()) set(handle, CURLOPT_CAINFO, settings.certificates.c_str());
  const bool is_secure = file.address_.starts_with("https:");
  const std::string& proxy = is_secure ? settings.https_proxy : settings.http_proxy;
  if (!proxy.empty()) set(handle, CURLOPT_PROXY, proxy.c_str());
  if (!settings.no_proxy.empty()) set(handle, CURLOPT_NOPROXY, settings.no_proxy.c_str());
  if (const auto found = settings.credentials.find(server_of(file.address_));
      found != settings.credentials.end()) {
    const size_t colon = std::min(found->second.find(':'), found->second.size());
    const std::string user = percent_decoded(found->second.substr(0, colon));
    const std::string password =
        colon < found->second.size() ? percent_decoded(found->second.substr(colon + 1)) : "";
    set(handle, CURLOPT_USERNAME, user.c_str());
    set(handle, CURLOPT_PASSWORD, password.c_str());
  }
  return file;
}

WebFile::WebFile(WebFile&& other) noexcept
    : web_(other.web_),
      handle_(std::exchange(other.handle_, nullptr)),
      address_(std::move(other.address_)),
      size_(other.size_),
      fetched_(other.fetched_),
      whole_(std::exchange(other.whole_, -1)) {}

WebFile::~WebFile() {
  if (handle_) web_->cleanup(handle_);
  if (whole_ >= 0) ::close(whole_);
}

// "Content-Range: bytes 100-199/5000". A new status line starts anew: that was a redirect.
size_t WebFile::on_header(char* data, size_t size, size_t count, void* transfer) {
  Transfer& one = *static_cast<Transfer*>(transfer);
  const std::string_view line(data, size * count);
  constexpr std::string_view kRange = "content-range: bytes ";
  if (line.starts_with("HTTP/")) one.first = one.total = std::nullopt;
  if (!same_start(line, kRange)) return line.size();
  const std::string value(line.substr(kRange.size()));
  uint64_t first = 0, total = 0;
  const size_t slash = value.find('/');
  const char* end = value.data() + value.size();
  if (std::from_chars(value.data(), end, first).ec == std::errc()) one.first = first;
  if (slash != value.npos &&
      std::from_chars(value.data() + slash + 1, end, total).ec == std::errc())
    one.total = total;
  return line.size();
}

size_t WebFile::on_body(char* data, size_t size, size_t count, void* transfer) {
  Transfer& one = *static_cast<Transfer*>(transfer);
  const size_t bytes = size * count;
  long status = 0;
  one.file.web_->info(one.file.handle_, CURLINFO_RESPONSE_CODE, &status);
  one.file.fetched_ += bytes;
  if (status >= kFirstError) return bytes;  // the text of an error page is of no use
  if (status != kPartial) {
    auto kept = one.file.keep(data, bytes);
    if (!kept) one.problem = kept.error().message;
    return kept ? bytes : 0;
  }
  if (one.text.size() + bytes > one.wanted) {
    one.problem = "the server sends more than it was asked for";
    return 0;
  }
  one.text.append(data, bytes);
  return bytes;
}

Result<void> WebFile::keep(const char* data, size_t count) {
  if (whole_ < 0) {
    whole_ = make_nameless();
    size_ = 0;
  }
  if (size_ + count > kMaxWhole)
    return fail(fmt::format("it has more than {} GB", kMaxWhole >> 30));
  if (!write_all(whole_, {data, count}))
    return fail(fmt::format("no room for it in $TMPDIR: {}", std::strerror(errno)));
  size_ += count;
  return {};
}

// What the next attempt may not meet again: a connection that breaks, a server that has too much to
// do.
bool WebFile::may_pass(int code) const {
  constexpr long kTooMany = 429, kInternal = 500, kBadGateway = 502, kBusy = 503, kLate = 504;
  if (code != CURLE_OK)
    return code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR ||
           code == CURLE_GOT_NOTHING || code == CURLE_HTTP2 || code == CURLE_HTTP2_STREAM;
  long status = 0;
  web_->info(handle_, CURLINFO_RESPONSE_CODE, &status);
  return status == kTooMany || status == kInternal || status == kBadGateway || status == kBusy ||
         status == kLate;
}

Result<std::string> WebFile::request(const std::string& range, uint64_t length) {
  constexpr int kAttempts = 3;
  constexpr auto kPause = std::chrono::milliseconds(300);
  for (int attempt = 1;; attempt++) {
    int code = CURLE_OK;
    auto text = request_once(range, length, code);
    // What is sent as a whole may be gigabytes: not again.
    if (text || whole_ >= 0 || attempt == kAttempts || !may_pass(code)) return text;
    std::this_thread::sleep_for(attempt * kPause);
  }
}

Result<std::string> WebFile::request_once(const std::string& range, uint64_t length, int& code) {
  Transfer transfer{*this, length};
  web_->set(handle_, CURLOPT_RANGE, range.c_str());
  web_->set(handle_, CURLOPT_HEADERFUNCTION, &WebFile::on_header);
  web_->set(handle_, CURLOPT_HEADERDATA, &transfer);
  web_->set(handle_, CURLOPT_WRITEFUNCTION, &WebFile::on_body);
  web_->set(handle_, CURLOPT_WRITEDATA, &transfer);
  const CURLcode result = web_->perform(handle_);
  code = result;
  if (!transfer.problem.empty()) return fail(std::move(transfer.problem));
  if (result != CURLE_OK) return fail(web_->error_text(result));
  long status = 0;
  web_->info(handle_, CURLINFO_RESPONSE_CODE, &status);
  if (status == kWhole && whole_ >= 0) return std::string();
  if (status != kPartial) return fail(fmt::format("the server answers with status {}", status));
  if (!transfer.first || !transfer.total)
    return fail("the server does not say which part of the file it sends");
  size_ = *transfer.total;
  if (*transfer.first > size_ || size_ - *transfer.first < transfer.text.size())
    return fail("the server sends a part that lies behind the end of the file");
  return std::move(transfer.text);
}

Result<std::string> WebFile::read_kept(uint64_t offset, uint64_t length) const {
  if (offset > size_ || size_ - offset < length)
    return fail(fmt::format("bytes {} to {} are behind its end", offset, offset + length));
  std::string text(length, '\0');
  for (uint64_t done = 0; done < length;) {
    const ssize_t count =
        ::pread(whole_, text.data() + done, length - done, static_cast<off_t>(offset + done));
    if (count <= 0) return fail("what was fetched of it cannot be read again");
    done += static_cast<uint64_t>(count);
  }
  return text;
}

Result<std::string> WebFile::read_end(uint64_t length) {
  if (whole_ < 0) {
    auto text = request(fmt::format("-{}", length), length);
    if (!text || whole_ < 0) return text;
  }
  const uint64_t part = std::min(length, size_);
  return read_kept(size_ - part, part);
}

Result<std::string> WebFile::read(uint64_t offset, uint64_t length) {
  if (length == 0) return std::string();
  if (whole_ < 0) {
    const uint64_t size = size_;
    auto text = request(fmt::format("{}-{}", offset, offset + length - 1), length);
    if (!text) return text;
    if (whole_ < 0 && (text->size() != length || size_ != size))
      return fail("the server sends another part than it was asked for");
    if (whole_ < 0) return text;
  }
  return read_kept(offset, length);
}

}  // namespace cohabit::wheels
