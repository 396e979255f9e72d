#include "runtime/array/array_source.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/blocks/diff.hpp"
#include "runtime/geometry/access_log.hpp"

namespace ooc::detail {
namespace {

constexpr std::size_t most_boxes = 64;

/// Below this length, regions cost what a disk's transfers cost, and not what their bytes do.
constexpr std::uint64_t short_run = 16 << 10;

/// Tiles of an array in another order come in short regions, of which those of neighbours in the
/// last dimension join in the file.
unsigned worth_fetching_together(const array_geometry& g) noexcept {
  const std::uint64_t run = g.run_bytes();
  return run < short_run && run < g.block_bytes() ? static_cast<unsigned>(std::min<std::uint64_t>(4, short_run / run))
                                                  : 1;
}

/// The elements of block b that lie in `part`, whole rows; nothing where the part both begins and
/// ends within the block.
std::optional<request> elements_of_part(const array_geometry& g, block_index b, const index_box& part) {
  const index_box block = g.bounds(b);
  const bool begins = block.lower[0]<part.lower[0], ends = block.upper[0]> part.upper[0];
  if (begins && ends) return std::nullopt;
  index_box others = g.whole();
  if (begins)
    others.upper[0] = part.lower[0];
  else
    others.lower[0] = part.upper[0];
  return g.outside_request(b, others);
}

}  // namespace

/// Reads the current snapshot.  Whoever publishes the next one, and then sees no reader, knows that
/// every later reader will see the next one (all four accesses are sequentially consistent).
class array_source::reader {
 public:
  explicit reader(const array_source& s) noexcept : source_(s) {
    source_.readers_.fetch_add(1);
    boxes_ = source_.current_.load();
  }
  ~reader() { source_.readers_.fetch_sub(1); }
  reader(const reader&) = delete;
  reader& operator=(const reader&) = delete;

  const index_box* latest(block_index b) const noexcept { return boxes_ ? boxes_->latest(b) : nullptr; }
  bool covered(block_index b) const noexcept {
    const index_box* box = latest(b);
    return box && boxes_->of->geometry.covers(b, *box);
  }

 private:
  const array_source& source_;
  const snapshot* boxes_;
};

const index_box* array_source::snapshot::latest(block_index b) const noexcept {
  // A block that wraps around a row may be taken to touch a box beside it: it is then loaded whole.
  const array_geometry& g = of->geometry;
  const index_box in = g.bounds(b);
  for (auto box = boxes.rbegin(); box != boxes.rend(); ++box)
    if (overlap(in, *box, g.rank())) return &*box;
  return nullptr;
}

array_source::array_source(const array_geometry& g) : state_(std::make_shared<const state>(state{g, nullptr})) {}

array_source::~array_source() = default;

void array_source::set(const array_geometry& g, file_ptr file) {
  const lock_guard lock(mutex_);
  state_ = std::make_shared<const state>(state{g, std::move(file)});
  publish_file();
  publish_outer();
  together_.store(worth_fetching_together(g), std::memory_order_relaxed);
  publish(nullptr);
}

void array_source::publish_file() {
  const array_geometry& g = state_->geometry;
  std::unique_ptr<const plain_file> next;
  if (g.tile().empty() && g.file_tile().empty())
    if (auto r = storage::striped_file::reader::of(*state_->file))
      next = std::make_unique<plain_file>(plain_file{std::move(r), g.block_bytes(), g.lead()});
  if (next) files_.reserve(files_.size() + 1);  // nothing may throw once it is current
  current_file_.store(next.get());
  if (readers_.load() == 0) files_.clear();
  if (next) files_.push_back(std::move(next));
}

void array_source::publish_outer() {
  const state_ptr next = has_outer_tiles(state_->geometry) ? state_ : nullptr;
  if (next) outer_states_.reserve(outer_states_.size() + 1);  // nothing may throw once it is current
  current_outer_.store(next.get());
  if (readers_.load() == 0) outer_states_.clear();
  if (next) outer_states_.push_back(next);
}

std::uint64_t array_source::load_inline(block_index b, std::byte* frame) noexcept {
  if (!current_file_.load(std::memory_order_relaxed)) return 0;
  const reader keeps_it(*this);
  const plain_file* const f = current_file_.load();
  if (!f || b * f->block_bytes < f->lead) return 0;
  return f->file->read(b * f->block_bytes - f->lead, frame, f->block_bytes) ? f->block_bytes : 0;
}

array_source::state_ptr array_source::current() const {
  const lock_guard lock(mutex_);
  return state_;
}

failure array_source::flush() {
  const state_ptr now = current();
  return now && now->file ? now->file->flush() : failure{};
}

void array_source::promise(const index_box& box) {
  const lock_guard lock(mutex_);
  auto next = std::make_unique<snapshot>();
  next->of = state_;
  if (const snapshot* old = current_.load()) {
    next->boxes = old->boxes;
    // A box within the new one is nobody's latest any more.
    std::erase_if(next->boxes, [&](const index_box& older)
                                   OOC_REQUIRES(mutex_) { return contains(box, older, state_->geometry.rank()); });
    if (next->boxes.size() == most_boxes) next->boxes.erase(next->boxes.begin());
  }
  next->boxes.push_back(box);
  publish(std::move(next));
}

void array_source::clear_promises() {
  const lock_guard lock(mutex_);
  publish(nullptr);
}

void array_source::publish(std::unique_ptr<const snapshot> next) {
  if (next) snapshots_.reserve(snapshots_.size() + 1);  // nothing may throw once it is current
  current_.store(next.get());
  if (readers_.load() == 0) snapshots_.clear();
  if (next) snapshots_.push_back(std::move(next));
}

bool array_source::promised(block_index b) const noexcept { return reader(*this).latest(b) != nullptr; }

bool array_source::nothing_to_load(block_index b, load_part part) const noexcept {
  if (part == load_part::outside_promise && reader(*this).covered(b)) return true;
  if (!current_outer_.load(std::memory_order_relaxed)) return false;
  const reader keeps_it(*this);
  const state* const s = current_outer_.load();
  return s && ooc::detail::is_outer(s->geometry, b);
}

std::size_t array_source::element_at(block_index b, std::uint64_t offset, place_name& at) const noexcept {
  if (!mutex_.try_lock()) return 0;
  const lock_guard lock(mutex_, std::adopt_lock);
  const array_geometry& g = state_->geometry;
  if (b >= g.blocks() && !g.tile().empty()) return 0;
  at = g.element_at(b, offset);
  return g.rank();
}

void array_source::load(block_index b, load_part part, std::byte* frame, completion done) {
  const state_ptr now = current();
  const array_geometry& g = now->geometry;
  request r;
  bool whole = true;
  if (part == load_part::outside_promise) {
    index_box box;
    {
      const reader boxes(*this);
      if (const index_box* latest = boxes.latest(b)) {
        box = *latest;
        whole = false;
      }
    }
    if (!whole) {
      if (g.covers(b, box)) {
        done({}, 0);
        return;
      }
      // Nodes read whole chunks: many small regions may cost more than the block in one go.
      r = g.outside_request(b, box);
      const std::uint64_t limit = g.block_bytes() / 2;
      whole = chunked_bytes(r, storage::chunk_size, limit) > limit;
    }
  }
  if (whole) r = g.block_request(b);
  const std::uint64_t bytes = r.bytes();
  now->file->read(std::make_shared<const request>(std::move(r)), frame,
                  [now, bytes, done = std::move(done)](const failure& f) { done(f, bytes); });
}

void array_source::load_together(std::span<const block_place> blocks, completion done) {
  const state_ptr now = current();
  std::byte* base = blocks.front().frame;
  for (const block_place& b : blocks) base = std::min(base, b.frame);
  request r;
  for (const block_place& b : blocks)
    add_moved(r, now->geometry.block_request(b.block), static_cast<std::uint64_t>(b.frame - base));
  const std::uint64_t bytes = r.bytes();
  now->file->read(std::make_shared<const request>(std::move(r)), base,
                  [now, bytes, done = std::move(done)](const failure& f) { done(f, bytes); });
}

void array_source::store(block_index b, const std::byte* frame, completion done) {
  const state_ptr now = current();
  request r = now->geometry.block_request(b);
  const std::uint64_t bytes = r.bytes();
  now->file->write(std::make_shared<const request>(std::move(r)), frame,
                   [now, bytes, done = std::move(done)](const failure& f) { done(f, bytes); });
}

void array_source::store_together(std::span<const stored_block> blocks, completion done) {
  const state_ptr now = current();
  const auto address = [](const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p); };
  const std::byte* base = blocks.front().from;
  for (const stored_block& b : blocks)
    if (address(b.from) < address(base)) base = b.from;
  request r;
  for (const stored_block& b : blocks)
    add_moved(r, now->geometry.block_request(b.block), address(b.from) - address(base));
  const std::uint64_t bytes = r.bytes();
  now->file->write(std::make_shared<const request>(std::move(r)), base,
                   [now, bytes, done = std::move(done)](const failure& f) { done(f, bytes); });
}

/// The failure for the first element of `stray`, a request for elements outside the part.
failure array_source::outside_part(const array_geometry& g, block_index b, const request& stray) const {
  std::uint64_t at = 0;
  bool first = true;
  stray.for_each_run([&](std::uint64_t, std::uint64_t memory, std::uint64_t) {
    if (std::exchange(first, false)) at = memory;
  });
  const coordinates c = g.element_at(b, at);
  return {make_error_code(errc::invalid_request),
          "element " + to_string(std::span(c.data(), g.rank())) + " was written by a rank whose part is rows " +
              std::to_string(part_->lower[0]) + " to " + std::to_string(part_->upper[0]) + " (owner_computes)"};
}

failure array_source::refusal(block_index b, const std::byte* frame, const std::byte* twin) const {
  if (!part_) return {};
  const state_ptr now = current();
  const array_geometry& g = now->geometry;
  const request stray =
      changes(g.outside_request(b, *part_), static_cast<std::uint32_t>(g.element_size()), frame, twin);
  return stray.bytes() > 0 ? outside_part(g, b, stray) : failure{};
}

void array_source::store_diff(block_index b, const std::byte* frame, const std::byte* twin, completion done) {
  const state_ptr now = current();
  const array_geometry& g = now->geometry;
  const auto size = static_cast<std::uint32_t>(g.element_size());
  // In its own part a rank may send elements that it has not changed: chunks instead of elements,
  // of which there may be more than bytes are worth.
  const auto own = part_ && !log_ ? elements_of_part(g, b, *part_) : std::nullopt;
  request r = own ? changes(*own, storage::chunk_size, frame, twin) : changes(g.block_request(b), size, frame, twin);
  if (log_)
    r.for_each_run([&](std::uint64_t, std::uint64_t memory, std::uint64_t length) {
      log_->note_written({b * g.block_bytes() + memory, length});
    });
  const std::uint64_t bytes = r.bytes();
  now->file->write(std::make_shared<const request>(std::move(r)), frame,
                   [now, bytes, done = std::move(done)](const failure& f) { done(f, bytes); });
}

}  // namespace ooc::detail
