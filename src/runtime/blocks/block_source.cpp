#include "runtime/blocks/block_source.hpp"

#include <memory>

#include "storage/base/mutex.hpp"

namespace ooc::detail {

namespace {

/// Joins the answers of several loads: the first failure wins, `done` comes after the last.
struct joint_answer {
  ooc::mutex mutex;
  std::size_t missing OOC_GUARDED_BY(mutex);
  failure first OOC_GUARDED_BY(mutex);
  block_source::completion done;

  joint_answer(std::size_t n, block_source::completion d) : missing(n), done(std::move(d)) {}

  void take(const failure& f) {
    failure result;
    {
      const lock_guard lock(mutex);
      if (f && !first) first = f;
      if (--missing > 0) return;
      result = first;
    }
    done(result);
  }
};

}  // namespace

std::uint64_t block_source::load_together(std::span<const block_place> blocks, completion done) {
  const auto all = std::make_shared<joint_answer>(blocks.size(), std::move(done));
  std::uint64_t bytes = 0;
  for (const block_place& b : blocks) {
    try {
      bytes += load(b.block, load_part::whole, b.frame, [all](const failure& f) { all->take(f); });
    } catch (const std::exception& e) {
      all->take({std::make_error_code(std::errc::not_enough_memory), e.what()});
    }
  }
  return bytes;
}

}  // namespace ooc::detail
