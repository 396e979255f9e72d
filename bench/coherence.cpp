// The bytes that a rank must read again after the others have written; measured in ranks/coherence.cpp.
#include "measure/on_ranks.hpp"

namespace bench {

json run_coherence(const options& o) { return on_ranks(o, "coherence", "local:" + (o.dir / "coherence").string()); }

}  // namespace bench
