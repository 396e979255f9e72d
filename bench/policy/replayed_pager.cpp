#include "policy/replayed_pager.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "policy/disk_model.hpp"
#include "runtime/blocks/page_dropper.hpp"
#include "runtime/pager/block_dropper.hpp"
#include "runtime/pager/block_loader.hpp"
#include "runtime/pager/block_writer.hpp"
#include "runtime/pager/fault_server.hpp"
#include "runtime/pager/grains.hpp"
#include "runtime/pager/prefetcher.hpp"
#include "runtime/pager/service_thread.hpp"
#include "runtime/pager/stall_relief.hpp"
#include "storage/base/page.hpp"

namespace bench::policy {
namespace {

using namespace ooc::detail;
using ooc::unique_lock;

/// Ages grains and blocks as the mappings by signals do; whoever would wait has the service thread's work done.
class mapping_of_nothing final : public block_mapping {
 public:
  explicit mapping_of_nothing(bool of_grains) : of_grains_(of_grains) {}
  void add_frames(std::byte*, std::size_t) override {}
  void open_range(const segment_state&, std::uint64_t, std::uint64_t) override {}
  void close_range(const segment_state&, std::uint64_t, std::uint64_t) noexcept override {}
  void map_in(frame*, bool) noexcept override {}
  bool map_out(frame*, block_access) noexcept override { return true; }
  std::size_t worth_together() const noexcept override { return of_grains_ ? page_dropper::most_together : 1; }
  void set_access(frame*, block_access) noexcept override {}
  void discard(frame*) noexcept override {}
  bool moves_out_to_age() const noexcept override { return of_grains_; }
  void about_to_wait() noexcept override {
    if (service) service();
  }

  std::function<void()> service;

 private:
  const bool of_grains_;
};

/// Blocks of one array, or its grains.
class timed_source final : public block_source {
 public:
  timed_source(disk_model& disk, std::uint64_t bytes, std::uint64_t block_bytes)
      : disk_(disk), bytes_(block_bytes), there_(bytes / block_bytes) {}
  void load(block_index b, load_part, std::byte*, completion done) override {
    there_[b] = disk_.transfer(bytes_);
    done({}, bytes_);
  }
  std::uint64_t load_inline(block_index b, std::byte*) noexcept override {
    there_[b] = disk_.transfer(bytes_);
    return bytes_;
  }
  void load_together(std::span<const block_place> blocks, completion done) override {
    const std::uint64_t all = blocks.size() * bytes_, then = disk_.transfer(all);
    for (const block_place& p : blocks) there_[p.block] = then;
    done({}, all);
  }
  void store(block_index, const std::byte*, completion done) override {
    disk_.transfer(bytes_);
    done({}, bytes_);
  }
  void store_together(std::span<const stored_block> blocks, completion done) override {
    disk_.transfer(blocks.size() * bytes_);
    done({}, blocks.size() * bytes_);
  }
  void store_diff(block_index b, const std::byte* frame, const std::byte*, completion done) override {
    store(b, frame, std::move(done));
  }
  bool nothing_to_load(block_index, load_part) const noexcept override { return false; }

  /// When the block that was asked for last is there.
  std::uint64_t there(block_index b) const { return there_[b]; }

 private:
  disk_model& disk_;
  const std::uint64_t bytes_;
  std::vector<std::uint64_t> there_;
};

/// Records of blocks, all `out`, and addresses that nobody touches.
class pages {
 public:
  explicit pages(std::uint64_t bytes, int access = PROT_READ | PROT_WRITE)
      : bytes_(ooc::in_whole_pages(bytes)), at_(sys::map(nullptr, bytes_, access, sys::reserve_flags)) {
    if (!at_) throw std::runtime_error("policy: no addresses for the records of a replay");
  }
  ~pages() { sys::unmap(at_, bytes_); }
  pages(const pages&) = delete;
  pages& operator=(const pages&) = delete;
  std::byte* at() const noexcept { return at_; }

 private:
  std::uint64_t bytes_;
  std::byte* at_;
};

class replayed_array {
 public:
  replayed_array(pager_state& state, disk_model& disk, const array_shape& a)
      : addresses_(a.bytes, PROT_NONE),
        source_(disk, a.bytes, a.block_bytes),
        table_(a.bytes / a.block_bytes * sizeof(block)) {
    const unique_lock l(state.mutex());
    set(blocks, a, a.block_bytes, source_, table_);
    blocks.cls = &state.memory.pool().class_for(a.block_bytes);
    if (a.in_grains && a.block_bytes >= 16 * grain_bytes) divide(state, disk, a);
    state.segments.push_back(&blocks);
  }

  segment_state blocks, grains;
  const timed_source& source() const { return source_; }
  const timed_source& grain_source() const { return *grain_source_; }

 private:
  void set(segment_state& s, const array_shape& a, std::uint64_t block_bytes, block_source& from, const pages& table) {
    s.options.block_bytes = block_bytes;
    s.options.element_bytes = a.element_bytes;
    s.options.blocks = s.options.max_blocks = a.bytes / block_bytes;
    s.source = &from;
    s.base = addresses_.at();
    s.table = reinterpret_cast<block*>(table.at());
    s.set_blocks(s.options.blocks, a.bytes);
  }
  void divide(pager_state& state, disk_model& disk, const array_shape& a) OOC_REQUIRES(pager_mutex) {
    grain_source_ = std::make_unique<timed_source>(disk, a.bytes, grain_bytes);
    grain_table_ = std::make_unique<pages>(a.bytes / grain_bytes * sizeof(block));
    blocks_on_page_ = std::make_unique<pages>((a.bytes / grain_bytes * sizeof(block) / ooc::page_bytes + 1) *
                                              sizeof *grains.blocks_on_page);
    set(grains, a, grain_bytes, *grain_source_, *grain_table_);
    grains.parent = &blocks;
    grains.grains_in_block = a.block_bytes / grain_bytes;
    grains.blocks_on_page = reinterpret_cast<std::uint16_t*>(blocks_on_page_->at());
    grains.cls = &state.memory.pool().class_for_grains(grain_bytes, *state.memory.mapping_of_grains());
    grains.past.expect_columns_of(a.element_bytes);
    blocks.grains = &grains;
    state.segments.push_back(&grains);
  }

  pages addresses_;
  timed_source source_;
  pages table_;
  std::unique_ptr<timed_source> grain_source_;
  std::unique_ptr<pages> grain_table_, blocks_on_page_;
};

block_mappings mappings_of_nothing(mapping_of_nothing*& blocks) {
  auto first = std::make_unique<mapping_of_nothing>(false);
  auto second = std::make_unique<mapping_of_nothing>(true);
  blocks = first.get();
  block_mapping* const of_grains = second.get();
  return {std::move(first), std::move(second), of_grains};
}

class replayed_pager {
 public:
  explicit replayed_pager(const access_trace& t) : trace_(t), state_(t.budget, mappings_of_nothing(mapping_)) {
    mapping_->service = [this] { serve_all(); };
    for (const array_shape& a : t.arrays) arrays_.push_back(std::make_unique<replayed_array>(state_, disk_, a));
  }
  ~replayed_pager() {
    unique_lock l(state_.mutex());
    for (const auto& a : arrays_) {
      if (a->blocks.grains) dropper_.drop_all(l, a->grains);
      dropper_.drop_all(l, a->blocks);
      if (a->blocks.grains) state_.memory.tables().forget(a->grains);
    }
  }

  outcome run() {
    for (const access& a : trace_.accesses) {
      disk_.run(a.work_ns);
      ran_ += a.work_ns;
      touch(a);
    }
    for (const auto& a : arrays_) {
      const block_range all[] = {every_block};
      if (a->blocks.grains) ooc::throw_if(writer_.writeback(a->grains, all));
      ooc::throw_if(writer_.writeback(a->blocks, all));
    }
    return result();
  }

 private:
  void touch(const access& a) {
    replayed_array& of = *arrays_[a.array];
    while (!is_mapped(of, a)) {
      state_.ran_ns.fetch_add(std::exchange(ran_, 0), std::memory_order_relaxed);
      ++refused_;
      const std::uint32_t before = state_.bell.heard();
      fault_history nothing_before;
      const auto kind = a.write ? ooc::detail::touch::write : ooc::detail::touch::read;
      if (!faults_.on_fault(of.blocks, a.place, kind, nothing_before))
        throw std::runtime_error("policy: the pager refused a touch of a replay");
      if (state_.bell.heard() != before) round();
    }
  }
  /// What the processor would say; a touch of what is still on its way waits.
  bool is_mapped(replayed_array& of, const access& a) {
    const bool in_grains = of.blocks.at(a.place / of.blocks.block_bytes()).state() == block_state::in_grains;
    segment_state& s = in_grains ? of.grains : of.blocks;
    const block_index b = a.place / s.block_bytes();
    const block_state now = s.at(b).state();
    if (now != block_state::rw && (now != block_state::ro || a.write)) return false;
    disk_.wait((in_grains ? of.grain_source() : of.source()).there(b));
    return true;
  }
  void round() {
    unique_lock l(state_.mutex());
    hinted_ |= std::exchange(state_.hint_due, false);
    service_.round(l);
  }
  void serve_all() noexcept {
    constexpr int enough = 1000;  // each of them makes room
    for (int i = 0; i < enough; ++i) {
      round();
      const unique_lock l(state_.mutex());
      if (state_.events.empty() && state_.events.stalled().empty()) return;
    }
    std::terminate();
  }
  outcome result() {
    const counters& c = state_.memory.all_counts;
    return {.bytes_read = c.bytes_read,
            .bytes_written = c.bytes_written,
            .faults = c.faults,
            .soft_faults = c.soft_faults,
            .refused = refused_,
            .ahead = c.read_ahead_blocks,
            .ahead_used = c.read_ahead_hits,
            .ahead_wasted = c.read_ahead_waste,
            .evictions = c.evictions,
            .waited_ns = disk_.waited(),
            .hinted = hinted_};
  }

  const access_trace& trace_;
  mapping_of_nothing* mapping_ = nullptr;
  disk_model disk_;
  pager_state state_;
  std::vector<std::unique_ptr<replayed_array>> arrays_;
  block_writer writer_{state_};
  grains grains_{state_, writer_};
  block_loader loader_{state_, writer_, grains_};
  prefetcher ahead_{state_, loader_, writer_, grains_, 0};
  fault_server faults_{state_, grains_, loader_, true};
  block_dropper dropper_{state_};
  stall_relief relief_{state_, writer_, {}};
  service_thread service_{state_, loader_, ahead_, writer_, relief_};
  std::uint64_t ran_ = 0;
  std::uint64_t refused_ = 0;
  bool hinted_ = false;
};

}  // namespace

outcome replay_with_pager(const access_trace& t) { return replayed_pager(t).run(); }

}  // namespace bench::policy
