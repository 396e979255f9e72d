// Ranks that read interleaved columns, together and each for itself; measured in
// ranks/collective.cpp.  With --nodes on a served store, otherwise on an embedded one.
#include "measure/on_ranks.hpp"
#include "measure/served_store.hpp"

namespace bench {

json run_collective(const options& o) {
  if (o.nodes == 0) return on_ranks(o, "collective", "local:" + (o.dir / "collective").string());
  const served_store store(o.dir / "collective", o.nodes);
  json result{{"nodes", o.nodes}};
  result.update(on_ranks(o, "collective", store.url()));
  return result;
}

}  // namespace bench
