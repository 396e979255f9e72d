// Starts the random programs of several ranks (ranks_main.cpp) by MPI, on local and on served
// stores.
#include <cstdlib>
#include <iostream>
#include <optional>

#include "attack/served_store.hpp"

namespace ooc::attack {

void rank_programs(round& r) {
#ifdef OOC_ATTACK_RANKS
  const std::uint64_t ranks = r.one_in(4) ? r.between(5, 8) : r.between(1, 4);
  std::optional<served_store> servers;
  std::string url = "local:" + (r.folder() / "a").string() + "," + (r.folder() / "b").string();
  if (r.one_in(4)) {
    servers.emplace(r.folder() / "store", r.between(1, 3));
    url = servers->url();
  }
  const command_result c = run_command({OOC_MPIRUN_SCRIPT, std::to_string(ranks), OOC_ATTACK_RANKS, url,
                                        std::to_string(r.dice()()), (r.folder().parent_path() / "totals").string()});
  std::cout << ranks << " ranks: status " << c.status << "\n" << c.output << std::endl;
  if (c.status == 127) throw finding(verdict::not_run, "no mpirun");
  if (c.status != 0)
    throw finding(verdict::failed,
                  std::to_string(ranks) + " ranks ended with status " + std::to_string(c.status) + ": " + c.output);
#else
  (void)r;
  throw finding(verdict::not_run, "built without MPI");
#endif
}

}  // namespace ooc::attack
