#include "attack/rank_job.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iostream>

#include "support/pauses.hpp"
#include "support/soon.hpp"

namespace ooc::attack {

using std::chrono::milliseconds;
using std::chrono::seconds;
using storage::file_descriptor;

namespace {

file_descriptor process(pid_t p) { return file_descriptor(static_cast<int>(::syscall(SYS_pidfd_open, p, 0))); }

}  // namespace

rank_job::rank_job(round& r, const rank_board& board, std::uint64_t ranks, const std::vector<std::string>& words)
    : r_(r), board_(board), ranks_(ranks) {
  mpirun_ = r.in_child([&]() -> int {
    std::vector<char*> argv;
    for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    return 127;
  });
}

bool rank_job::running(std::uint64_t epochs) {
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

bool rank_job::disturb() {
  const std::uint64_t victim = r_.between(0, ranks_ - 1);
  enum { one_rank, whole_job, only_mpirun, ended_politely, stopped, all_stopped, last_plot };
  const std::uint64_t plot = r_.between(0, last_plot - 1);
  testing::random_pause(std::chrono::microseconds(r_.between(0, 8000)));
  std::cout << ranks_ << " ranks, plot " << plot << ", rank " << victim << ", after epoch " << board_.acknowledged
            << std::endl;
  switch (plot) {
    case one_rank: send(victim, SIGKILL); return true;
    case whole_job:
      ::kill(mpirun_, SIGKILL);
      send_to_all(SIGKILL);
      return true;
    case only_mpirun: ::kill(mpirun_, SIGKILL); return true;
    case ended_politely: ::kill(mpirun_, SIGTERM); return true;
    default: {
      const milliseconds away(r_.between(10, 2000));
      for (std::uint64_t k = 0; k < ranks_; ++k)
        if (plot == all_stopped || k == victim) send(k, SIGSTOP);
      testing::random_pause(away);
      send_to_all(SIGCONT);
      return false;
    }
  }
}

int rank_job::wait(seconds limit) {
  const int status = r_.wait_for(mpirun_, limit, "the job of " + std::to_string(ranks_) + " ranks");
  send_to_all(SIGKILL);
  for (const file_descriptor& p : processes_) {
    pollfd over{p.get(), POLLIN, 0};
    if (::poll(&over, 1, 20'000) != 1) throw finding(verdict::hung, "a rank that was killed does not end");
  }
  return status;
}

void rank_job::send(std::uint64_t rank, int signal) const {
  ::syscall(SYS_pidfd_send_signal, processes_.at(rank).get(), signal, nullptr, 0);
}

void rank_job::send_to_all(int signal) const {
  for (std::uint64_t k = 0; k < processes_.size(); ++k) send(k, signal);
}

}  // namespace ooc::attack
