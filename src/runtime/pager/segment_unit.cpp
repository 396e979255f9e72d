#include "runtime/pager/pager.hpp"
#include "runtime/pager/segment.hpp"

namespace ooc::detail {

segment_unit::segment_unit(const segment& s, std::uint64_t place) noexcept : segment_(&s) {
  const segment_state& all = *s.state_;
  grain_ = all.at(place / all.block_bytes()).state() == block_state::in_grains;
  const std::uint64_t n = grain_ ? grain_bytes : all.block_bytes();
  begin_ = place / n * n;
  end_ = begin_ + n;
}

block& segment_unit::block_itself() const noexcept {
  const segment_state& s = *segment_->state_;
  return s.at(begin_ / s.block_bytes());
}

segment_state& segment_unit::state() const noexcept { return grain_ ? *segment_->grains_ : *segment_->state_; }

bool segment_unit::is_out() const noexcept {
  const block_state now = block_itself().state();
  if (!grain_ || now != block_state::in_grains) return now == block_state::out;
  return state().at(begin_ / grain_bytes).state() == block_state::out;
}

bool segment_unit::is_mapped() const noexcept {
  const block_state now = block_itself().state();
  const bool in_grains = grain_ && now == block_state::in_grains;
  return access_in(in_grains ? state().at(begin_ / grain_bytes).state() : now) != block_access::none;
}

void segment_unit::await() const noexcept {
  const auto await_block = [](block& b) {
    for (;;) {
      const std::uint32_t word = b.word.load(std::memory_order_acquire);
      const block_state now = state_of(word);
      if (now != block_state::queued && now != block_state::loading && now != block_state::busy) return;
      b.wait(word, false);
    }
  };
  await_block(block_itself());
  if (grain_) await_block(state().at(begin_ / grain_bytes));
}

block* segment_unit::keep_out() const noexcept {
  block& b = block_itself();
  if (grain_ && b.state() == block_state::in_grains) {
    const block_index i = begin_ / grain_bytes;
    return segment_->pager_.grains().take_out(state(), i) ? &state().at(i) : nullptr;
  }
  if (!b.try_take(block_state::out)) return nullptr;
  b.promised.store(0, std::memory_order_relaxed);
  return &b;
}

void segment_unit::let_in(block* kept) const noexcept {
  if (kept == &block_itself())
    kept->publish(block_state::out);
  else
    segment_->pager_.grains().let_in(state(), begin_ / grain_bytes);
}

failure segment_unit::pin(access_mode mode) {
  for (;;) {
    const block_index b = begin_ / state().block_bytes();
    const block_range r{b, b + 1};
    failure f = segment_->pager_.pins().pin(state(), {&r, 1}, mode);
    if (!grain_ || f.code != std::errc::resource_unavailable_try_again) return f;
    grain_ = false;
    begin_ = begin_ / state().block_bytes() * state().block_bytes();
    end_ = begin_ + state().block_bytes();
  }
}

void segment_unit::unpin(access_mode mode) noexcept {
  const block_index b = begin_ / state().block_bytes();
  const block_range r{b, b + 1};
  segment_->pager_.pins().unpin(state(), {&r, 1}, mode);
}

}  // namespace ooc::detail
