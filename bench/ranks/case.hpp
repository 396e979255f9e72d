// The cases of oocbench_ranks: each runs on all ranks of MPI_COMM_WORLD.
#pragma once

#include "measure/case.hpp"

namespace bench::ranks {

/// The result of rank 0 is reported.
json coherence(const options& o);
json collective(const options& o);

}  // namespace bench::ranks
