// Ranks of an MPI program are killed, or stopped for a while, in the middle of epochs: one of them,
// or the whole job.  What sync() has acknowledged is there, what was under way is old or new, and
// whoever comes next can open the array for writing: at once on a local store, within the grace
// period on a served one.

#include <optional>

#include "attack/rank_job.hpp"
#include "attack/served_store.hpp"
#include "oocarray/ooc_array.hpp"

namespace ooc::attack {

namespace {

using std::chrono::seconds;

#ifdef OOC_ATTACK_RANKS
constexpr seconds grace{30};  // in which a served store keeps the place of a client that is gone

/// Somebody who wants to write the array next gets it.
void write_next(round& r, const rank_plan& plan, seconds limit) {
  const pid_t next = r.in_child([&] {
    const store s = open_store(plan.how);
    runtime rt{{.memory = plan.how.memory + 1_MiB}};
    array_options<std::uint64_t> options;
    options.wait_for_writer = limit;
    ooc_array<std::uint64_t, 1> a{rt, s, plan.how.path, open, {plan.epochs.elements()}, options};
    a[0] = 1;
    a.close();
    return 0;
  });
  if (const int s = r.wait_for(next, limit + seconds(20), "a writer after the ranks"))
    throw finding(verdict::failed, "a writer after the ranks ended with status " + std::to_string(s));
}
#endif

}  // namespace

void killed_ranks(round& r) {
#ifdef OOC_ATTACK_RANKS
  const std::uint64_t ranks = r.between(1, 5), seed = r.dice()();
  std::optional<served_store> servers;
  std::string url = "local:" + (r.folder() / "a").string() + "," + (r.folder() / "b").string();
  if (r.one_in(3)) {
    servers.emplace(r.folder() / "store", r.between(1, 3));
    url = servers->url();
  }
  const rank_plan plan(seed, url, r.counts());
  const std::string board_file = (r.folder() / "board").string();
  const rank_board& board = map_rank_board(board_file);
  rank_job all(r, board, ranks,
               {OOC_MPIRUN_SCRIPT, std::to_string(ranks), OOC_ATTACK_RANKS, url, std::to_string(seed),
                (r.folder().parent_path() / "totals").string(), board_file});
  if (!all.running(r.between(0, 40))) {
    const int status = all.wait(seconds(60));
    if (status == 127) throw finding(verdict::not_run, "no mpirun");
    if (status != 0)
      throw finding(verdict::failed,
                    "nobody did anything to the ranks, they ended with status " + std::to_string(status));
  }
  const bool dies = all.disturb();
  const int status = all.wait(seconds(100));
  if (!dies && status != 0)
    throw finding(verdict::failed,
                  "ranks were only stopped for a while, the job ended with status " + std::to_string(status));
  const std::uint64_t kept = board.acknowledged;
  if (!board.made) return;
  const pid_t checker = r.in_child([&] {
    check_history(plan.epochs, plan.how, {kept, kept + 2, true}, r);
    return 0;
  });
  if (const int s = r.wait_for(checker, seconds(80), "the checker"))
    throw finding(verdict::failed, "the checker ended with status " + std::to_string(s));
  verify_store(url, false);
  if (!servers || r.one_in(3)) write_next(r, plan, servers ? grace + seconds(5) : seconds(1));
#else
  (void)r;
  throw finding(verdict::not_run, "built without MPI");
#endif
}

}  // namespace ooc::attack
