#include "base/interrupt.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace ooc::tool {

namespace {

std::atomic<int> came{0};
static_assert(std::atomic<int>::is_always_lock_free);

void note(int signal) { came = signal; }

}  // namespace

void catch_interrupts() {
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    if (::sigaction(s, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    struct sigaction mine {};
    mine.sa_handler = note;
    ::sigemptyset(&mine.sa_mask);
    mine.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    ::sigaction(s, &mine, nullptr);
  }
}

void check_interrupted() {
  if (const int s = came) throw interrupted(s);
}

void end_by_signal(int s) {
  ::signal(s, SIG_DFL);
  ::raise(s);
  ::_exit(128 + s);
}

}  // namespace ooc::tool
