// The cost of the pager itself: a touch of a block that is not in memory, with nothing to transfer.
//
//     us_per_block            fault, one block out, one block in; 2 MiB blocks in huge pages
//     us_per_block_contended  the same beside a thread of the process that never sleeps, whose
//                             processor must be told of every change to the page tables
//     us_per_block_open_for_reading   as us_per_block, of an array that may not be written
//     us_soft_fault           a touch of a block whose bytes are still there but protected
//
// Processor time of the touching thread, which is all there is to it where nothing is transferred;
// us_per_block_wall is the time on the clock, which counts other programs' share too.
//
// With userfaultfd, where the kernel has it (`userfaultfd` in the result), other threads do the work, so only
// the time on the clock says something: NAME_wall_userfaultfd_over_signal is its ratio to the way by signals.  Blocks
// are read; where they may be written that is the hard case of userfaultfd (docs/decisions/0019-userfaultfd.md).
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

#include "measure/child.hpp"
#include "measure/empty_source.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/runtime.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/pager/segment.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using ooc::detail::segment;

constexpr std::uint64_t block_bytes = 2_MiB;

class touched_segment {
 public:
  touched_segment(ooc::runtime& rt, std::uint64_t blocks, bool writable = true)
      : segment_(rt.pager(), {.name = "fault", .block_bytes = block_bytes, .blocks = blocks, .writable = writable},
                 source_) {
    segment_.advise(ooc::access_pattern::random);
  }

  /// Reads a word of each of the first `blocks` blocks; returns microseconds of processor time.
  double touch(std::uint64_t blocks) {
    return 1e6 * thread_seconds_of([&] {
             for (std::uint64_t b = 0; b < blocks; ++b) read_word(segment_.base() + b * block_bytes);
           });
  }
  /// Gives every frame real memory: what was never written is the kernel's page of zeros.
  void fill(std::uint64_t blocks) {
    for (std::uint64_t b = 0; b < blocks; ++b) segment_.base()[b * block_bytes] = std::byte{1};
    segment_.invalidate(true);
  }
  std::uint64_t blocks() const { return segment_.blocks(); }
  void forget() { segment_.invalidate(true); }

 private:
  empty_source source_;
  segment segment_;
};

class spinning_thread {
 public:
  ~spinning_thread() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_{[this] {
    while (!stop_.load(std::memory_order_relaxed)) keep(stop_);
  }};
};

}  // namespace

json run_way(const options& o, ooc::mapping_way way) {
  return in_child(0, [&] {
    const std::uint64_t frames = o.memory_or(128_MiB) / block_bytes;
    ooc::runtime rt{
        ooc::runtime_options{.memory = frames * block_bytes, .block = block_bytes, .read_ahead = 1, .mapping = way}};
    touched_segment s(rt, frames * 8);
    paired_ratio alone("us_per_block"), beside("us_per_block_contended"), soft("us_soft_fault");
    paired_ratio wall("us_per_block_wall"), wall_beside("us_per_block_contended_wall");
    paired_ratio read_only("us_per_block_open_for_reading_wall");
    s.fill(frames);
    s.touch(s.blocks());
    for (unsigned k = 0; k < o.rounds_or(15); ++k) {
      const std::uint64_t before = rt.stats().evictions;
      const stopwatch clock;
      const double us = s.touch(s.blocks());
      const double passed = 1e6 * clock.seconds();
      const auto n = static_cast<double>(rt.stats().evictions - before);
      alone.add(us / n);
      wall.add(passed / n);
      {
        const spinning_thread spin;
        const std::uint64_t start = rt.stats().evictions;
        const stopwatch on_clock;
        const double contended = s.touch(s.blocks());
        const double passed_beside = 1e6 * on_clock.seconds();
        const auto evicted = static_cast<double>(rt.stats().evictions - start);
        beside.add(contended / evicted);
        wall_beside.add(passed_beside / evicted);
      }
      // Of as many blocks as there are frames, half age while they come in.
      s.forget();
      s.touch(frames);
      const std::uint64_t soft_before = rt.stats().soft_faults;
      const double again = s.touch(frames);
      soft.add(again / static_cast<double>(rt.stats().soft_faults - soft_before));
      s.touch(s.blocks());
    }
    // The frames have real memory by now, and go to who needs them.
    touched_segment reading(rt, frames * 8, false);
    reading.touch(reading.blocks());
    for (unsigned k = 0; k < o.rounds_or(15); ++k) {
      const std::uint64_t before = rt.stats().evictions;
      const stopwatch clock;
      reading.touch(reading.blocks());
      read_only.add(1e6 * clock.seconds() / static_cast<double>(rt.stats().evictions - before));
    }
    json out;
    alone.put(out);
    wall.put(out);
    beside.put(out);
    wall_beside.put(out);
    read_only.put(out);
    soft.put(out);
    out["frames"] = frames;
    return out;
  });
}

json run_fault(const options& o) {
  json out = run_way(o, ooc::mapping_way::signal);
  try {
    out["userfaultfd"] = run_way(o, ooc::mapping_way::userfaultfd);
  } catch (const std::runtime_error& e) {
    out["userfaultfd"] = e.what();
    return out;
  }
  for (const std::string name :
       {"us_per_block_wall", "us_per_block_contended_wall", "us_per_block_open_for_reading_wall"})
    out[name + "_userfaultfd_over_signal"] = out["userfaultfd"][name].get<double>() / out[name].get<double>();
  return out;
}

}  // namespace bench
