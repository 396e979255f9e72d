#include "runtime/blocks/block_source.hpp"

#include <atomic>
#include <memory>
#include <utility>

#include "storage/base/completion_counter.hpp"

namespace ooc::detail {

namespace {

/// Joins the answers of several transfers, and adds up what they transferred.
class joint_answer {
 public:
  joint_answer(std::size_t transfers, block_source::completion done)
      : answers_(transfers, [this, done = std::move(done)](const failure& f) { done(f, bytes_); }) {}

  void take(const failure& f, std::uint64_t bytes) {
    bytes_ += bytes;
    answers_.answer(f);
  }

 private:
  std::atomic<std::uint64_t> bytes_{0};
  completion_counter answers_;
};

}  // namespace

void block_source::load_together(std::span<const block_place> blocks, completion done) {
  const auto all = std::make_shared<joint_answer>(blocks.size(), std::move(done));
  for (const block_place& b : blocks) {
    try {
      load(b.block, load_part::whole, b.frame, [all](const failure& f, std::uint64_t bytes) { all->take(f, bytes); });
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
