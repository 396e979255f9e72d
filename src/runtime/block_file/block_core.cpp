#include "runtime/block_file/block_core.hpp"

#include <cerrno>
#include <cstring>

#include "runtime/pager/fault_handler.hpp"
#include "runtime/pager/pager.hpp"
#include "storage/base/log.hpp"
#include "storage/base/lost_data.hpp"
#include "storage/base/page.hpp"
#include "storage/layout/stripe_choice.hpp"

namespace ooc::detail {
namespace {

std::string in_quotes(const std::string& path) { return "'" + path + "'"; }

segment_options options_for(const std::string& path, const blocking& b, std::uint64_t max_resident, bool writable) {
  b.check();
  segment_options o;
  o.name = path;
  o.block_bytes = in_whole_pages(b.superblock_bytes());
  o.blocks = b.superblocks();
  o.max_resident = max_resident;
  o.pinned_only = true;
  o.writable = writable;
  std::uint64_t addresses = 0;
  if (__builtin_mul_overflow(o.block_bytes, o.blocks, &addresses) || addresses >> 47 != 0)
    throw usage_error(errc::invalid_request,
                      in_quotes(path) + ": " + std::to_string(o.blocks) + " superblocks of " +
                          std::to_string(o.block_bytes) +
                          " bytes (whole pages) pass the 2^47 bytes of the address space; choose "
                          "larger buffer factors");
  return o;
}

storage::new_file file_for(const blocking& b, const block_file_options& options, std::uint32_t nodes) {
  storage::new_file f;
  f.size = b.file_bytes();
  const bool whole_rows = b.factor(0) * b.ne[0] == b.extent(0);
  f.striping = storage::with_stripe_size(
      options.striping,
      {.file_bytes = f.size, .block_bytes = b.superblock_bytes(), .row_bytes = whole_rows ? 0 : b.extent(0) * b.rs},
      nodes);
  f.sparse = options.sparse;
  f.array.element_type = options.element_type;
  f.array.element_size = static_cast<std::uint32_t>(b.rs);
  for (std::size_t i = b.dimensions(); i-- > 0;) f.array.extents.push_back(b.extent(i));
  return f;
}

void check_fits(const storage::entry& meta, const std::string& path, const blocking& b) {
  if (!meta.array.tile.empty())
    throw usage_error(errc::type_mismatch,
                      in_quotes(path) + " is in tiled order; the block layer reads row-major files");
  if (meta.size < b.file_bytes())
    throw usage_error(errc::type_mismatch, in_quotes(path) + " has " + std::to_string(meta.size) +
                                               " bytes, fewer than the " + std::to_string(b.file_bytes()) +
                                               " that rs, ne and nb describe");
}

}  // namespace

// The segment comes first: a budget that is too small is then refused before anything is made.
block_core::block_core(runtime& rt, const store& s, std::string_view path, const blocking& b,
                       const block_file_options& options, how h)
    : path_(path), writable_(h != how::open_read_only), store_(s.core()), source_(b) {
  storage::store_core& core = *store_;
  rt.pager().account_store(store_, core.staging_bytes());
  segment_options wanted = options_for(path_, b, options.max_superblocks, writable_);
  wanted.shared = options.shared;
  wanted.end_owner = [this] { end_with_runtime(); };
  try {
    segment_.emplace(rt.pager(), wanted, source_);
  } catch (const usage_error& e) {
    if (e.code() != errc::budget_too_small) throw;
    throw usage_error(errc::budget_too_small,
                      "a superblock of " + in_quotes(path_) + " has " + std::to_string(wanted.block_bytes) +
                          " bytes, and one must fit the " + std::to_string(rt.pager().budget()) +
                          " bytes that the budget has for blocks, beside what is pinned and what the "
                          "open arrays need; give the runtime more memory or choose smaller buffer "
                          "factors");
  }
  const writing w = !writable_ ? writing::no : options.shared ? writing::shared : writing::exclusive;
  const auto claim = [&](const storage::entry& e) {
    claim_ = file_claim(core, e.id, path_, "a block_file", w, options.wait_for_writer);
    return true;
  };
  if (h == how::create) {
    opened_ = core.create(path_, file_for(b, options, s.nodes()));
    claim(opened_.meta);
    opened_ = core.claimed(opened_, w == writing::exclusive);
  } else {
    const auto take = [&](const storage::entry& e) {
      check_fits(e, path_, b);
      return claim(e);
    };
    opened_ = core.open(path_, writable_ ? storage::open_mode::read_write : storage::open_mode::read, false,
                        {take, w == writing::exclusive});
    check_fits(opened_.meta, path_, b);
  }
  // Its blocks do not move with the size of a file that is longer, as elements of an array do not: where that is cut
  // off past them, they are written on.
  opened_.meta.cuts = 0;
  opened_ = core.opened(opened_.meta);
  if (const auto& packed = opened_.file->unpacked())
    rt.pager().account_store(packed, packed->memory(rt.pager().budget()));
  source_.set_file(opened_.file);
}

block_core::~block_core() {
  if (closed()) return;
  if (fault_handler::in_forked_child()) return;  // the parent's data, and none of its threads
  write_back_or_report();
}

void block_core::write_back_or_report() noexcept {
  try {
    const failure f = segment_->writeback();
    if (!f) return;
    log_error("block file " + in_quotes(path_) + " closed with " + std::to_string(segment_->dirty_blocks()) +
              " modified superblocks that could not be written; they are lost: " + f.what);
  } catch (const std::exception& e) {
    log_error("block file " + in_quotes(path_) + " closed; modified blocks may be lost: " + e.what());
  }
  data_were_lost();
}

void block_core::end_with_runtime() noexcept {
  write_back_or_report();
  segment_->close(true);
  claim_.release();
}

void block_core::check_open() const {
  if (closed()) throw usage_error(errc::closed, in_quotes(path_) + " has been closed");
}

void block_core::check_writable() const {
  if (!writable_)
    throw usage_error(std::error_code(EROFS, std::generic_category()), in_quotes(path_) + " is open for reading only");
}

block_core::place block_core::find(const block_coordinates& at) const {
  const blocking& b = shape();
  if (!b.contains(at))
    throw usage_error(errc::invalid_request, "block " + at.text() + " of " + in_quotes(path_) + ": there are " +
                                                 block_coordinates{std::span<const std::uint64_t>{b.nb}}.text() +
                                                 " blocks, dimension 1 first");
  place p;
  p.superblock = b.superblock_of(at);
  p.outer = b.superblock_box(p.superblock);
  // The superblock's memory is a small matrix of its own, in which the block is a box.
  blocking inner{b.rs, b.ne, std::vector<std::uint64_t>(b.dimensions()), {}};
  record_box box = b.block_box(at);
  for (std::size_t i = 0; i < b.dimensions(); ++i) {
    inner.nb[i] = p.outer.extent[i] / b.ne[i];
    box.begin[i] -= p.outer.begin[i];
  }
  const nested_request n = inner.request_of(box);
  p.offset = n.file_offset;
  p.in_memory.add(n);
  return p;
}

std::byte* block_core::memory(std::uint64_t superblock) const noexcept {
  return segment_->base() + superblock * segment_->block_bytes();
}

namespace {

void throw_for(failure f, const block_coordinates& at, const std::string& path) {
  if (!f) return;
  f.what = "block " + at.text() + " of " + in_quotes(path) + ": " + f.what;
  throw_if(f);
}

}  // namespace

void block_core::pin_for(const place& p, access_mode mode, const block_coordinates& at) {
  const block_range range{p.superblock, p.superblock + 1};
  if (overwriting_.exchange(false)) segment_->advise(access_pattern::automatic);
  const shared_lock lock(promise_mutex_);
  throw_for(segment_->pin({&range, 1}, mode), at, path_);
}

void block_core::pin_for_overwrite(const place& p, const block_coordinates& at) {
  bool whole = true;
  for (std::size_t i = 0; i < at.size(); ++i) whole = whole && p.outer.extent[i] == shape().ne[i];
  if (!whole) return pin_for(p, access_mode::write, at);
  const block_range range{p.superblock, p.superblock + 1};
  if (!overwriting_.exchange(true)) segment_->advise(access_pattern::random);
  const lock_guard lock(promise_mutex_);
  segment_->promise({&range, 1});
  const failure f = segment_->pin({&range, 1}, access_mode::write);
  if (f) segment_->clear_promises();  // a pin that succeeds uses the promise up
  throw_for(f, at, path_);
}

template <class Pin>
void block_core::pin_briefly(Pin&& pin) {
  for (;;) {
    std::uint64_t seen = 0;
    {
      const lock_guard lock(brief_mutex_);
      seen = brief_ends_;
      ++brief_pins_;
    }
    try {
      return pin();
    } catch (const error& e) {
      unique_lock lock(brief_mutex_);
      --brief_pins_;
      ++brief_ends_;
      brief_end_.notify_all();
      if (e.code() != errc::budget_too_small) throw;
      if (brief_pins_ == 0 && brief_ends_ == seen + 1) throw;
      brief_end_.wait(lock, [&]() OOC_REQUIRES(brief_mutex_) { return brief_pins_ == 0 || brief_ends_ > seen + 1; });
    }
  }
}

void block_core::unpin_briefly(std::uint64_t superblock, access_mode mode) noexcept {
  unpin(superblock, mode);
  const lock_guard lock(brief_mutex_);
  --brief_pins_;
  ++brief_ends_;
  brief_end_.notify_all();
}

void block_core::unpin(std::uint64_t superblock, access_mode mode) noexcept {
  const block_range range{superblock, superblock + 1};
  segment_->unpin({&range, 1}, mode);
}

namespace {

void check_size(std::size_t given, std::uint64_t needed, const block_coordinates& at, const std::string& path) {
  if (given < needed)
    throw usage_error(errc::invalid_request, "block " + at.text() + " of " + in_quotes(path) +
                                                 ": the memory given has " + std::to_string(given) +
                                                 " bytes, a block " + std::to_string(needed));
}

}  // namespace

void block_core::read_block(const block_coordinates& at, std::span<std::byte> to) {
  check_open();
  const place p = find(at);
  check_size(to.size(), shape().block_bytes(), at, path_);
  pin_briefly([&] { pin_for(p, access_mode::read, at); });
  const std::byte* from = memory(p.superblock);
  p.in_memory.for_each_run(
      [&](std::uint64_t in, std::uint64_t out, std::uint64_t n) { std::memcpy(to.data() + out, from + in, n); });
  unpin_briefly(p.superblock, access_mode::read);
}

void block_core::write_block(const block_coordinates& at, std::span<const std::byte> from) {
  check_open();
  check_writable();
  const place p = find(at);
  check_size(from.size(), shape().block_bytes(), at, path_);
  pin_briefly([&] { pin_for_overwrite(p, at); });
  std::byte* to = memory(p.superblock);
  p.in_memory.for_each_run(
      [&](std::uint64_t in, std::uint64_t out, std::uint64_t n) { std::memcpy(to + in, from.data() + out, n); });
  unpin_briefly(p.superblock, access_mode::write);
}

block_guard block_core::pin(const block_coordinates& at, access_mode mode) {
  check_open();
  if (mode == access_mode::write) check_writable();
  const place p = find(at);
  pin_for(p, mode, at);
  return guard(p, mode);
}

block_guard block_core::overwrite(const block_coordinates& at) {
  check_open();
  check_writable();
  const place p = find(at);
  pin_for_overwrite(p, at);
  return guard(p, access_mode::write);
}

block_guard block_core::guard(const place& p, access_mode mode) {
  block_guard g;
  g.core_ = shared_from_this();
  g.data_ = memory(p.superblock) + p.offset;
  g.superblock_ = p.superblock;
  g.mode_ = mode;
  g.extent_ = block_coordinates{std::span<const std::uint64_t>{shape().ne}};
  g.stride_ = g.extent_;
  std::uint64_t step = shape().rs;
  for (std::size_t i = 0; i < shape().dimensions(); ++i) {
    g.stride_[i] = step;
    step *= p.outer.extent[i];
  }
  ++guards_;
  return g;
}

void block_core::release(std::uint64_t superblock, access_mode mode) noexcept {
  if (!closed()) unpin(superblock, mode);  // else it went with the runtime
  --guards_;
}

void block_core::prefetch(const block_coordinates& at) {
  check_open();
  const std::uint64_t superblock = find(at).superblock;
  const block_range range{superblock, superblock + 1};
  segment_->prefetch({&range, 1});
}

void block_core::writeback(durability d) {
  check_open();
  throw_if(segment_->writeback());
  if (d == durability::durable) store_->sync(opened_);
}

void block_core::invalidate(bool discard) {
  check_open();
  switch (segment_->invalidate(discard)) {
    case segment::invalidated::done: return;
    case segment::invalidated::dirty:
      throw usage_error(errc::dirty, in_quotes(path_) + " has " + std::to_string(segment_->dirty_blocks()) +
                                         " modified superblocks; call writeback() first, or "
                                         "invalidate(ooc::discard) to lose them");
    case segment::invalidated::pinned:
      throw usage_error(errc::busy, in_quotes(path_) + " has pinned blocks; let go of them first");
  }
}

void block_core::close() {
  if (closed()) return;
  if (const std::uint64_t n = guards_)
    throw usage_error(errc::busy,
                      in_quotes(path_) + " has " + std::to_string(n) + " pinned blocks; let go of them before close()");
  throw_if(segment_->writeback());
  segment_->close();
  claim_.release();
}

std::uint64_t block_core::dirty_superblocks() const {
  check_open();
  return segment_->dirty_blocks();
}

}  // namespace ooc::detail
