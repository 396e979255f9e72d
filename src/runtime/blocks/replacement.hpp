// Which block goes next: segmented FIFO, the page replacement of VMS.
//
// Hits on mapped blocks are invisible, so exact LRU cannot be had.  Resident blocks stand in two
// queues: `active` ones are mapped; when half of the residents are not yet `inactive`, each block that
// comes in lets up to four of the longest-standing active ones age: their access is taken away while
// their bytes stay.  A touch of an inactive block is a cheap soft fault that brings it back to the active
// end; victims are taken from the head of `inactive`.  Misses stay within a few per cent of exact LRU
// (bench: `oocbench policy`; beside exact LRU alone, `oocbench lru`).
//
// `inactive` from its head, then `active` from its head, is the order in which the blocks were last seen.  Who else
// goes by it, following `next` and `prev` within each queue: resident_set::take_clean_victim() (which of them goes),
// block_writer in runtime/pager (what is written next), block_ageing (how many age: as wants_ageing() says).  From the
// tails take_clean_victim() finds the blocks that were touched last and must stay: an instruction that needs several
// (frame_needs) would fault for ever without them.
//
// There is one policy.  Another is written in place of this one, and compared by `oocbench policy` before and after,
// whose figures are the same at each run.  What it remembers of a block is a member of `frame` (frame_pool.hpp).
//
// Pure bookkeeping: frames are linked here, states change in resident_set.  The pager's lock guards
// every call; nothing allocates.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>

#include "runtime/blocks/frame_pool.hpp"

namespace ooc::detail {

class frame_queue {
 public:
  void push_back(frame* f, frame_list which) noexcept OOC_REQUIRES(pager_mutex) {
    assert(f->list == frame_list::none && which != frame_list::none);
    f->list = which;
    f->next = nullptr;
    f->prev = tail_;
    (tail_ ? tail_->next : head_) = f;
    tail_ = f;
    ++size_;
  }
  void push_front(frame* f, frame_list which) noexcept OOC_REQUIRES(pager_mutex) {
    assert(f->list == frame_list::none && which != frame_list::none);
    f->list = which;
    f->prev = nullptr;
    f->next = head_;
    (head_ ? head_->prev : tail_) = f;
    head_ = f;
    ++size_;
  }
  void remove(frame* f) noexcept OOC_REQUIRES(pager_mutex) {
    assert(size_ > 0 && f->list != frame_list::none);
    assert((f->prev || head_ == f) && (f->next || tail_ == f));
    (f->prev ? f->prev->next : head_) = f->next;
    (f->next ? f->next->prev : tail_) = f->prev;
    f->prev = f->next = nullptr;
    f->list = frame_list::none;
    --size_;
  }
  /// Asserts that what is linked is what was put in here.
  void check_invariants([[maybe_unused]] frame_list which) const noexcept OOC_REQUIRES(pager_mutex) {
    [[maybe_unused]] std::size_t n = 0;
    [[maybe_unused]] const frame* before = nullptr;
    for (const frame* f = head_; f; before = f, f = f->next, ++n) assert(f->list == which && f->prev == before);
    assert(n == size_ && tail_ == before);
  }
  frame* head() const noexcept { return head_; }
  frame* tail() const noexcept { return tail_; }
  std::size_t size() const noexcept { return size_; }

 private:
  frame* head_ = nullptr;
  frame* tail_ = nullptr;
  std::size_t size_ = 0;
};

class replacement {
 public:
  /// A block that came in, or was touched while inactive, or whose owner is busy (block_ageing): it goes to the end,
  /// wherever it was.
  void make_active(frame* f) noexcept OOC_REQUIRES(pager_mutex) {
    forget(f);
    active_.push_back(f, frame_list::active);
  }
  void make_inactive(frame* f) noexcept OOC_REQUIRES(pager_mutex) {
    forget(f);
    inactive_.push_back(f, frame_list::inactive);
  }
  /// A block that is not wanted soon goes before all others.  It may still be mapped.
  void make_next(frame* f) noexcept OOC_REQUIRES(pager_mutex) {
    forget(f);
    inactive_.push_front(f, frame_list::inactive);
  }
  /// Takes the frame out of both queues (pinned, or on its way out).
  void forget(frame* f) noexcept OOC_REQUIRES(pager_mutex) {
    if (f->list == frame_list::active) active_.remove(f);
    if (f->list == frame_list::inactive) inactive_.remove(f);
  }

  /// True while a block that comes in should let others age, so many at a time.
  bool wants_ageing(std::size_t together = 1) const noexcept {
    return inactive_.size() + together <= (inactive_.size() + active_.size()) / 2;
  }
  /// How many of `most` that can age at a time should: the order of the others stays that of one by one but for
  /// a 32nd of them.
  std::size_t worth_ageing(std::size_t most) const noexcept {
    return std::max<std::size_t>(1, std::min(most, (inactive_.size() + active_.size()) / 32));
  }
  void check_invariants() const noexcept OOC_REQUIRES(pager_mutex) {
    active_.check_invariants(frame_list::active);
    inactive_.check_invariants(frame_list::inactive);
  }

  frame* oldest_active() const noexcept { return active_.head(); }
  frame* oldest() const noexcept { return inactive_.head(); }
  /// From the block that came in or was touched last (go on with `prev`); all inactive ones came before.
  frame* newest_active() const noexcept { return active_.tail(); }
  frame* newest_inactive() const noexcept { return inactive_.tail(); }
  std::size_t inactive_size() const noexcept { return inactive_.size(); }

 private:
  frame_queue active_;
  frame_queue inactive_;
};

}  // namespace ooc::detail
