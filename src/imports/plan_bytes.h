// A plan as bytes, and back.
#pragma once

#include "base/packed.h"
#include "imports/plan.h"

namespace cohabit::python {

void pack_plan(const Plan& plan, Packer& packer);
// Of bytes that pack_plan made. Whatever they are, the indexes of the events fit.
Plan unpack_plan(Unpacker& unpacker);

}  // namespace cohabit::python
