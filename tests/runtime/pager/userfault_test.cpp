// Tests of what is particular to mapping by userfaultfd: system calls on blocks that are not in memory, and the
// moment in which a block comes in.  The suites of pager and array run over this way as well.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <thread>

#include "runtime/blocks/sys.hpp"
#include "runtime/blocks/userfault_calls.hpp"
#include "runtime/blocks/userfault_mapping.hpp"
#include "support/other_user.hpp"
#include "support/pager_words.hpp"
#include "support/pauses.hpp"
#include "support/rounds.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::detail;
using ooc::testing::page_words;
using namespace ooc::test;

namespace {

runtime_options by_userfaultfd(std::uint64_t blocks, std::uint64_t block_bytes = small_block) {
  return {.memory = blocks * block_bytes, .block = block_bytes, .mapping = mapping_way::userfaultfd};
}

/// False, and a line that says so, where the kernel cannot map blocks so.
bool userfaults_here() {
  std::string why;
  if (userfault_mapping::open(why)) return true;
  WARN("not run: " << why);
  return false;
}

/// The same where system calls on absent blocks cannot be served.
bool kernel_faults_here() {
  std::string why = "faults of system calls need a privilege";
  const auto m = userfault_mapping::open(why);
  if (m && m->serves_system_calls()) return true;
  WARN("not run: " << why);
  return false;
}

struct words_in_store {
  explicit words_in_store(std::size_t blocks, std::size_t block_bytes = small_block)
      : source(blocks, block_bytes, 2, 50), count(blocks * block_bytes / 8) {
    for (std::size_t i = 0; i < count; ++i) source.as<std::uint64_t>()[i] = i;
  }
  memory_source source;
  std::size_t count;
};

/// While it exists the system refuses new threads: their stacks would be larger than all addresses.
class no_more_threads {
 public:
  no_more_threads() {
    ::pthread_getattr_default_np(&before_);
    pthread_attr_t a;
    ::pthread_getattr_default_np(&a);
    REQUIRE(::pthread_attr_setstacksize(&a, std::size_t{1} << 47) == 0);
    REQUIRE(::pthread_setattr_default_np(&a) == 0);
    ::pthread_attr_destroy(&a);
  }
  ~no_more_threads() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  no_more_threads(const no_more_threads&) = delete;
  no_more_threads& operator=(const no_more_threads&) = delete;

 private:
  pthread_attr_t before_;
};

class open_file {
 public:
  open_file(const std::filesystem::path& p, int flags) : fd_(::open(p.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~open_file() { ::close(fd_); }
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

TEST_CASE("write() sends an array eight times larger than the budget, read() fills one") {
  if (!kernel_faults_here()) return;
  runtime rt(by_userfaultfd(8));
  CHECK(rt.stats().kernel_access == 1);
  const testing::temporary_folder folder;
  words_in_store from(64), to(64);
  const auto bytes = static_cast<ssize_t>(from.count * 8);
  {
    segment s(rt.pager(), {.name = "from", .block_bytes = small_block, .blocks = 64}, from.source);
    const open_file f(folder / "f", O_WRONLY | O_CREAT);
    CHECK(::write(f.fd(), s.base(), from.count * 8) == bytes);
    CHECK(s.dirty_blocks() == 0);  // reading does not modify
  }
  for (std::size_t i = 0; i < to.count; ++i) to.source.as<std::uint64_t>()[i] = 0;
  {
    segment s(rt.pager(), {.name = "to", .block_bytes = small_block, .blocks = 64}, to.source);
    const open_file f(folder / "f", O_RDONLY);
    CHECK(::read(f.fd(), s.base(), to.count * 8) == bytes);
    CHECK_FALSE(s.writeback());
  }
  CHECK(std::equal(from.source.as<std::uint64_t>(), from.source.as<std::uint64_t>() + from.count,
                   to.source.as<std::uint64_t>()));
  CHECK(rt.stats().resident_bytes <= rt.stats().budget_bytes);
}

TEST_CASE("another process reads and writes blocks that are not in memory") {
  if (!kernel_faults_here()) return;
  // The kernel holds as many pages at a time as two of its own have room for addresses of: 4 MiB of 4 KiB, 64 of 16
  // KiB.
  const auto kernel_page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t held = 2 * kernel_page / sizeof(void*) * kernel_page;
  runtime rt(by_userfaultfd(std::clamp<std::uint64_t>(2 * held / small_block + 16, 144, 528)));
  words_in_store store(512);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 512}, store.source);
  std::vector<std::uint64_t> copy(store.count);
  iovec here{copy.data(), store.count * 8}, there{s.base(), store.count * 8};
  const auto bytes = static_cast<ssize_t>(store.count * 8);
  CHECK(::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == bytes);
  CHECK(std::equal(copy.begin(), copy.end(), store.source.as<std::uint64_t>()));
  for (std::uint64_t& w : copy) w = ~w;
  CHECK(::process_vm_writev(::getpid(), &here, 1, &there, 1, 0) == bytes);
  CHECK_FALSE(s.writeback());
  CHECK(std::equal(copy.begin(), copy.end(), store.source.as<std::uint64_t>()));
}

TEST_CASE("sendmsg() sends blocks that are not in memory, recvmsg() fills such") {
  if (!kernel_faults_here()) return;
  runtime rt(by_userfaultfd(16));
  words_in_store from(64), to(64);
  segment a(rt.pager(), {.name = "from", .block_bytes = small_block, .blocks = 64}, from.source);
  segment b(rt.pager(), {.name = "to", .block_bytes = small_block, .blocks = 64}, to.source);
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const std::size_t bytes = from.count * 8;
  for (std::size_t i = 0; i < to.count; ++i) to.source.as<std::uint64_t>()[i] = 0;
  // Each call goes on where the last one has ended.
  const auto carry = [bytes](int end, std::byte* memory, auto call) {
    for (std::size_t at = 0; at < bytes;) {
      iovec part{memory + at, bytes - at};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      const ssize_t n = call(end, &message, 0);
      if (n <= 0) return false;
      at += static_cast<std::size_t>(n);
    }
    return true;
  };
  bool sent = false;
  std::thread sender([&] {
    sent = carry(ends[0], a.base(), ::sendmsg);
    ::shutdown(ends[0], SHUT_WR);
  });
  CHECK(carry(ends[1], b.base(), ::recvmsg));
  sender.join();
  CHECK(sent);
  for (const int end : ends) ::close(end);
  CHECK_FALSE(b.writeback());
  CHECK(std::equal(from.source.as<std::uint64_t>(), from.source.as<std::uint64_t>() + from.count,
                   to.source.as<std::uint64_t>()));
}

TEST_CASE("a system call that writes to an array open for reading fails, and reading goes on") {
  if (!kernel_faults_here()) return;
  runtime rt(by_userfaultfd(8));
  words_in_store store(16);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 16, .writable = false}, store.source);
  const open_file zeros("/dev/zero", O_RDONLY);
  for (const std::size_t b : {0, 1, 0}) {
    CHECK(::read(zeros.fd(), s.base() + b * small_block, 100) == -1);
    CHECK(errno == EFAULT);
    CHECK(words(s)[b * words_per_block] == b * words_per_block);
  }
  for (std::size_t i = 0; i < store.count; i += page_words) CHECK(words(s)[i] == i);
}

TEST_CASE("without the privilege a system call on an absent block fails, and a pin helps") {
  if (!testing::can_be_others() || !kernel_faults_here()) return;
  testing::other_user stranger(testing::stranger, testing::stranger, {}, {[]() -> std::string {
                                 runtime rt(by_userfaultfd(8));
                                 if (rt.stats().userfaultfd != 1) return "not by userfaultfd";
                                 if (rt.stats().kernel_access) return "";  // this system grants it to everybody
                                 words_in_store store(16);
                                 segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 16},
                                           store.source);
                                 int ends[2];
                                 if (::pipe(ends) != 0) return "no pipe";
                                 if (::write(ends[1], s.base(), 100) != -1 || errno != EFAULT) return "it was written";
                                 if (words(s)[words_per_block] != words_per_block) return "a touch was not served";
                                 const block_range first[] = {{0, 1}};
                                 if (s.pin(first, access_mode::read)) return "not pinned";
                                 if (::write(ends[1], s.base(), 100) != 100) return "a pinned block was not written";
                                 s.unpin(first, access_mode::read);
                                 return "";
                               }});
  CHECK(stranger.run(0) == "");
}

// A page that is moved to its block is writable until it is protected: whoever writes in that moment
// modifies a block that passes for unmodified, and the write is lost with the block.
TEMPLATE_TEST_CASE_SIG("a write beside the read that brings the block in is never lost", "",
                       ((std::size_t block_bytes), block_bytes), (std::size_t{64} << 10), (std::size_t{2} << 20)) {
  runtime rt({.memory = 8 * block_bytes, .block = block_bytes});
  constexpr std::size_t blocks = 2;
  memory_source source(blocks, block_bytes);
  segment s(rt.pager(), {.name = "a", .block_bytes = block_bytes, .blocks = blocks}, source);
  auto* const w = reinterpret_cast<std::atomic<std::uint64_t>*>(s.base());
  std::atomic<std::uint64_t> round{0}, written{0};
  const std::uint64_t rounds = block_bytes > small_block ? 600 : 1500;
  const std::size_t last = block_bytes / 8 - 1;
  std::thread writer([&] {
    for (std::uint64_t r = 1; r <= rounds; ++r) {
      while (round.load(std::memory_order_acquire) < r) std::this_thread::yield();
      // It follows the reader as soon as the block is there.
      for (std::uint64_t n = 0; n < r % 40; ++n) round.load(std::memory_order_acquire);
      w[last].store(r, std::memory_order_relaxed);
      written.store(r, std::memory_order_release);
    }
  });
  std::size_t lost = 0;
  for (std::uint64_t r = 1; r <= rounds; ++r) {
    round.store(r, std::memory_order_release);
    static_cast<void>(w[0].load(std::memory_order_relaxed));
    while (written.load(std::memory_order_acquire) < r) std::this_thread::yield();
    if (s.writeback()) ++lost;
    if (s.invalidate(false) != segment::invalidated::done) ++lost;
    lost += source.as<std::uint64_t>()[last] != r;
  }
  writer.join();
  CHECK(lost == 0);
}

// The kernel moves pages within one mapping only, and a block that was read keeps the one that it came in.
TEST_CASE("a block at the array's end is written to after it was read and the end has moved") {
  const std::size_t block_bytes = 128 * page_bytes, words_of_block = block_bytes / 8;
  runtime rt({.memory = 8 * block_bytes, .block = block_bytes});
  words_in_store all(2, block_bytes);
  segment s(rt.pager(),
            {.name = "a", .block_bytes = block_bytes, .blocks = 1, .max_blocks = 2, .bytes = 75 * page_bytes},
            all.source);
  volatile std::uint64_t* const w = words(s);
  const auto read_then_forget = [&] {
    REQUIRE(w[3] == 3);
    REQUIRE(s.invalidate(false) == segment::invalidated::done);
  };
  read_then_forget();
  s.grow(2, block_bytes + 75 * page_bytes);
  w[words_of_block - 1] = 7;
  REQUIRE_FALSE(s.writeback());
  CHECK(all.source.as<std::uint64_t>()[words_of_block - 1] == 7);

  REQUIRE(s.invalidate(false) == segment::invalidated::done);
  read_then_forget();
  s.shrink(1, 50 * page_bytes);
  read_then_forget();
  s.grow(1, block_bytes);
  w[words_of_block - 1] = 8;
  REQUIRE_FALSE(s.writeback());
  CHECK(all.source.as<std::uint64_t>()[words_of_block - 1] == 8);
}

TEST_CASE("what a device writes into blocks that are not pinned arrives, whatever is flushed meanwhile") {
  if (!kernel_faults_here()) return;
  const testing::temporary_folder folder;
  const std::size_t bytes = 16 * small_block;
  const std::unique_ptr<std::byte, decltype(&std::free)> data(
      static_cast<std::byte*>(std::aligned_alloc(page_bytes, bytes)), &std::free);
  {
    const open_file f(folder / "f", O_WRONLY | O_CREAT);
    for (std::size_t i = 0; i < bytes / 8; ++i) reinterpret_cast<std::uint64_t*>(data.get())[i] = i * 7 + 1;
    REQUIRE(::write(f.fd(), data.get(), bytes) == static_cast<ssize_t>(bytes));
    REQUIRE(::fsync(f.fd()) == 0);
  }
  const open_file direct(folder / "f", O_RDONLY | O_DIRECT);
  if (direct.fd() < 0) {
    WARN("not run: " << folder.path() << " has no O_DIRECT");
    return;
  }
  // The kernel holds all that one call transfers.
  runtime rt(by_userfaultfd(26));
  memory_source source(32, small_block);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 32}, source);
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> failed{0};
  std::thread flusher([&] {
    while (!stop) {
      failed += bool(s.writeback());
      for (std::size_t b = 16; b < 32; ++b) failed += words(s)[b * words_per_block] != 0;  // evicts
    }
  });
  std::size_t wrong = 0;
  for (int round = 0; round < 60; ++round) {
    for (std::size_t i = 0; i < bytes; i += page_bytes) s.base()[i] = std::byte{0xaa};
    wrong += ::pread(direct.fd(), s.base(), bytes, 0) != static_cast<ssize_t>(bytes);
    wrong += std::memcmp(s.base(), data.get(), bytes) != 0;
  }
  stop = true;
  flusher.join();
  CHECK(wrong == 0);
  CHECK(failed == 0);
  CHECK_FALSE(s.writeback());
  CHECK(std::memcmp(source.as<std::byte>(), data.get(), bytes) == 0);
}

namespace {

/// Has the kernel hold a page, as it does for a transfer, by a copy from it to a place where none comes.
class held_page {
 public:
  explicit held_page(std::byte* page)
      : fd_(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC))),
        to_(::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    uffdio_api api{UFFD_API, 0, 0};
    REQUIRE(sys::userfault_call(fd_, UFFDIO_API, &api));
    REQUIRE(sys::userfault_register(fd_, to_, page_bytes, UFFDIO_REGISTER_MODE_MISSING));
    copier_ = std::thread([this, page] {
      iovec from{page, page_bytes}, to{to_, page_bytes};
      copied_ = ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0);
    });
    uffd_msg waits{};
    REQUIRE(::read(fd_, &waits, sizeof waits) == sizeof waits);
  }
  /// How many bytes were copied.
  ssize_t let_go() {
    uffdio_zeropage z{{sys::address_of(to_), page_bytes}, 0, 0};
    sys::userfault_call(fd_, UFFDIO_ZEROPAGE, &z);
    copier_.join();
    ::close(fd_);
    ::munmap(to_, page_bytes);
    return copied_;
  }

 private:
  int fd_;
  void* to_;
  ssize_t copied_ = 0;
  std::thread copier_;
};

/// The kernel lets go of what was read a while after it has said that it is there.
class lingering_source : public memory_source {
 public:
  using memory_source::memory_source;
  ~lingering_source() override {
    for (std::thread& t : after_) t.join();
  }
  void load(block_index b, load_part part, std::byte* frame, completion done) override {
    memory_source::load(b, part, frame, [this, frame, done = std::move(done)](const failure& f, std::uint64_t bytes) {
      after_.emplace_back([this, page = std::make_shared<held_page>(frame)] {
        testing::let_pass(std::chrono::milliseconds(5));  // nobody is told that the pager has found it held
        wrong += page->let_go() != static_cast<ssize_t>(page_bytes);
      });
      done(f, bytes);
    });
  }
  std::atomic<int> wrong{0};

 private:
  std::vector<std::thread> after_;
};

}  // namespace

TEST_CASE("a block that was read past the page cache comes in though the kernel still holds its pages") {
  if (!kernel_faults_here()) return;
  constexpr std::size_t blocks = 20;
  runtime rt(by_userfaultfd(16, page_bytes));
  lingering_source source(blocks, page_bytes);
  for (std::size_t i = 0; i < blocks * page_words; ++i) source.as<std::uint64_t>()[i] = i;
  {
    segment s(rt.pager(), {.name = "a", .block_bytes = page_bytes, .blocks = blocks, .writable = false}, source);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < blocks * page_words; i += page_words) wrong += words(s)[i] != i;
    CHECK(wrong == 0);
  }
  CHECK(source.wrong == 0);
}

TEST_CASE("of two threads that write one page at once none leaves a block modified that has been written back") {
  if (!userfaults_here()) return;
  constexpr std::size_t blocks = 4;
  const int count = testing::rounds(1500, 20'000);
  runtime rt(by_userfaultfd(16, 2 * page_bytes));
  memory_source source(blocks, 2 * page_bytes);
  segment s(rt.pager(), {.name = "a", .block_bytes = 2 * page_bytes, .blocks = blocks}, source);
  std::barrier together(3);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < count; ++i) {
        together.arrive_and_wait();
        for (std::size_t b = 0; b < blocks; ++b) words(s)[b * 1024 + t] = static_cast<std::uint64_t>(i);
        together.arrive_and_wait();
      }
    });
  std::uint64_t modified = 0, refused = 0;
  for (int i = 0; i < count; ++i) {
    together.arrive_and_wait();
    together.arrive_and_wait();
    refused += bool(s.writeback());
    modified += s.dirty_blocks();
    // Some blocks are in memory in the next round, others are not.
    if (i % 2 == 0) refused += s.invalidate(false) != segment::invalidated::done;
  }
  for (std::thread& t : threads) t.join();
  CHECK(modified == 0);
  CHECK(refused == 0);
  for (std::size_t b = 0; b < blocks; ++b)
    for (std::size_t t = 0; t < 2; ++t)
      CHECK(source.as<std::uint64_t>()[b * 1024 + t] == static_cast<std::uint64_t>(count - 1));
}

// As Linux 6.18 leaves them now and then: see userfault_moved_unsaid().
TEST_CASE("a move goes on behind pages that have moved without being counted") {
  const int fd = sys::open_userfaultfd_for_user_faults();
  uffdio_api api{UFFD_API, sys::userfault_feature_move, 0};
  if (fd < 0 || !sys::userfault_call(fd, UFFDIO_API, &api)) {
    WARN("not run: the kernel has no UFFDIO_MOVE");
    if (fd >= 0) ::close(fd);
    return;
  }
  const std::size_t pages = 4, bytes = pages * page_bytes;
  std::byte* const from = sys::map(nullptr, bytes, PROT_READ | PROT_WRITE, sys::reserve_flags);
  std::byte* const to = sys::map(nullptr, bytes, PROT_READ | PROT_WRITE, sys::reserve_flags);
  REQUIRE((from && to && sys::userfault_register(fd, to, bytes, UFFDIO_REGISTER_MODE_MISSING)));
  for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i / page_bytes + 1);
  const auto move = [&](std::size_t n) { return sys::userfault_move_pages(fd, to, from, n, 0, [] {}); };
  REQUIRE(move(2 * page_bytes) == 2 * page_bytes);
  CHECK(move(bytes) == bytes);
  for (std::size_t i = 0; i < pages; ++i) CHECK(to[i * page_bytes] == static_cast<std::byte>(i + 1));
  std::memset(from + 2 * page_bytes, 9, page_bytes);  // a page at both places is not a moved one
  const std::size_t moved = move(bytes);
  const int error = errno;
  CHECK((moved == 2 * page_bytes && error == EEXIST));
  CHECK(to[2 * page_bytes] == std::byte{3});
  sys::unmap(from, bytes);
  sys::unmap(to, bytes);
  ::close(fd);
}

TEST_CASE("more threads touch absent blocks than serve them") {
  if (!userfaults_here()) return;
  runtime rt(by_userfaultfd(200, page_bytes));
  words_in_store store(2000, page_bytes);
  segment s(rt.pager(), {.name = "a", .block_bytes = page_bytes, .blocks = 2000}, store.source);
  std::vector<std::thread> threads;
  std::atomic<std::size_t> wrong{0};
  for (std::size_t t = 0; t < 100; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t b = t; b < 2000; b += 100) wrong += words(s)[b * page_words] != b * page_words;
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("two threads serve the touches of many where the system has no more") {
  if (!userfaults_here()) return;
  runtime rt(by_userfaultfd(64, page_bytes));
  words_in_store store(2000, page_bytes);
  segment s(rt.pager(), {.name = "a", .block_bytes = page_bytes, .blocks = 2000}, store.source);
  std::vector<std::thread> threads;
  std::atomic<std::size_t> wrong{0};
  std::barrier all_are_there(17);
  for (std::size_t t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      all_are_there.arrive_and_wait();
      for (std::size_t k = 0; k < 2000; ++k) {
        const std::size_t b = (k * 7 + t * 125) % 2000;
        wrong += words(s)[b * page_words] != b * page_words;
      }
    });
  const no_more_threads from_now_on;
  all_are_there.arrive_and_wait();
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}
