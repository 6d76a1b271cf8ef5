// Wheels from any bytes: the archive's list of files, its members, METADATA and RECORD.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "facts/wheels/wheel.h"

using namespace cohabit;

namespace {

// Bytes in memory, as a server would give them in ranges.
class Memory : public wheels::ByteSource {
 public:
  explicit Memory(Bytes bytes) : bytes_(bytes) {}
  Result<std::string> read_end(uint64_t length) override {
    const uint64_t part = std::min(length, bytes_.size());
    return read(bytes_.size() - part, part);
  }
  Result<std::string> read(uint64_t offset, uint64_t length) override {
    const auto part = bytes_.slice(offset, length);
    if (!part) return fail("behind the end");
    return std::string(part->text());
  }
  uint64_t size() const override { return bytes_.size(); }

 private:
  Bytes bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Memory memory(Bytes(data, size));
  (void)wheels::read_wheel(memory, "one", {"../../..", "include/site/python3.12"});
  return 0;
}
