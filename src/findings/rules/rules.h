// Every rule, one file each. A code is never used for something else later.
#pragma once

#include "findings/rule.h"

namespace cohabit::rules {

extern const Rule kCb101;  // split family
extern const Rule kCb102;  // captured across versions
extern const Rule kCb103;  // moved as a whole
extern const Rule kCb104;  // captured by design
extern const Rule kCb105;  // latent split
extern const Rule kCb106;  // split between copies that are alike
extern const Rule kCu101;  // no code for this GPU
extern const Rule kCu102;  // driver too old
extern const Rule kCu103;  // CPU build where a GPU is
extern const Rule kCu104;  // two halves of the driver
extern const Rule kCu105;  // libdevice not found
extern const Rule kEv001;  // variable that nobody reads
extern const Rule kEv002;  // variables that contradict each other
extern const Rule kEv003;  // variable set too late
extern const Rule kEv004;  // PYTHONHOME without a library
extern const Rule kFi001;  // overwritten files
extern const Rule kFi002;  // missing files
extern const Rule kFi003;  // changed files
extern const Rule kIo901;  // unreadable input
extern const Rule kIo902;  // unused ignore
extern const Rule kLd201;  // library not found
extern const Rule kLd202;  // version not found
extern const Rule kLd203;  // undefined symbol
extern const Rule kLd204;  // static TLS
extern const Rule kLd205;  // executable stack
extern const Rule kLd206;  // file refused by the loader
extern const Rule kLd207;  // wheel's library shadowed
extern const Rule kLd208;  // two copies of what must be single
extern const Rule kLd209;  // open at first use fails
extern const Rule kLd210;  // parts of two copies
extern const Rule kMm001;  // reserved memory
extern const Rule kPy001;  // unmet requirements
extern const Rule kPy002;  // one module from two distributions
extern const Rule kPy003;  // several CUDA majors
extern const Rule kPy004;  // installed twice, or halfway
extern const Rule kPy005;  // NumPy's C API
extern const Rule kPy006;  // generated protobuf code
extern const Rule kPy007;  // shadowed modules
extern const Rule kPy301;  // run failed without another reason
extern const Rule kPy302;  // import would fail

}  // namespace cohabit::rules
