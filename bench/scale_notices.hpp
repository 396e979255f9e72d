// The part of the case `scale` that concerns the write notices of ranks.
#pragma once

#include "measure/case.hpp"

namespace bench {

void measure_notices(const options& o, json& out);

}  // namespace bench
