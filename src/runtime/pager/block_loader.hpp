// Loads: from the block that is wanted to the block that is `ready`.
//
// A block that is `loading` has a frame of its own, and its transfer is counted before others can see
// that state.  Its load ends once, in on_loaded(), on a thread of the store or of whoever started it:
// `ready`, or `ro` where it is mapped without a touch; or `out`, where it failed, or was invalidated
// meanwhile and nobody waits.  A load that failed while a fault waits for it ends the process.
//
// Lock: the pager's; released while a source is called.  Threads: the service thread starts what
// faults and pins wait for, the program's calls what they want ahead.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/pager/block_writer.hpp"
#include "runtime/pager/grains.hpp"
#include "runtime/pager/pager_state.hpp"

namespace ooc::detail {

/// Of what is read ahead: `waits` for its first touch; or is mapped, for reading, but for one in
/// block_loader::most_for_a_touch, whose touch tells how far the program has come.  What is `due` is not read ahead:
/// the program waits for it.
enum class arrival : std::uint8_t { waits, maps_itself, due };

class block_loader {
 public:
  static constexpr unsigned most_together = 32;  ///< blocks that one request loads
  static constexpr unsigned most_for_a_touch = 16;

  block_loader(pager_state& state, block_writer& writer, grains& parts) noexcept
      : state_(state), writer_(writer), grains_(parts) {}

  /// Starts the load that a thread waits for, if it still does; false where no frame is to be had.
  bool start_miss(unique_lock& l, const touch_event& e) OOC_REQUIRES(pager_mutex);

  /// Starts the load for which grains::merge() has given a frame.
  void load_merged(unique_lock& l, frame* f) OOC_REQUIRES(pager_mutex) { start_load(l, f, load_part::whole); }

  /// For a fault handler: reads a block that is out in the calling thread, so that it is `ready`.  False where that
  /// takes more than a frame that is to be had and one read.
  bool load_inline(segment_state& s, block_index index) noexcept OOC_EXCLUDES(pager_mutex);

  /// Starts to load blocks for which no fault waits, those that come whole with one request; false
  /// where no frame is to be had.  `then`: what becomes of them when they have arrived.
  bool fetch(unique_lock& l, segment_state& s, std::span<const block_index> which, arrival then = arrival::waits)
      OOC_REQUIRES(pager_mutex);

 private:
  void start_load(unique_lock& l, frame* f, load_part part) OOC_REQUIRES(pager_mutex);
  void load(frame* f, load_part part);
  void map_ahead(unique_lock& l, frame* f) OOC_REQUIRES(pager_mutex);
  void on_loaded(frame* f, const failure& result, std::uint64_t bytes);
  void start_joint_load(unique_lock& l, segment_state& s, std::span<frame* const> frames) OOC_REQUIRES(pager_mutex);
  void on_joint_load(std::span<frame* const> frames, const failure& result, std::uint64_t bytes);
  void count_read(segment_state& s, block_index b, std::uint64_t bytes) noexcept;

  pager_state& state_;
  block_writer& writer_;
  grains& grains_;
};

}  // namespace ooc::detail
