// The cost of a fault that must load, beside its transfer: allocations on the heap and mutexes taken, in
// all threads.  A program of its own, because it replaces operator new and pthread_mutex_lock.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "oocarray/ooc_array.hpp"
#include "support/temporary_folder.hpp"

namespace {

std::atomic<bool> counting{false};
std::atomic<std::uint64_t> allocations{0}, locks{0};

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* const p = std::aligned_alloc(alignment, whole ? whole : alignment);
  if (!p) throw std::bad_alloc();
  return p;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

extern "C" int pthread_mutex_lock(pthread_mutex_t* m) {
  using function = int (*)(pthread_mutex_t*);
  static std::atomic<function> real{nullptr};
  function f = real.load(std::memory_order_relaxed);
  if (!f) real = f = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  if (counting.load(std::memory_order_relaxed)) locks.fetch_add(1, std::memory_order_relaxed);
  return f(m);
}

using namespace ooc;

namespace {

// A thread that goes to sleep until another has done its part.
std::uint64_t sleeps() {
  rusage u{};
  ::getrusage(RUSAGE_SELF, &u);
  return static_cast<std::uint64_t>(u.ru_nvcsw);
}

}  // namespace

TEST_CASE("a fault that loads a block from a local store allocates no more than is documented") {
  struct limits {
    std::size_t block;
    double allocations, locks;
  };
  // The first is read by the thread that touches it, the second by one of the node's.
  const limits most = GENERATE(limits{64_KiB, 0.5, 7}, limits{128_KiB, 6, 12});
  allocations = locks = 0;
  testing::temporary_folder folder;
  constexpr std::size_t blocks = 256;
  const std::size_t in_block = most.block / sizeof(double);
  runtime rt({.memory = 64_MiB, .block = most.block, .grains = false});
  const store s = store::open("local:" + (folder / "s").string());
  {
    ooc_array<double, 1> a{rt, s, "a", create, {in_block * blocks}};
    for (std::size_t i = 0; i < a.size(); i += in_block) a[i] = 1;
  }
  const ooc_array<double, 1> a{rt, s, "a", open_read_only, {.pattern = access_pattern::random}};
  double sum = 0;
  const auto touch = [&](std::size_t first, std::size_t n) {
    for (std::size_t k = first; k < first + n; ++k) sum += a[k * 89 % blocks * in_block];
  };
  touch(0, 56);  // what is made once
  const std::uint64_t faults = rt.stats().faults;
  const std::uint64_t slept = sleeps();
  counting = true;
  touch(56, 200);
  counting = false;
  const std::uint64_t slept_after = sleeps();
  CHECK(sum == blocks);
  CHECK(rt.stats().faults - faults == 200);
  const auto each = [](std::uint64_t n) { return static_cast<double>(n) / 200; };
  std::printf("for each fault: %.2f allocations, %.2f mutexes, %.2f times that a thread went to sleep\n",
              each(allocations), each(locks), each(slept_after - slept));
  CHECK(each(allocations) <= most.allocations);
  CHECK(each(locks) <= most.locks);
}
