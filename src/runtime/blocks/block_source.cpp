#include "runtime/blocks/block_source.hpp"

#include <memory>

#include "storage/base/mutex.hpp"

namespace ooc::detail {

namespace {

/// Joins the answers of several transfers: the first failure wins, `done` comes after the last.
struct joint_answer {
  ooc::mutex mutex;
  std::size_t missing OOC_GUARDED_BY(mutex);
  failure first OOC_GUARDED_BY(mutex);
  std::uint64_t sum OOC_GUARDED_BY(mutex) = 0;
  block_source::completion done;

  joint_answer(std::size_t n, block_source::completion d) : missing(n), done(std::move(d)) {}

  void take(const failure& f, std::uint64_t bytes) {
    failure result;
    {
      const lock_guard lock(mutex);
      if (f && !first) first = f;
      sum += bytes;
      bytes = sum;
      if (--missing > 0) return;
      result = first;
    }
    done(result, bytes);
  }
};

}  // namespace

void block_source::load_together(std::span<const block_place> blocks, completion done) {
  const auto all = std::make_shared<joint_answer>(blocks.size(), std::move(done));
  for (const block_place& b : blocks) {
    try {
      load(b.block, load_part::whole, b.frame,
           [all](const failure& f, std::uint64_t bytes) { all->take(f, bytes); });
    } catch (const std::exception& e) {
      all->take({std::make_error_code(std::errc::not_enough_memory), e.what()}, 0);
    }
  }
}

void block_source::store_together(std::span<const stored_block> blocks, completion done) {
  const auto all = std::make_shared<joint_answer>(blocks.size(), std::move(done));
  for (const stored_block& b : blocks) {
    try {
      store(b.block, b.from, [all](const failure& f, std::uint64_t bytes) { all->take(f, bytes); });
    } catch (const std::exception& e) {
      all->take({std::make_error_code(std::errc::not_enough_memory), e.what()}, 0);
    }
  }
}

}  // namespace ooc::detail
