// Bytes that a snapshot has lost, because somebody wrote in place through a name that shared them:
// they are in the wheel still. The wheel is the one whose list of files is that of the snapshot,
// and a file's bytes are taken only if their hash is the snapshot's.
#pragma once

#include <string>
#include <vector>

#include "actions/locks/find_wheels.h"
#include "actions/snapshots/restore.h"
#include "actions/snapshots/store.h"

namespace cohabit::locks {

struct Refetched {
  std::vector<SpoiledFile> left;     // those that cannot be had, and why
  std::vector<std::string> fetched;  // "cv2/cv2.so, from opencv_python-4.9.0.80-...whl"
};

// What is fetched is kept as an object of the store, and the snapshot names that one from now on.
Refetched fetch_again(Store& store, const Snapshot& wanted, const check::Installer& installer,
                      const Interpreter& python, std::vector<SpoiledFile> spoiled);

}  // namespace cohabit::locks
