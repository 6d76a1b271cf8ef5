// A file on a web server, read in ranges (RFC 9110, 14). A server that has none sends all of it:
// that is kept in a file without a name, and further reads cost nothing.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "facts/wheels/byte_source.h"
#include "facts/wheels/web_library.h"

namespace cohabit::wheels {

// What requests to a server say: "https://host:port" -> "user:password", still percent-encoded.
struct WebSettings {
  std::map<std::string, std::string> credentials;
  std::string certificates;  // a file of authorities; empty: the library's own
  // Empty: as http_proxy, https_proxy, all_proxy and no_proxy say.
  std::string http_proxy, https_proxy, no_proxy;
  std::string offline_by;  // who forbids all requests: "--offline"; empty: they are made
};
// The "https://user:password@host:port" that stand in these texts.
void collect_credentials(const std::string& text, WebSettings& settings);

class WebFile : public ByteSource {
 public:
  static Result<WebFile> open(std::string address, const WebSettings& settings);
  WebFile(WebFile&& other) noexcept;
  ~WebFile() override;

  Result<std::string> read_end(uint64_t length) override;
  Result<std::string> read(uint64_t offset, uint64_t length) override;
  uint64_t size() const override { return size_; }
  uint64_t fetched() const override { return fetched_; }  // of bodies
  bool came_whole() const override { return whole_ >= 0; }

 private:
  struct Transfer;
  WebFile(const WebLibrary& web, CURL* handle, std::string address)
      : web_(&web), handle_(handle), address_(std::move(address)) {}
  Result<std::string> request(const std::string& range, uint64_t length);
  Result<std::string> request_once(const std::string& range, uint64_t length, int& code);
  bool may_pass(int code) const;
  Result<void> keep(const char* data, size_t count);
  Result<std::string> read_kept(uint64_t offset, uint64_t length) const;
  static size_t on_header(char* data, size_t size, size_t count, void* transfer);
  static size_t on_body(char* data, size_t size, size_t count, void* transfer);

  const WebLibrary* web_;
  CURL* handle_;
  std::string address_;
  uint64_t size_ = 0, fetched_ = 0;
  int whole_ = -1;  // descriptor of the file that holds all of it
};

}  // namespace cohabit::wheels
