// Changes on disk: one system call each, with the sentence that says why it failed.
//
// All that changes somebody's environment goes through here, so that a test can end the process at
// any of them: COHABIT_TEST_KILL_AT=N sends it SIGKILL in front of the N-th change (of a file that
// is written: also when half of it is there). COHABIT_TEST_COUNT=FILE gets the number of changes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cohabit::disk {

// As errno says it of the failed change; the sentence is for people.
struct Failure {
  int number = 0;
  std::string message;
};
template <class T = void>
using Outcome = tl::expected<T, Failure>;
inline tl::unexpected<Error> to_error(const Failure& failure) {
  return fail(failure.message);
}

Outcome<> link(const std::string& from, const std::string& to);
Outcome<> rename(const std::string& from, const std::string& to);
Outcome<> unlink(const std::string& path);
Outcome<> make_directory(const std::string& path, uint32_t mode);
Outcome<> remove_directory(const std::string& path);
Outcome<> make_symlink(const std::string& target, const std::string& path);
Outcome<> change_mode(const std::string& path, uint32_t mode);
// Of the name itself, not of what a link points to.
Outcome<> change_owner(const std::string& path, uint32_t uid, uint32_t gid);
// A new file with these bytes, on the disk when this returns.
Outcome<> write_new(const std::string& path, std::string_view text);
// The same, under another name first, so that `path` is the old text or the new one at any time.
Outcome<> replace(const std::string& path, std::string_view text);

// What a file has besides its bytes.
struct Attributes {
  uint32_t mode = 0, uid = 0, gid = 0;
  int64_t modified = 0;  // nanoseconds
};
// A copy that shares the bytes where the file system can (a reflink), with these attributes. It is
// on the disk when flush() has returned.
Outcome<> copy(const std::string& from, const std::string& to, const Attributes& attributes);
// A copy that shares the bytes, or a failure (EOPNOTSUPP, EXDEV, ...) and nothing.
Outcome<> clone(const std::string& from, const std::string& to, const Attributes& attributes);

// All that was written to the file system of this directory is on the disk when this returns.
Outcome<> flush(const std::string& directory);

// A directory and all below it; what is not there is no failure.
Outcome<> remove_all(const std::string& path);

// Full disks and limits on file sizes are failures of calls, not signals that end us.
void take_limits_as_failures();

}  // namespace cohabit::disk
