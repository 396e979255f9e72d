#include "storage/base/fault_signals.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace ooc::storage {

namespace {

constexpr const char* threads_folder = "/proc/self/task";

/// glibc's SIGSETXID.
constexpr int setuid_signal = 33;

/// The struct of the system call rt_sigaction; glibc's struct sigaction is another.
struct kernel_action {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};

#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
constexpr bool layout_is_known = true;
#else
constexpr bool layout_is_known = false;
#endif

bool exchange_action(const kernel_action* now, kernel_action* before) noexcept {
  return ::syscall(SYS_rt_sigaction, setuid_signal, now, before, sizeof before->mask) == 0;
}

std::atomic<void (*)(int, siginfo_t*, void*)> handler_of_glibc{nullptr};
const char our_value = 0;  ///< its address is what our signals bring

/// Not instrumented: ThreadSanitizer has a thread of its own, which blocks all signals and knows nothing of
/// instrumentation.
__attribute__((no_sanitize("thread"))) void on_setuid_signal(int signal, siginfo_t* info, void* context) {
  if (info->si_code == SI_QUEUE && info->si_value.sival_ptr == &our_value) {
    auto& restored = static_cast<ucontext_t*>(context)->uc_sigmask;
    sigdelset(&restored, SIGSEGV);
    sigdelset(&restored, SIGBUS);
    return;
  }
  handler_of_glibc.load(std::memory_order_acquire)(signal, info, context);
}

/// glibc installs its handler before it makes the first thread, and for good.
bool install_before_glibc() noexcept {
  if (!layout_is_known) return false;
  kernel_action now{};
  if (!exchange_action(nullptr, &now) || !(now.flags & SA_SIGINFO) || !now.handler) return false;
  if (now.handler == on_setuid_signal) return true;
  handler_of_glibc.store(now.handler, std::memory_order_release);
  now.handler = on_setuid_signal;
  return exchange_action(&now, nullptr);
}

/// False where the thread is there and was not told.
bool tell(pid_t thread) noexcept {
  siginfo_t info{};
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_ptr = const_cast<char*>(&our_value);
  return ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), thread, setuid_signal, &info) == 0 || errno == ESRCH;
}

constexpr std::uint64_t bit_of(int signal) noexcept { return std::uint64_t{1} << (signal - 1); }

/// Whether it blocks one of the two and has not been told yet.  A thread that has ended meanwhile blocks nothing.
bool is_deaf(const std::filesystem::path& thread) {
  std::uint64_t pending = 0, blocked = 0;
  std::ifstream in(thread / "status");
  for (std::string word; in >> word;)
    if (word == "SigPnd:")
      in >> std::hex >> pending;
    else if (word == "SigBlk:")
      in >> std::hex >> blocked;
  return blocked & (bit_of(SIGSEGV) | bit_of(SIGBUS)) && !(pending & bit_of(setuid_signal));
}

std::string name_of(const std::filesystem::path& thread) {
  std::string name;
  std::ifstream in(thread / "comm");
  std::getline(in, name);
  return name;
}

}  // namespace

void unblock_faults_here() noexcept {
  sigset_t faults;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  sigaddset(&faults, SIGBUS);
  ::pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
}

std::vector<named_thread> unblock_faults_elsewhere() {
  std::vector<named_thread> not_told;
  std::error_code e;  // without /proc nothing is known of other threads
  for (std::filesystem::directory_iterator i(threads_folder, e), end; !e && i != end; i.increment(e)) {
    if (!is_deaf(i->path())) continue;
    const auto id = static_cast<pid_t>(std::stol(i->path().filename()));
    if (!install_before_glibc() || !tell(id)) not_told.push_back({id, name_of(i->path())});
  }
  return not_told;
}

new_threads::new_threads()
    : last_id_(::open("/proc/sys/kernel/ns_last_pid", O_RDONLY | O_CLOEXEC)),
      folder_(::open(threads_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

std::uint64_t new_threads::now() const noexcept {
  char text[24];
  const ssize_t n = last_id_ ? ::pread(last_id_.get(), text, sizeof text, 0) : -1;
  if (std::uint64_t id = 0; n > 0 && std::from_chars(text, text + n, id).ec == std::errc{}) return id;
  struct stat s {};
  return folder_ && ::fstat(folder_.get(), &s) == 0 ? s.st_nlink : 0;
}

}  // namespace ooc::storage
