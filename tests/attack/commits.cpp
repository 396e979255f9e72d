// A program that commits several arrays, alone or on ranks, is killed or stopped, its servers are, or the power fails.
// Whatever happens, all arrays are at the last commit that returned, or all are at the next.
#include <signal.h>
#include <unistd.h>

#include <iostream>
#include <optional>

#include "attack/committing/commit_plan.hpp"
#include "attack/history.hpp"
#include "attack/lost_power.hpp"
#include "attack/rank_job.hpp"
#include "attack/served_store.hpp"
#include "support/pauses.hpp"
#include "support/soon.hpp"

namespace ooc::attack {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds grace{30};  // in which a served store keeps the place of a client that is gone

struct program {
  rank_board& board;
  pid_t pid;
};

program start(round& r, const commit_plan& plan) {
  rank_board& board = map_rank_board(r.folder() / ("board-" + std::to_string(r.dice()())));
  const pid_t pid = r.in_child([&] {
    plan.run(board);
    return 0;
  });
  return {board, pid};
}

/// Until it has made its arrays and committed some steps.
void wait_for(round& r, const program& p) {
  const std::uint64_t step = r.between(0, commit_plan::steps / 2);
  testing::soon([&] { return p.board.made && p.board.acknowledged >= step; }, seconds(60));
  testing::random_pause(std::chrono::microseconds(r.between(0, 20'000)));
}

void in_checker(round& r, const std::function<void()>& f, seconds limit) {
  const pid_t checker = r.in_child([&] {
    f();
    return 0;
  });
  if (const int s = r.wait_for(checker, limit, "the checker"))
    throw finding(verdict::failed, "the checker ended with status " + std::to_string(s));
}

/// What is there after the end of the program.
void check(round& r, const commit_plan& plan, const std::string& url, std::uint64_t kept, bool served) {
  in_checker(
      r, [&] { plan.check(kept); }, seconds(80));
  verify_store(url, false);
  if (!served || r.one_in(4))
    in_checker(
        r, [&] { plan.go_on(kept, served ? grace + seconds(5) : seconds(1)); }, grace + seconds(80));
}

void kill_program(round& r, const std::string& url) {
  const commit_plan plan(r.dice()(), url, r.counts());
  const program p = start(r, plan);
  wait_for(r, p);
  ::kill(p.pid, SIGKILL);
  r.wait_for(p.pid);
  std::cout << "killed after step " << p.board.acknowledged << std::endl;
  if (p.board.made) check(r, plan, url, p.board.acknowledged, false);
}

/// Servers go and come; the program goes on, or is killed.
void disturb_servers(round& r) {
  served_store servers(r.folder() / "store", r.between(1, 3));
  const commit_plan plan(r.dice()(), servers.url(), r.counts());
  const program p = start(r, plan);
  for (std::uint64_t n = r.between(1, 4); n > 0; --n) {
    testing::random_pause(milliseconds(r.between(0, 300)));
    const std::string who = servers.any_server(r);
    const bool dies = r.one_in(2);
    std::cout << who << (dies ? " is killed" : " is stopped") << std::endl;
    servers.send(who, dies ? SIGKILL : SIGSTOP);
    testing::random_pause(milliseconds(r.between(0, 1000)));
    dies ? servers.up() : servers.send(who, SIGCONT);
  }
  if (r.one_in(2)) {
    wait_for(r, p);
    ::kill(p.pid, SIGKILL);
    r.wait_for(p.pid);
  } else if (const int status = r.wait_for(p.pid, seconds(120), "a program whose servers come back")) {
    throw finding(verdict::failed, "a program whose servers come back ended with status " + std::to_string(status));
  }
  std::cout << "ended after step " << p.board.acknowledged << std::endl;
  if (p.board.made) check(r, plan, servers.url(), p.board.acknowledged, true);
}

void lose_power(round& r) {
  disk_with_power disk(r);
  disk.switch_on();
  const std::string url = "local:" + (disk.folder() / "a").string() + "," + (disk.folder() / "b").string();
  const commit_plan plan(r.dice()(), url, r.counts());
  const program p = start(r, plan);
  wait_for(r, p);
  // Stopped before the power goes, so that it sees no error, and what it told was before that.
  ::kill(p.pid, SIGSTOP);
  disk.cut_power();
  ::kill(p.pid, SIGKILL);
  r.wait_for(p.pid);
  disk.unmount();
  std::cout << "power lost after step " << p.board.acknowledged << std::endl;
  if (!p.board.made) return;
  disk.switch_on();
  check(r, plan, url, p.board.acknowledged, false);
  disk.unmount();
}

#ifdef OOC_ATTACK_RANKS
void disturb_ranks(round& r, const std::string& local) {
  std::optional<served_store> servers;
  std::string url = local;
  if (r.one_in(3)) {
    servers.emplace(r.folder() / "store", r.between(1, 3));
    url = servers->url();
  }
  const std::uint64_t ranks = r.between(1, 4), seed = r.dice()();
  const commit_plan plan(seed, url, r.counts());
  const std::string board_file = (r.folder() / "board").string();
  const rank_board& board = map_rank_board(board_file);
  rank_job all(r, board, ranks,
               {OOC_MPIRUN_SCRIPT, std::to_string(ranks), OOC_ATTACK_RANKS, url, std::to_string(seed),
                (r.folder().parent_path() / "totals").string(), board_file, "commits"});
  if (!all.running(r.between(0, commit_plan::steps / 2))) {
    const int status = all.wait(seconds(60));
    if (status == 127) throw finding(verdict::not_run, "no mpirun");
    if (status != 0) throw finding(verdict::failed, "the ranks ended with status " + std::to_string(status));
    return check(r, plan, url, board.acknowledged, servers.has_value());
  }
  const bool dies = all.disturb();
  const int status = all.wait(seconds(150));
  if (!dies && status != 0)
    throw finding(verdict::failed,
                  "ranks were only stopped for a while, the job ended with status " + std::to_string(status));
  check(r, plan, url, board.acknowledged, servers.has_value());
}
#endif

}  // namespace

void commits(round& r) {
  const std::string local = "local:" + (r.folder() / "a").string() + "," + (r.folder() / "b").string();
  switch (r.between(0, 7)) {
    case 0:
    case 1: return lose_power(r);
    case 2: return disturb_servers(r);
#ifdef OOC_ATTACK_RANKS
    case 3:
    case 4: return disturb_ranks(r, local);
#endif
    default: return kill_program(r, local);
  }
}

}  // namespace ooc::attack
