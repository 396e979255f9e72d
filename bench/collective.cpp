// Ranks that read interleaved columns, together and each for itself; measured in
// ranks/collective.cpp.
#include "common/on_ranks.hpp"

namespace bench {

json run_collective(const options& o) { return on_ranks(o, "collective"); }

}  // namespace bench
