#include "runtime/pager/block_source.hpp"

#include <memory>
#include <mutex>

namespace ooc::detail {

namespace {

/// Joins the answers of several loads: the first failure wins, `done` comes after the last.
struct joint_answer {
  std::mutex mutex;
  std::size_t missing;
  failure first;
  block_source::completion done;

  joint_answer(std::size_t n, block_source::completion d) : missing(n), done(std::move(d)) {}

  void take(const failure& f) {
    {
      const std::lock_guard lock(mutex);
      if (f && !first) first = f;
      if (--missing > 0) return;
    }
    done(first);
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
