// A program that ends in the way its first argument names; the second is the folder of its store.
// process_end_test.cpp runs it and looks at what it leaves behind.  Built without NDEBUG, so that
// indices are checked; what must get past the checks goes through data().
#include "runtime/array/ending_program.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "oocarray/algorithm/copy.hpp"
#include "oocarray/block_file.hpp"
#include "oocarray/ooc_array.hpp"
#include "runtime/ranks/self_group.hpp"
#include "support/faulty_io_service.hpp"
#include "support/memory_store.hpp"
#include "support/pauses.hpp"
#include "support/soon.hpp"

using namespace ooc;

namespace {

using doubles = ooc_array<double, 1>;
using matrix = ooc_array<double, 2>;
constexpr std::array<std::size_t, 1> elements = testing::filled_elements;

std::string folder;

store open_store() { return store::open("local:" + folder, {.workers = 2, .staging = 64_KiB}); }

using testing::small_runtime;

void fill(doubles& a) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = testing::filled_value(i);
}

/// A runtime, a store and the filled array, which end in the usual order.
struct filled {
  explicit filled(const runtime_options& o = small_runtime()) : rt(o) { fill(a); }

  runtime rt;
  store s = open_store();
  doubles a{rt, s, "a", create, elements};
};

/// Nothing of this is ever destroyed.
doubles& leaked(const array_options<double>& o = {}, const runtime_options& r = small_runtime()) {
  auto* rt = new runtime(r);
  auto* a = new doubles(*rt, open_store(), "a", create, elements, o);
  fill(*a);
  return *a;
}

/// Of a child that does this and, if that does not end it, leaves by _exit(0).
template <class F>
int status_of_child(F&& f, int signal = 0) {
  const pid_t child = ::fork();
  if (child == 0) {
    f();
    ::_exit(0);
  }
  if (signal != 0) ::kill(child, signal);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

[[noreturn]] void wait_for_a_signal() {
  std::puts("ready");
  std::fflush(stdout);
  for (;;) ::pause();
}

#define EXPECT(condition) \
  if (!(condition)) std::fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition), ::_exit(90)

template <class F>
std::error_code code_of(F&& f) {
  try {
    f();
  } catch (const error& e) {
    return e.code();
  }
  return {};
}

/// A group of one rank that takes every collective call after arm() for a fault.
class lonely_rank final : public process_group {
 public:
  void arm() { armed_ = true; }
  int rank() const noexcept override { return 0; }
  int size() const noexcept override { return 1; }
  void barrier(std::string_view c) override { check(c); }
  bytes broadcast(std::string_view c, std::span<const std::byte> mine, int root) override {
    return check(c), one_.broadcast(c, mine, root);
  }
  std::vector<bytes> all_gather(std::string_view c, std::span<const std::byte> mine) override {
    return check(c), one_.all_gather(c, mine);
  }
  void all_reduce(std::string_view c, std::span<std::uint64_t>, reduction) override { check(c); }
  void exchange(std::string_view c, std::span<const std::span<const std::byte>>, std::span<const std::span<std::byte>>,
                std::shared_ptr<const void>) override {
    check(c);
  }

 private:
  void check(std::string_view call) const {
    if (!armed_) return;
    std::fprintf(stderr, "collective: %.*s\n", static_cast<int>(call.size()), call.data());
    ::_exit(91);
  }
  detail::alone one_;
  bool armed_ = false;
};

/// Writes beyond the first bytes of a file fail from now on.
void forbid_writes() {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_FSIZE, &none);
}

// --- the runtime ends first

/// Its array outlives the runtime.
struct outliving {
  std::unique_ptr<doubles> a;
  std::unique_ptr<runtime> rt = std::make_unique<runtime>(small_runtime());
  store s = open_store();

  outliving() {
    a = std::make_unique<doubles>(*rt, s, "a", create, elements);
    fill(*a);
  }
};

void array_outlives_runtime() {
  std::unique_ptr<doubles> a;
  runtime rt(small_runtime());
  const store s = open_store();
  a = std::make_unique<doubles>(rt, s, "a", create, elements);
  fill(*a);
}

void calls_after_the_runtime() {
  outliving o;
  auto pinned = o.a->pin({{10}, {20}}, access_mode::write);
  pinned.span()[0] = 11;
  o.rt.reset();
  EXPECT(!o.a->is_open());
  EXPECT(code_of([&] { o.a->writeback(); }) == errc::closed);
  EXPECT(code_of([&] { o.a->sync(); }) == errc::closed);
  EXPECT(code_of([&] { o.a->invalidate(discard); }) == errc::closed);
  EXPECT(code_of([&] { o.a->prefetch(o.a->whole()); }) == errc::closed);
  EXPECT(code_of([&] { o.a->pin(o.a->whole()); }) == errc::closed);
  EXPECT(code_of([&] { o.a->resize(5); }) == errc::closed);
  EXPECT(code_of([&] { o.a->at(5); }) == errc::closed);
  EXPECT(code_of([&] { o.a->close(); }) == std::error_code{});
  EXPECT(o.a->extent(0) == elements[0]);
  // The claim to write is free again, in this process too.
  runtime another(small_runtime());
  doubles b(another, o.s, "a", ooc::open);
  EXPECT(b[5] == 6);
  b[5] = 6;
  pinned.release();  // what it held went with the runtime
  o.a.reset();
  EXPECT(b[99] == 100);
}

void touch_after_the_runtime() {
  outliving o;
  o.rt.reset();
  const volatile double x = (*o.a)[70'000];
  (void)x;
}

void blocks_outlive_runtime() {
  auto rt = std::make_unique<runtime>(small_runtime());
  const store s = open_store();
  block_file f = block_file::create(*rt, s, "a", {.rs = 8, .ne = {1000}, .nb = {100}, .bf = {}});
  for (std::uint64_t b = 0; b < 100; ++b) {
    std::array<double, 1000> block;
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<double>(b * block.size() + i + 1);
    f.write_block({b}, std::as_bytes(std::span(block)));
  }
  block_guard guard = f.pin({3}, access_mode::write);
  rt.reset();
  EXPECT(code_of([&] { f.writeback(); }) == errc::closed);
  EXPECT(code_of([&] { f.pin({4}); }) == errc::closed);
  guard.reset();
  f.close();
}

void group_array_outlives_runtime() {
  auto rt = std::make_unique<runtime>(small_runtime());
  const store s = open_store();
  const auto group = std::make_shared<lonely_rank>();
  doubles a(*rt, s, "a", create, elements, {.group = group});
  fill(a);
  group->arm();
  rt.reset();
}

void runtime_cannot_write() {
  auto rt = std::make_unique<runtime>(small_runtime());
  const store s = open_store();
  doubles a(*rt, s, "a", create, elements, {.sparse = true});
  fill(a);
  forbid_writes();
  rt.reset();
}

/// Against the rules: an element is written to an array while it is being copied to.
void written_while_it_is_copied_to() {
  runtime rt(small_runtime());
  const store s = open_store();
  doubles a(rt, s, "a", create, elements, {.sparse = true}), b(rt, s, "b", create, elements, {.sparse = true});
  fill(b);
  copy(b, a, {.progress = [&](const pass_progress&) {
         a[0] = 7;
         return true;
       }});
}

/// The array ends before main() returns, and with it what is modified.
void array_cannot_write() {
  runtime rt(small_runtime());
  doubles a(rt, open_store(), "a", create, elements, {.sparse = true});
  fill(a);
  std::printf("no whole line");
  forbid_writes();
}

void blocks_cannot_write() {
  runtime rt(small_runtime());
  block_file_options o;
  o.sparse = true;
  block_file f = block_file::create(rt, open_store(), "a", {.rs = 8, .ne = {1000}, .nb = {100}, .bf = {}}, o);
  const std::array<double, 1000> block{1};
  f.write_block({7}, std::as_bytes(std::span(block)));
  forbid_writes();
}

void array_drops_what_it_cannot_write() {
  runtime rt(small_runtime());
  doubles a(rt, open_store(), "a", create, elements, {.sparse = true});
  fill(a);
  forbid_writes();
  EXPECT(code_of([&] { a.writeback(); }));
  a.invalidate(ooc::discard);
}

void child_of_one_that_cannot_write() {
  array_cannot_write();
  EXPECT(status_of_child([] { std::exit(0); }) == 0);
}

// --- the process ends

void exit_in_a_function() {
  const filled f;
  std::exit(3);
}

void exit_on_another_thread() {
  leaked();
  std::thread([] { std::exit(3); }).join();
}

void exit_while_others_write() {
  filled f;
  doubles b(f.rt, f.s, "b", create, {1'000'000});
  std::atomic<bool> goes{false};
  std::thread writer([&] {
    for (double value = 1;; ++value)
      for (std::size_t i = 0; i < b.size(); ++i) {
        b[i] = value;
        if (!goes.exchange(true)) goes.notify_all();
      }
  });
  goes.wait(false);
  std::exit(3);
}

void return_with_everything_leaked() { leaked(); }

void exit_of_one_rank() {
  const auto group = std::make_shared<lonely_rank>();
  leaked({.group = group});
  group->arm();
  std::exit(3);
}

std::unique_ptr<doubles> array_before_runtime;
std::unique_ptr<runtime> static_runtime;
std::unique_ptr<store> static_store;
std::unique_ptr<doubles> array_after_runtime;

void fill_static(std::unique_ptr<doubles>& a) {
  static_runtime = std::make_unique<runtime>(small_runtime());
  static_store = std::make_unique<store>(open_store());
  a = std::make_unique<doubles>(*static_runtime, *static_store, "a", create, elements);
  fill(*a);
}

void static_array_before_the_runtime() { fill_static(array_before_runtime); }

void static_array_after_the_runtime() { fill_static(array_after_runtime); }

void local_statics() {
  static runtime rt(small_runtime());
  static store s = open_store();
  static doubles a(rt, s, "a", create, elements);
  fill(a);
}

void static_array_of_a_leaked_runtime() {
  auto* rt = new runtime(small_runtime());
  array_before_runtime = std::make_unique<doubles>(*rt, open_store(), "a", create, elements);
  fill(*array_before_runtime);
}

void uncaught_exception() {
  const filled f;
  throw std::runtime_error("the program's own");
}

/// The runtime refuses this, and nobody catches it.
void uncaught_refusal() {
  filled f;
  const doubles another(f.rt, f.s, "b", create, {std::size_t{1} << 27}, {.block = 1_GiB});
}

void exception_in_noexcept() {
  leaked();
  const auto fails = [] { throw std::runtime_error("the program's own"); };
  [&]() noexcept { fails(); }();
}

void terminate_handler_of_the_program() {
  std::set_terminate([] {
    std::fputs("the program's own handler\n", stderr);
    std::_Exit(5);
  });
  leaked();
  std::terminate();
}

void abort_at_once() {
  leaked();
  std::abort();
}

void exit_under_a_promise() {
  {
    runtime rt(small_runtime());
    doubles a(rt, open_store(), "a", create, elements, {.fill = 7});
  }
  auto* rt = new runtime(small_runtime());
  auto* a = new doubles(*rt, open_store(), "a", ooc::open);
  a->overwrite(a->whole());
  for (std::size_t i = 0; i < 100; ++i) (*a)[i] = 1;
  std::exit(3);
}

void exit_cannot_write() {
  leaked({.sparse = true});
  forbid_writes();
  std::exit(3);
}

/// An array with a modified block, on a node that keeps every write waiting.
storage::faulty_io_service& array_on_a_slow_node(std::chrono::milliseconds end_deadline) {
  auto* nodes = new testing::memory_store(1);
  auto* slow =
      new std::shared_ptr<storage::faulty_io_service>(std::make_shared<storage::faulty_io_service>(nodes->nodes[0]));
  const store s(
      std::make_shared<storage::store_core>("slow:", "test", nodes->metadata, storage::striped_file::nodes{*slow}));
  runtime_options o = small_runtime();
  o.end_deadline = end_deadline;
  auto* rt = new runtime(o);
  auto* a = new doubles(*rt, s, "a", create, {1000});
  (*a)[1] = 2;
  storage::fault_rule rule;
  rule.call = storage::io_kind::write;
  rule.hold = true;
  (*slow)->add(rule);
  return **slow;
}

void exit_waits_in_vain() {
  array_on_a_slow_node(std::chrono::milliseconds(300));
  std::fputs("said before\n", stdout);
  std::exit(0);
}

/// While the store is waited for, the process is stopped for longer than the deadline.  The store answers a little
/// later.
void exit_while_stopped() {
  static constexpr std::chrono::milliseconds end_deadline(1500);
  int waits[2], goes_on[2];
  EXPECT(::pipe(waits) == 0 && ::pipe(goes_on) == 0);
  const pid_t program = ::getpid();
  char c = 's';
  if (::fork() == 0) {
    if (::read(waits[0], &c, 1) != 1) ::_exit(1);
    ::kill(program, SIGSTOP);
    testing::let_pass(2 * end_deadline);
    ::kill(program, SIGCONT);
    ::_exit(::write(goes_on[1], &c, 1) == 1 ? 0 : 1);
  }
  storage::faulty_io_service& node = array_on_a_slow_node(end_deadline);
  std::thread([&node, waits, goes_on, c]() mutable {
    EXPECT(testing::soon([&] { return node.held() > 0; }));
    EXPECT(::write(waits[1], &c, 1) == 1 && ::read(goes_on[0], &c, 1) == 1);
    testing::let_pass(end_deadline / 10);
    node.release();
  }).detach();
  std::exit(3);
}

void child_exits() {
  leaked();
  const int status = status_of_child([] { std::exit(4); });
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 4);
  ::_exit(0);
}

void child_terminates() {
  leaked();
  const int status = status_of_child([] { std::terminate(); });
  EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  ::_exit(0);
}

// --- signals

runtime_options with_signals() {
  runtime_options o = small_runtime();
  o.write_back_on_signals = true;
  return o;
}

void await_signal() {
  const filled f(with_signals());
  wait_for_a_signal();
}

void signal_without_the_option() {
  leaked();
  wait_for_a_signal();
}

void await_ignored_signal() {
  ::signal(SIGINT, SIG_IGN);
  auto rt = std::make_unique<runtime>(with_signals());
  ::raise(SIGINT);
  rt.reset();
  struct sigaction now {};
  ::sigaction(SIGTERM, nullptr, &now);
  EXPECT(now.sa_handler == SIG_DFL);  // as it was
}

void signals_of_the_program() {
  ::signal(SIGTERM, [](int) {});
  EXPECT(code_of([] { runtime rt(with_signals()); }) == errc::busy);
  runtime rt(small_runtime());  // the failure left nothing behind
}

void signal_to_a_child() {
  doubles& a = leaked({}, with_signals());
  const int status = status_of_child([] { ::pause(); }, SIGTERM);
  EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  a.close();  // the parent lives on
  ::_exit(0);
}

// --- touches that are faults

/// A matrix that is touched where it must not be.
struct plate {
  explicit plate(std::size_t rows = 100) : a(rt, s, "dir/plate", create, {rows, 100}) {}

  runtime rt{small_runtime()};
  store s = open_store();
  matrix a;
};

void write_to_read_only() {
  runtime rt(small_runtime());
  const store s = open_store();
  { matrix a(rt, s, "dir/plate", create, {100, 100}); }
  matrix a(rt, s, "dir/plate", open_read_only);
  const volatile double x = std::as_const(a)[1][2];
  (void)x;
  a[3][4] = 1;
}

void touch_of_closed() {
  plate p;
  const double& element = p.a[3][4];
  p.a.close();
  const volatile double x = element;
  (void)x;
}

void touch_far_out() {
  plate p;
  p.a.data()[100'000 * 100 + 4] = 1;
}

void touch_before_the_first() {
  plate p;
  p.a.data()[-3] = 1;
}

/// 1200 rows in blocks of 64 KiB: the last block could hold more rows than the array has.
void touch_past_the_last_page() {
  plate p(1200);
  matrix& a = p.a;
  for (std::size_t i = 0; i < 1200; ++i) a[i][99] = 1;
  a.writeback();
  a.invalidate();
  a[1199][0] = 1;
  a.data()[1206 * 100] = 1;  // 1200 rows end 2560 bytes before a page's end, 1206 begin behind it
}

template <class Array, class F>
void index(F&& touch) {
  runtime rt(small_runtime());
  const store s = open_store();
  Array a(rt, s, "a", create, {100, 100});
  a[99][99] = 1;
  a(99, 99) = 1;
  touch(a);
}

void index_of_a_row() {
  index<matrix>([](matrix& a) { static_cast<void>(a[100]); });
}
void index_in_a_row() {
  index<matrix>([](matrix& a) { a[3][100] = 1; });
}
void indices_of_a_call() {
  index<matrix>([](matrix& a) { a(3, 100) = 1; });
}
void index_in_a_tile() {
  index<matrix>([](matrix& a) {
    auto t = *a.tiles(access_mode::write).begin();
    t(0, 100) = 1;
  });
}
void index_of_a_tiled_array() {
  using tiled = ooc_array<double, 2, layout_tiled>;
  index<tiled>([](tiled& a) { a(100, 3) = 1; });
}

void touch_in_a_child() {
  doubles& a = leaked();
  const int status = status_of_child([&] {
    const volatile double x = a[17];
    (void)x;
  });
  EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  ::_exit(0);
}

// --- handlers of SIGSEGV that come late

/// As Python's faulthandler: gives the signal back to the handler that was there, reports, and
/// raises it again.
struct sigaction before_the_reporter {};
void report_and_raise(int signal) {
  ::sigaction(SIGSEGV, &before_the_reporter, nullptr);
  if (::write(2, "crash report\n", 13) < 0) ::_exit(91);
  ::raise(signal);
}

void install(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_NODEFER | SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, &before_the_reporter);
}

/// Touches that must work; `a` has more blocks than memory holds.
void use(doubles& a) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += 1;
  EXPECT(a[a.size() / 2] == testing::filled_value(a.size() / 2) + 1);
}

[[gnu::no_sanitize("undefined")]] void crash() {
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
}

void touches_behind_a_reporter() {
  filled f;
  install(report_and_raise);
  use(f.a);
}

void touches_after_reclaiming() {
  filled f;
  install(report_and_raise);
  f.rt.reclaim_faults();
  use(f.a);
}

/// As PETSc's handler: it takes each fault for a crash, and ends the process.
void touches_after_a_call() {
  const std::map<std::string, std::function<void(doubles&)>> calls{
      {"prefetch",
       [](doubles& a) {
         a.prefetch({{0}, {10}});
       }},
      {"writeback", [](doubles& a) { a.writeback(); }},
      {"advise", [](doubles& a) { a.advise(access_pattern::sequential); }},
      {"overwrite",
       [](doubles& a) {
         a.overwrite({{0}, {1}});
       }},
      {"pin", [](doubles& a) {
         a.pin({{0}, {1}});
       }}};
  filled f;
  for (const auto& [name, call] : calls) {
    f.a.writeback();
    f.a.invalidate();
    for (const int signal : {SIGSEGV, SIGBUS}) ::signal(signal, [](int) { ::_exit(99); });
    call(f.a);
    const volatile double x = f.a[f.a.size() - 1];
    EXPECT(x == testing::filled_value(f.a.size() - 1));
  }
}

void crash_with_a_late_reporter() {
  filled f;
  install(report_and_raise);
  f.rt.reclaim_faults();
  use(f.a);
  crash();
}

/// The reporter has been switched off, and does nothing.
void crash_with_an_idle_handler() {
  filled f;
  install([](int) {});
  f.rt.reclaim_faults();
  crash();
}

// --- threads that block every signal

/// A thread that was made with every signal blocked, as those of numexpr and uWSGI are, and does what it is told.
class deaf_thread {
 public:
  deaf_thread() {
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    thread_ = std::thread([this] {
      told_.acquire();
      what_();
    });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  void run(std::function<void()> what) {
    what_ = std::move(what);
    told_.release();
    thread_.join();
  }

 private:
  std::function<void()> what_;
  std::binary_semaphore told_{0};
  std::thread thread_;
};

void touches_by_a_deaf_thread() {
  deaf_thread d;
  filled f;
  d.run([&] { use(f.a); });
}

/// Which is made after the array.
void touches_by_a_late_deaf_thread() {
  filled f;
  deaf_thread d;
  f.rt.reclaim_faults();
  d.run([&] { use(f.a); });
}

void touches_by_a_deaf_main() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  filled f;
  std::thread([&] { use(f.a); }).join();  // inherits what main blocks
  f.a[0] = 1;
}

/// All other signals stay blocked, and glibc goes on using its own.
void deaf_threads_stay_as_they_were() {
  deaf_thread d, e;
  filled f;
  EXPECT(::setuid(::getuid()) == 0);
  d.run([&] {
    sigset_t now;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
    EXPECT(!sigismember(&now, SIGSEGV) && !sigismember(&now, SIGBUS));
    EXPECT(sigismember(&now, SIGTERM) && sigismember(&now, SIGINT) && sigismember(&now, SIGRTMIN));
  });
  e.run([] {});
}

void raised_by_the_program() {
  filled f;
  ::raise(SIGSEGV);
  ::_exit(0);
}

#define NAMED(f) \
  { #f, f }
const std::map<std::string, void (*)()> endings{NAMED(array_outlives_runtime),
                                                NAMED(calls_after_the_runtime),
                                                NAMED(touch_after_the_runtime),
                                                NAMED(blocks_outlive_runtime),
                                                NAMED(group_array_outlives_runtime),
                                                NAMED(runtime_cannot_write),
                                                NAMED(written_while_it_is_copied_to),
                                                NAMED(array_cannot_write),
                                                NAMED(blocks_cannot_write),
                                                NAMED(array_drops_what_it_cannot_write),
                                                NAMED(child_of_one_that_cannot_write),
                                                NAMED(exit_in_a_function),
                                                NAMED(exit_on_another_thread),
                                                NAMED(exit_while_others_write),
                                                NAMED(return_with_everything_leaked),
                                                NAMED(exit_of_one_rank),
                                                NAMED(static_array_before_the_runtime),
                                                NAMED(static_array_after_the_runtime),
                                                NAMED(local_statics),
                                                NAMED(static_array_of_a_leaked_runtime),
                                                NAMED(uncaught_exception),
                                                NAMED(uncaught_refusal),
                                                NAMED(exception_in_noexcept),
                                                NAMED(terminate_handler_of_the_program),
                                                NAMED(abort_at_once),
                                                NAMED(exit_under_a_promise),
                                                NAMED(exit_cannot_write),
                                                NAMED(exit_waits_in_vain),
                                                NAMED(exit_while_stopped),
                                                NAMED(child_exits),
                                                NAMED(child_terminates),
                                                NAMED(await_signal),
                                                NAMED(signal_without_the_option),
                                                NAMED(await_ignored_signal),
                                                NAMED(signals_of_the_program),
                                                NAMED(signal_to_a_child),
                                                NAMED(write_to_read_only),
                                                NAMED(touch_of_closed),
                                                NAMED(touch_far_out),
                                                NAMED(touch_before_the_first),
                                                NAMED(touch_past_the_last_page),
                                                NAMED(touch_in_a_child),
                                                NAMED(index_of_a_row),
                                                NAMED(index_in_a_row),
                                                NAMED(indices_of_a_call),
                                                NAMED(index_in_a_tile),
                                                NAMED(index_of_a_tiled_array),
                                                NAMED(touches_behind_a_reporter),
                                                NAMED(touches_after_reclaiming),
                                                NAMED(touches_after_a_call),
                                                NAMED(crash_with_a_late_reporter),
                                                NAMED(crash_with_an_idle_handler),
                                                NAMED(touches_by_a_deaf_thread),
                                                NAMED(touches_by_a_late_deaf_thread),
                                                NAMED(touches_by_a_deaf_main),
                                                NAMED(deaf_threads_stay_as_they_were),
                                                NAMED(raised_by_the_program)};

}  // namespace

int main(int argc, char** argv) {
  const auto ending = argc == 3 ? endings.find(argv[1]) : endings.end();
  if (ending == endings.end()) return std::fputs("which ending, and in which folder?\n", stderr), 2;
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  folder = argv[2];
  ending->second();
}
