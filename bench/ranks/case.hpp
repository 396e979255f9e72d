// The cases of oocbench_ranks: each runs on all ranks of MPI_COMM_WORLD.
#pragma once

#include "measure/case.hpp"

namespace bench::ranks {

/// What rank 0 returns is reported.
json coherence(const options& o);
json collective(const options& o);

}  // namespace bench::ranks
