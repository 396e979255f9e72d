// Benchmarks on several ranks: a program of its own, oocbench_ranks, started by scripts/ooc-mpirun.
#pragma once

#include <string>

#include "measure/case.hpp"

namespace bench {

/// Runs the case `name` of oocbench_ranks (ranks/case.hpp) on o.ranks ranks and on the store at `url`,
/// and returns what rank 0
/// reports, with "ranks" added.  Throws std::runtime_error where it ends badly, and where oocbench
/// was built without MPI.
json on_ranks(const options& o, const std::string& name, const std::string& url);

}  // namespace bench
