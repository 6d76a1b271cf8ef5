// The old entries of the library: they are three functions and a table, where EVP brings all of its
// providers and configuration files along.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/sha256.h"

#include <openssl/sha.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/hexadecimal.h"

namespace cohabit {
Sha256 sha256(Bytes bytes) {
  Sha256 digest;
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, bytes.text().data(), bytes.size());
  SHA256_Final(digest.data(), &context);
  return digest;
}

std::optional<Sha256> sha256_of_descriptor(int descriptor) {
  constexpr size_t kBuffer = 1 << 18;
  std::vector<char> buffer(kBuffer);
  SHA256_CTX context;
  SHA256_Init(&context);
  while (true) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    SHA256_Update(&context, buffer.data(), static_cast<size_t>(count));
  }
  Sha256 digest;
  SHA256_Final(digest.data(), &context);
  return digest;
}

static_assert(sizeof(SHA256_CTX) <= sizeof(Sha256Stream));

Sha256Stream::Sha256Stream() {
  SHA256_Init(reinterpret_cast<SHA256_CTX*>(state_.data()));
}

void Sha256Stream::add(std::string_view bytes) {
  SHA256_Update(reinterpret_cast<SHA256_CTX*>(state_.data()), bytes.data(), bytes.size());
}

Sha256 Sha256Stream::finish() {
  Sha256 digest;
  SHA256_Final(digest.data(), reinterpret_cast<SHA256_CTX*>(state_.data()));
  return digest;
}

std::string hexadecimal(const Sha256& digest) {
  return hexadecimal_of(digest);
}

std::optional<Sha256> parse_hexadecimal(std::string_view text) {
  Sha256 digest;
  if (text.size() != digest.size() * 2) return std::nullopt;
  for (size_t i = 0; i < digest.size(); i++) {
    const int high = hexadecimal_digit(text[2 * i]), low = hexadecimal_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return digest;
}

}  // namespace cohabit
