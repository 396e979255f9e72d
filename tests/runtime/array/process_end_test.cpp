// How programs end, and what of their arrays is then in the store.  Each case runs
// ending_program.cpp, which must end by itself.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

#include "runtime/array/ending_program.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using Catch::Contains;
using ooc::testing::temporary_folder;

namespace {

/// A program that has been run, in a store of its own, and what it left there.
class ended {
 public:
  /// Runs it; sends a signal, if one is given, once it has said "ready".
  explicit ended(const std::string& ending, int signal = 0) { CHECK(run(ending, signal)); }

  bool exited(int code) const { return WIFEXITED(status_) && WEXITSTATUS(status_) == code; }
  bool killed_by(int signal) const { return WIFSIGNALED(status_) && WTERMSIG(status_) == signal; }
  const std::string& said() const { return said_; }  ///< on standard output and error

  /// How many elements of `a` are not `value(i)`.
  template <class F>
  std::size_t wrong(F&& value) const {
    runtime rt(testing::small_runtime());
    const store s = store::open("local:" + (folder_.path() / "store").string());
    const array a(rt, s, "a", ooc::open, testing::filled_elements);  // to write: the claim is free
    std::size_t n = 0;
    for (std::size_t i = 0; i < a.size(); ++i) n += a[i] != value(i);
    return n;
  }
  std::size_t lost() const { return wrong(testing::filled_value); }

 private:
  using array = ooc_array<double, 1>;

  bool run(const std::string& ending, int signal);

  temporary_folder folder_;
  int status_ = -1;
  std::string said_;
};

/// False where it had to be killed.
bool ended::run(const std::string& ending, int signal) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int s : {SIGTERM, SIGINT, SIGSEGV, SIGABRT}) ::signal(s, SIG_DFL);  // Catch's
    // Leaving things behind is what some endings are about, and the handlers are to be the system's.
    ::setenv("ASAN_OPTIONS", "detect_leaks=0:handle_segv=0:handle_abort=0", 1);
    ::dup2(ends[1], 1);
    ::dup2(ends[1], 2);
    ::close(ends[0]);
    ::close(ends[1]);
    ::execl(ENDING_PROGRAM, ENDING_PROGRAM, ending.c_str(), (folder_.path() / "store").c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  bool in_time = false;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (;;) {
    pollfd p{ends[0], POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0 || ::poll(&p, 1, static_cast<int>(left.count())) == 0) {
      ::kill(child, SIGKILL);  // nothing else ends one that hangs
      break;
    }
    char some[4096];
    const ssize_t n = ::read(ends[0], some, sizeof some);
    if (n <= 0) {
      in_time = true;
      break;
    }
    said_.append(some, static_cast<std::size_t>(n));
    if (signal && said_.find("ready\n") != std::string::npos) ::kill(child, std::exchange(signal, 0));
  }
  ::close(ends[0]);
  ::waitpid(child, &status_, 0);
  return in_time;
}

}  // namespace

TEST_CASE("the end of the runtime writes back and closes what is still open") {
  const std::string ending = GENERATE(as<std::string>{}, "array_outlives_runtime", "calls_after_the_runtime",
                                      "blocks_outlive_runtime", "group_array_outlives_runtime");
  CAPTURE(ending);
  const ended e(ending);
  CHECK(e.exited(0));
  CHECK(e.said() == "");
  CHECK(e.lost() == 0);
}

TEST_CASE("a touch of an array whose runtime has ended ends the process with a message") {
  const ended e("touch_after_the_runtime");
  CHECK(e.killed_by(SIGSEGV));
  CHECK_THAT(e.said(),
             Contains("'a'") && Contains("element (70000) was read") && Contains("after the end of its runtime"));
  CHECK(e.lost() == 0);
}

TEST_CASE("the end of the runtime reports what it cannot write") {
  const ended e("runtime_cannot_write");
  CHECK(e.exited(fatal_exit_status));
  CHECK_THAT(e.said(), Contains("array 'a' closed with 13 modified blocks that could not be written"));
}

TEST_CASE("a process in which an array ended with data that could not be written ends with a status that says so") {
  const ended e("array_cannot_write");
  CHECK(e.exited(fatal_exit_status));
  CHECK_THAT(e.said(), Contains("array 'a' closed with") && Contains("they are lost") && Contains("no whole line"));
}

TEST_CASE("so does one that wrote to an array while it was being copied to") {
  const ended e("written_while_it_is_copied_to");
  CHECK(e.exited(fatal_exit_status));
  CHECK_THAT(e.said(), Contains("array 'a': another thread used it during an algorithm; what it wrote is lost"));
}

TEST_CASE("so does one in which a block file ended like that") {
  const ended e("blocks_cannot_write");
  CHECK(e.exited(fatal_exit_status));
  CHECK_THAT(e.said(), Contains("block file 'a' closed with 1 modified superblocks") && Contains("they are lost"));
}

TEST_CASE("what a program drops itself is not lost, and its status stays") {
  const ended e("array_drops_what_it_cannot_write");
  CHECK(e.exited(0));
  CHECK(e.said() == "");
}

#if !defined(__SANITIZE_THREAD__)
TEST_CASE("what a process has lost is nothing to a child that it forks") {
  CHECK(ended("child_of_one_that_cannot_write").exited(fatal_exit_status));
}
#endif

TEST_CASE("a clean end of the process writes back, in whatever order static objects end") {
  const auto [ending, status] = GENERATE(table<std::string, int>({{"exit_in_a_function", 3},
                                                                  {"exit_on_another_thread", 3},
                                                                  {"exit_while_others_write", 3},
                                                                  {"exit_of_one_rank", 3},
                                                                  {"return_with_everything_leaked", 0},
                                                                  {"static_array_before_the_runtime", 0},
                                                                  {"static_array_after_the_runtime", 0},
                                                                  {"static_array_of_a_leaked_runtime", 0},
                                                                  {"local_statics", 0}}));
  CAPTURE(ending);
  const ended e(ending);
  CHECK(e.exited(status));
  CHECK(e.said() == "");
  CHECK(e.lost() == 0);
}

TEST_CASE("an uncaught exception writes back before the process ends as it would have") {
  const std::string ending = GENERATE(as<std::string>{}, "uncaught_exception", "exception_in_noexcept");
  CAPTURE(ending);
  const ended e(ending);
  CHECK(e.killed_by(SIGABRT));
  CHECK_THAT(e.said(), Contains("the program's own"));
  CHECK(e.lost() == 0);
}

TEST_CASE("an uncaught refusal of the runtime writes back, and waits for nothing") {
  const ended e("uncaught_refusal");
  CHECK(e.killed_by(SIGABRT));
  CHECK_THAT(e.said(), Contains("do not fit the budget") && !Contains("could be written back"));
  CHECK(e.lost() == 0);
}

TEST_CASE("the terminate handler that a program had installed runs after the write-back") {
  const ended e("terminate_handler_of_the_program");
  CHECK(e.exited(5));
  CHECK(e.said() == "the program's own handler\n");
  CHECK(e.lost() == 0);
}

TEST_CASE("abort() writes nothing, and leaves a store that opens") {
  const ended e("abort_at_once");
  CHECK(e.killed_by(SIGABRT));
  CHECK(e.lost() == 100'000);
}

TEST_CASE("of a promised box, blocks that were touched are written as they are, others stay") {
  const ended e("exit_under_a_promise");
  CHECK(e.exited(3));
  const std::size_t block = 64_KiB / sizeof(double);
  CHECK(e.wrong([&](std::size_t i) { return i < 100 ? 1.0 : i < block ? 0.0 : 7.0; }) == 0);
}

TEST_CASE("the end of the process reports what it cannot write") {
  const ended e("exit_cannot_write");
  CHECK(e.exited(fatal_exit_status));
  CHECK_THAT(e.said(), Contains("13 modified blocks of array 'a' could not be written back at exit()"));
}

TEST_CASE("the end of the process waits for a store until the deadline, and then says what is lost") {
  const ended e("exit_waits_in_vain");
  CHECK(e.exited(fatal_exit_status));
  CHECK_THAT(e.said(), Contains("said before\n") && Contains("within 300 ms") && Contains("'a' (1)"));
}

TEST_CASE("the time in which a program was stopped while it ended counts for no deadline") {
  const ended e("exit_while_stopped");
  CHECK(e.exited(3));
  CHECK(e.said() == "");
}

#if !defined(__SANITIZE_THREAD__)  // the sanitizer does not support threads in forked children
TEST_CASE("a forked child that ends writes nothing") {
  const std::string ending = GENERATE(as<std::string>{}, "child_exits", "child_terminates");
  CAPTURE(ending);
  const ended e(ending);
  CHECK(e.exited(0));
  CHECK(e.lost() == 100'000);  // its parent has left by _exit()
}

TEST_CASE("a signal to a forked child does not end its parent") {
  const ended e("signal_to_a_child");
  CHECK(e.exited(0));
  CHECK(e.lost() == 0);
}
#endif

TEST_CASE("where the program asks for it, SIGTERM and SIGINT write back, and the parent sees them") {
  const int signal = GENERATE(SIGTERM, SIGINT);
  const ended e("await_signal", signal);
  CHECK(e.killed_by(signal));
  CHECK(e.said() == "ready\n");
  CHECK(e.lost() == 0);
}

TEST_CASE("SIGTERM loses what is not written back where the program does not ask") {
  const ended e("signal_without_the_option", SIGTERM);
  CHECK(e.killed_by(SIGTERM));
  CHECK(e.lost() == 100'000);
}

TEST_CASE("a signal that is ignored stays ignored, and one that the program handles is refused") {
  const std::string ending = GENERATE(as<std::string>{}, "await_ignored_signal", "signals_of_the_program");
  CAPTURE(ending);
  const ended e(ending);
  CHECK(e.said() == "");
  CHECK(e.exited(0));
}

TEST_CASE("a build without NDEBUG checks indices") {
  const std::string ending = GENERATE(as<std::string>{}, "index_of_a_row", "index_in_a_row", "indices_of_a_call",
                                      "index_in_a_tile", "index_of_a_tiled_array");
  CAPTURE(ending);
  const ended e(ending);
  CHECK(e.killed_by(SIGABRT));
  CHECK_THAT(e.said(), Contains("index out of range"));
}

TEST_CASE("a touch that is a fault of the program names array, element and reason") {
  struct touch {
    std::string ending, place, reason;
  };
  const auto t =
      GENERATE(values<touch>({{"write_to_read_only", "element (3, 4) was written", "open for reading only"},
                              {"touch_of_closed", "element (3, 4) was read", "after it had been closed"},
                              {"touch_far_out", "element (100000, 4) was written", "past its last"},
                              {"touch_before_the_first", "byte -24 was written", "before its first"},
                              {"touch_past_the_last_page", "element (1206, 0) was written", "past its last"}}));
  CAPTURE(t.ending);
  const ended e(t.ending);
  CHECK(e.killed_by(SIGSEGV));
  CHECK_THAT(e.said(), Contains("array 'dir/plate': " + t.place) && Contains(t.reason));
}

#if !defined(__SANITIZE_THREAD__)
TEST_CASE("a touch in a forked child names the array") {
  const ended e("touch_in_a_child");
  CHECK(e.exited(0));
  CHECK_THAT(e.said(), Contains("array 'a': element (17) was read in a forked child"));
}
#endif

#if defined(__x86_64__)
TEST_CASE("a crash reporter that was installed after the array does not keep touches from being served") {
  const ended e("touches_behind_a_reporter");
  CHECK(e.exited(0));
  CHECK_THAT(e.said(), Contains("array 'a'") && Contains("reclaim_faults()"));
}
#endif

TEST_CASE("a program that asks gets its touches served before a late handler hears of them") {
  const ended e("touches_after_reclaiming");
  CHECK(e.exited(0));
  CHECK(e.said() == "");
}

TEST_CASE("touches are served after a handler that ends the process was installed, from the next call of an array on") {
  const ended e("touches_after_a_call");
  CHECK(e.exited(0));
  CHECK(e.said() == "");
}

TEST_CASE("a crash is reported by the late handler, and ends the process") {
  const ended e("crash_with_a_late_reporter");
  CHECK(e.killed_by(SIGSEGV));
  CHECK(e.said() == "crash report\n");
}

TEST_CASE("a crash ends the process where the late handler does nothing") {
  const ended e("crash_with_an_idle_handler");
  CHECK(e.killed_by(SIGSEGV));
}

TEST_CASE("a SIGSEGV that the program raises ends it") {
  const ended e("raised_by_the_program");
  CHECK(e.killed_by(SIGSEGV));
}

TEST_CASE("threads that block every signal touch arrays, and hear of no other signal for that") {
  const auto ending = GENERATE(as<std::string>(), "touches_by_a_deaf_thread", "touches_by_a_late_deaf_thread",
                               "touches_by_a_deaf_main", "deaf_threads_stay_as_they_were");
  CAPTURE(ending);
  const ended e(ending);
  CHECK(e.exited(0));
  CHECK(e.said() == "");
}
