// The program of the child is a file of its own, runtime/verify/verified_run.py.
#include "actions/verify.h"

namespace cohabit {

const char* const kVerifyProgram =
#include "verified_run.inc"
    ;

}  // namespace cohabit
