// Other processes that work in a directory, which has to be known before it is removed: an
// installer whose interpreter finds no pyvenv.cfg any more takes the one below the environment for
// meant, and installs there.
#pragma once

namespace cohabit {

// What is started for a directory names it in its command line, and so does what that has started:
// `uv pip install --python DIRECTORY/bin/python`, and this python. Where /proc says nothing there
// is none. Makes system calls only, so that a signal handler may use it.
bool is_worked_in(const char* directory);

// Kills them, and waits until they are gone (for a tenth of a second at most: others' cannot be).
void end_work_in(const char* directory);

}  // namespace cohabit
