#include "runtime/blocks/frame_pool.hpp"

#include <algorithm>
#include <cassert>
#include <fstream>
#include <string>

#include "runtime/blocks/address_room.hpp"
#include "runtime/blocks/block_mapping.hpp"
#include "runtime/blocks/sys.hpp"
#include "storage/base/page.hpp"

namespace ooc::detail {

namespace {

std::size_t system_map_limit() {
  std::ifstream in("/proc/sys/vm/max_map_count");
  std::size_t n = 0;
  return in >> n ? n : 65530;
}

bool is_huge(std::size_t bytes) noexcept { return bytes % sys::huge_page == 0; }

std::size_t alignment_of(std::size_t bytes) noexcept { return is_huge(bytes) ? sys::huge_page : page_bytes; }

}  // namespace

// A resident block takes up to four mappings: itself, the rest of the reservation behind it, and
// the two borders of its empty slot.  The fifth part is the program's.
frame_pool::frame_pool(std::uint64_t budget, block_mapping* mapping)
    : mapping_(mapping), whole_budget_(budget), budget_(budget), max_frames_(system_map_limit() / 5) {}

frame_pool::~frame_pool() {
  for (const auto& c : classes_) {
    sys::unmap(c->region, c->capacity * c->bytes);
    sys::unmap(c->frames, c->capacity * sizeof(frame));
  }
}

frame_class* frame_pool::find(std::size_t bytes, bool in_grains) const noexcept {
  for (const auto& c : classes_)
    if (c->bytes == bytes && c->in_grains == in_grains) return c.get();
  return nullptr;
}

// Memory that was taken off the budget may come back: slots are addresses, they cost nothing.
std::size_t frame_pool::slots_for(std::size_t bytes, bool in_grains) const noexcept {
  const std::size_t slots = whole_budget_ / bytes;
  return in_grains ? slots : std::min(slots, max_frames_);
}

std::uint64_t frame_pool::addresses_for(std::size_t bytes, bool in_grains) const noexcept {
  return find(bytes, in_grains) ? 0 : slots_for(bytes, in_grains) * (bytes + sizeof(frame)) + alignment_of(bytes);
}

frame_class& frame_pool::class_for(std::size_t bytes, block_mapping* mapping, bool in_grains) {
  if (frame_class* const known = find(bytes, in_grains)) return *known;
  auto c = std::make_unique<frame_class>();
  c->bytes = bytes;
  c->cost = bytes + (in_grains ? sizeof(frame) : 0);
  c->mapping = mapping;
  c->in_grains = in_grains;
  c->capacity = slots_for(bytes, in_grains);
  const std::size_t region_bytes = c->capacity * bytes, frames_bytes = c->capacity * sizeof(frame);
  c->region = sys::map_aligned(region_bytes, alignment_of(bytes), PROT_READ | PROT_WRITE);
  std::byte* const frames =
      c->region ? sys::map(nullptr, frames_bytes, PROT_READ | PROT_WRITE, sys::reserve_flags) : nullptr;
  if (!frames) {
    const std::string what =
        "the budget of " + std::to_string(whole_budget_) + " bytes in blocks of " + std::to_string(bytes);
    if (c->region) sys::unmap(c->region, region_bytes);
    refuse_addresses(what, region_bytes + frames_bytes);
  }
  c->frames = reinterpret_cast<frame*>(frames);
  sys::advise(c->region, region_bytes, is_huge(bytes) ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  sys::advise(c->region, region_bytes, MADV_DONTFORK);
  if (mapping) mapping->add_frames(c->region, region_bytes);
  classes_.push_back(std::move(c));
  return *classes_.back();
}

frame* frame_pool::take(frame_class& c) noexcept {
  if (!c.in_grains && frames_mapped_ >= max_frames_) return nullptr;
  if (committed_ > budget_ && !make_room(0, nullptr)) return nullptr;  // more was charged than there was
  frame* f = c.free;
  if (f) {
    c.free = f->next;
  } else {
    if (committed_ + c.cost > budget_ && !make_room(c.cost, &c)) return nullptr;
    if (c.empty) {
      f = c.empty;
      c.empty = f->next;
    } else if (c.made < c.capacity) {
      f = &c.frames[c.made];  // zero pages from the kernel: every field is 0
      f->memory = c.region + c.made * c.bytes;
      f->cls = &c;
      ++c.made;
    } else {
      return nullptr;
    }
    f->zeroed = f->unbacked = true;
    committed_ += c.cost;
  }
  f->next = f->prev = nullptr;
  f->list = frame_list::none;
  used_ += c.cost;
  frames_mapped_ += !c.in_grains;
  assert(sums_hold());
  return f;
}

void frame_pool::give_back(frame* f) noexcept {
  frame_class& c = *f->cls;
  assert(f->list == frame_list::none && used_ >= c.cost && (c.in_grains || frames_mapped_ > 0));
  f->segment = nullptr;
  f->zeroed = false;
  f->next = c.free;
  c.free = f;
  used_ -= c.cost;
  frames_mapped_ -= !c.in_grains;
}

bool frame_pool::make_room(std::size_t bytes, const frame_class* keep) noexcept {
  for (const auto& c : classes_) {
    if (c.get() == keep) continue;
    while (c->free && committed_ + bytes > budget_) {
      frame* f = c->free;
      c->free = f->next;
      sys::advise(f->memory, c->bytes, MADV_DONTNEED);
      f->next = c->empty;
      c->empty = f;
      committed_ -= c->cost;
    }
  }
  return committed_ + bytes <= budget_;
}

void frame_pool::check_invariants() const noexcept {
#ifndef NDEBUG
  assert(sums_hold());
  std::uint64_t used = charged_, committed = charged_;
  std::size_t mapped = 0;
  for (const auto& c : classes_) {
    const auto count = [&](const frame* first) OOC_REQUIRES(pager_mutex) {
      std::size_t n = 0;
      for (const frame* f = first; f; f = f->next, ++n) assert(f->cls == c.get() && !f->segment && n < c->made);
      return n;
    };
    const std::size_t empty = count(c->empty), with_memory = c->made - empty, in_use = with_memory - count(c->free);
    assert(c->made <= c->capacity && in_use <= c->made);
    used += in_use * c->cost;
    committed += with_memory * c->cost;
    if (!c->in_grains) mapped += in_use;
  }
  assert(used == used_ && committed == committed_ && mapped == frames_mapped_);
#endif
}

bool frame_pool::reserve(std::uint64_t bytes) noexcept {
  if (bytes > budget_ || !make_room(bytes, nullptr)) return false;
  budget_ -= bytes;
  assert(sums_hold());
  return true;
}

}  // namespace ooc::detail
