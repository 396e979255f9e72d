// Ranks of an MPI program are killed, or stopped for a while, in the middle of epochs: one of them,
// or the whole job.  What sync() has acknowledged is there, what was under way is old or new, and
// whoever comes next can open the array for writing: at once on a local store, within the grace
// period on a served one.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iostream>
#include <optional>
#include <vector>

#include "attack/rank_history.hpp"
#include "attack/served_store.hpp"
#include "oocarray/ooc_array.hpp"
#include "storage/base/file_descriptor.hpp"
#include "support/pauses.hpp"
#include "support/soon.hpp"

namespace ooc::attack {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using storage::file_descriptor;

#ifdef OOC_ATTACK_RANKS
constexpr seconds grace{30};  // in which a served store keeps the place of a client that is gone

/// The ranks as processes: they are known by descriptors, as the numbers of dead ones are used
/// again.
class job {
 public:
  job(round& r, const rank_board& board, std::uint64_t ranks, const std::vector<std::string>& words)
      : r_(r), board_(board), ranks_(ranks) {
    mpirun_ = r.in_child([&]() -> int {
      std::vector<char*> argv;
      for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
      argv.push_back(nullptr);
      ::execvp(argv[0], argv.data());
      return 127;
    });
  }

  /// Waits until the ranks have made the array and written some epochs, or the job has ended.
  bool running(std::uint64_t epochs) {
    const file_descriptor job_itself = process(mpirun_);
    const auto ended = [&] {
      pollfd p{job_itself.get(), POLLIN, 0};
      return ::poll(&p, 1, 0) == 1;
    };
    testing::soon([&] { return (board_.made && board_.acknowledged >= epochs) || ended(); }, seconds(60));
    for (std::uint64_t k = 0; k < ranks_; ++k)
      if (const pid_t p = board_.pids[k]) processes_.push_back(process(p));
    return board_.made && !ended() && processes_.size() == ranks_;
  }
  void send(std::uint64_t rank, int signal) const {
    ::syscall(SYS_pidfd_send_signal, processes_.at(rank).get(), signal, nullptr, 0);
  }
  void send_to_all(int signal) const {
    for (std::uint64_t k = 0; k < ranks_; ++k) send(k, signal);
  }
  void send_to_mpirun(int signal) const { ::kill(mpirun_, signal); }
  /// The status of mpirun; the ranks are dead then.
  int wait(seconds limit) {
    const int status = r_.wait_for(mpirun_, limit, "the job of " + std::to_string(ranks_) + " ranks");
    send_to_all(SIGKILL);
    for (const file_descriptor& p : processes_) {
      pollfd over{p.get(), POLLIN, 0};
      if (::poll(&over, 1, 20'000) != 1) throw finding(verdict::hung, "a rank that was killed does not end");
    }
    return status;
  }

 private:
  static file_descriptor process(pid_t p) { return file_descriptor(static_cast<int>(::syscall(SYS_pidfd_open, p, 0))); }

  round& r_;
  const rank_board& board_;
  std::uint64_t ranks_;
  pid_t mpirun_;
  std::vector<file_descriptor> processes_;
};

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
  job all(r, board, ranks,
          {OOC_MPIRUN_SCRIPT, std::to_string(ranks), OOC_ATTACK_RANKS, url, std::to_string(seed),
           (r.folder().parent_path() / "totals").string(), board_file});
  const std::uint64_t victim = r.between(0, ranks - 1);
  enum { one_rank, whole_job, only_mpirun, ended_politely, stopped, all_stopped, last_plot };
  const std::uint64_t plot = r.between(0, last_plot - 1);
  if (!all.running(r.between(0, 40))) {
    const int status = all.wait(seconds(60));
    if (status == 127) throw finding(verdict::not_run, "no mpirun");
    if (status != 0)
      throw finding(verdict::failed,
                    "nobody did anything to the ranks, they ended with status " + std::to_string(status));
  }
  testing::random_pause(std::chrono::microseconds(r.between(0, 8000)));
  std::cout << ranks << " ranks, plot " << plot << ", rank " << victim << ", after epoch " << board.acknowledged
            << std::endl;
  bool dies = true;
  switch (plot) {
    case one_rank: all.send(victim, SIGKILL); break;
    case whole_job:
      all.send_to_mpirun(SIGKILL);
      all.send_to_all(SIGKILL);
      break;
    case only_mpirun: all.send_to_mpirun(SIGKILL); break;
    case ended_politely: all.send_to_mpirun(SIGTERM); break;
    default: {
      const milliseconds away(r.between(10, 2000));
      for (std::uint64_t k = 0; k < ranks; ++k)
        if (plot == all_stopped || k == victim) all.send(k, SIGSTOP);
      testing::random_pause(away);
      all.send_to_all(SIGCONT);
      dies = false;
    }
  }
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
