// A sweep as a sequence of passes: how many steps each computes, the memory for it, what the ranks
// tell each other in between.
#include "oocarray/detail/sweep_engine.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "oocarray/detail/copy_engine.hpp"
#include "oocarray/error.hpp"
#include "runtime/algorithm/algorithm_call.hpp"
#include "runtime/algorithm/lent_memory.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/ranks/array_commit.hpp"
#include "runtime/ranks/shared_array.hpp"
#include "runtime/sweep/cut_sweep.hpp"
#include "runtime/sweep/mapped_slabs.hpp"
#include "runtime/sweep/row_cut.hpp"
#include "runtime/sweep/slab_geometry.hpp"
#include "runtime/sweep/wavefront.hpp"

namespace ooc::detail {
namespace {

// How many steps a pass computes at most, if it may choose: "Choice of k" in docs/algorithms.md.
constexpr std::size_t fused_by_few_threads = 32;
constexpr std::size_t fused_by_thread = 16;
constexpr std::size_t most_fused = 128;
constexpr std::uint64_t cache_of_thread = 2 << 20;
constexpr std::size_t default_piece = 16384;  // elements
// Of slabs that a level computes at a time, and what all levels together compute at least and at most.
constexpr std::size_t group_bytes = 64 << 10;
constexpr std::size_t least_round_bytes = 1 << 20;
constexpr std::size_t most_round_bytes = 2 << 20;
constexpr std::size_t group_elements_of_lines = 8192;  // N = 1
constexpr std::size_t run_of_lines = 2048;             // N = 1

class sweep_run {
 public:
  sweep_run(const sweep_request& r, sweep_program& program)
      : request_(r),
        program_(program),
        leader_(*r.fields.front().to),
        call_("sweep of '" + leader_.facts().path + "' by " + std::to_string(r.steps) + " steps", leader_,
              written_by(r),
              pass_options{.threads = r.options.threads,
                           .mark = r.options.mark,
                           .progress = r.options.progress,
                           .plan = r.options.plan}),
        ranks_(call_.ranks()),
        geometry_(checked().extents, r.radius, r.boundaries, r.options.piece == 0 ? default_piece : r.options.piece) {
    const auto [first, last] = leader_.ranks().rows_of(call_.rank());
    plan_.rows = {static_cast<std::ptrdiff_t>(first), static_cast<std::ptrdiff_t>(last)};
    check_parts();
    plan_.ghosts_low = geometry_.periodic() || first > 0;
    plan_.ghosts_high = geometry_.periodic() || last < geometry_.slabs();
    plan_.completes = r.completes;
    plan_.keeps_former = r.keeps_former;
    if (geometry_.rank() == 1)
      plan_.run =
          r.options.piece == 0 ? run_of_lines : std::min(r.options.piece, std::max<std::size_t>(geometry_.slabs(), 1));
    plan_.threads = call_.threads();
  }

  sweep_statistics run() {
    call_.must_agree(", fuse " + std::to_string(request_.options.fuse) + ", told every " +
                     std::to_string(request_.every) + ", piece " + std::to_string(request_.options.piece) +
                     ", commit every " + std::to_string(request_.options.commit_every));
    call_.together([] {});
    if (request_.steps == 0 || leader_.facts().extents[0] == 0) {
      if (request_.steps == 0) copy();
      if (!call_.only_plans()) commit_pass(true);
      return done_;
    }
    done_.fuse = choose_levels();
    plan_.levels = done_.fuse;
    if (call_.only_plans()) return planned();
    if (cut_) begin_cut();
    call_.together([&] {
      memory_.emplace(leader_.shared().pager(), cut_ ? cut_->memory : memory_for(done_.fuse),
                      "the " + call_.name() + ", " + std::to_string(done_.fuse) + " at a time");
    });
    done_.memory = memory_->bytes();
    done_.bound = bytes_of_pass();
    call_.begin(passes_in_all() * bytes_of_pass());
    bool go_on = true;
    while (go_on && done_.steps < request_.steps) {
      const std::size_t stop = next_stop();
      plan_.levels = std::min(done_.fuse, stop - done_.steps);
      plan_.steps_before = done_.steps;
      plan_.reported = request_.values && done_.steps + plan_.levels == stop;
      one_pass();
      done_.steps += plan_.levels;
      ++done_.passes;
      if (done_.steps == stop && (request_.every != 0 || stop == request_.steps)) go_on = report(stop);
      commit_pass(!go_on || done_.steps == request_.steps);
    }
    cuts_.reset();  // drops the blocks of what was written past them
    call_.finish();
    return done_;
  }

 private:
  static std::vector<array_core*> written_by(const sweep_request& r) {
    std::vector<array_core*> all;
    for (const sweep_field& f : r.fields) all.push_back(f.to);
    return all;
  }

  const array_facts& checked() const {
    std::set<const array_core*> written, read;
    for (const sweep_field& f : request_.fields) {
      f.from->check_open();
      written.insert(f.to);
      read.insert(f.from);
      if (f.from->facts().extents != leader_.facts().extents || f.to->facts().extents != leader_.facts().extents)
        call_.refuse("'" + f.from->facts().path + "' and '" + f.to->facts().path + "' have not the same extents as it");
    }
    if (read.size() != request_.fields.size()) call_.refuse("one array is given for two fields");
    for (const sweep_field& f : request_.fields)
      if (f.from != f.to && read.count(f.to) != 0)
        call_.refuse("'" + f.to->facts().path + "' is written in the place of another field");
    for (const sweep_coefficient& c : request_.coefficients) {
      c.array->check_open();
      if (c.array->facts().extents != leader_.facts().extents)
        call_.refuse("the coefficient '" + c.array->facts().path + "' has other extents");
      if (written.count(c.array) != 0) call_.refuse("'" + c.array->facts().path + "' is a coefficient, and is written");
    }
    if (request_.options.commit_every != 0)
      for (const sweep_field& f : request_.fields)
        if (!f.to->last_commit())
          call_.refuse("'" + f.to->facts().path +
                       "' was made without commits, and options.commit_every asks for them; make it with "
                       "options.commits = true");
    if (request_.keeps_former &&
        (request_.fields.size() < 2 || request_.fields.front().element_size != request_.fields.back().element_size))
      call_.refuse("keeps_former() needs a second field, of elements as large as those of the first");
    for (std::size_t k = 0; k < request_.radius.size(); ++k)
      if (request_.radius[k] > (std::size_t{1} << 20))
        call_.refuse("a radius of " + std::to_string(request_.radius[k]) + " in dimension " + std::to_string(k) +
                     "; at most 2^20");
    return leader_.facts();
  }

  void check_parts() const {
    for (const sweep_field& f : request_.fields) {
      call_.refuse_other_group(*f.from);
      for (const array_core* a : {f.from, f.to})  // one that each rank has opened for itself is only read
        if (!call_.has_same_parts(*a) && (a == f.to || a->shared().ranks() != 1))
          call_.refuse("'" + a->facts().path +
                       "' is dealt out to the ranks otherwise; give both the same group, block and stripes");
    }
  }

  sweep_statistics planned() {
    sweep_statistics s = done_;
    s.steps = request_.steps;
    s.passes = passes_in_all();
    s.memory = cut_ ? cut_->memory : memory_for(s.fuse);
    if (cut_) s.parts = cut_->parts;
    s.bound = bytes_of_pass();
    for (const sweep_field& f : request_.fields) s.bytes_written += s.passes * bytes_of(f.element_size);
    s.bytes_read = s.passes * s.bound - s.bytes_written;
    return s;
  }

  /// No steps: arrays that are written hold what was read.
  void copy() {
    for (const sweep_field& f : request_.fields) {
      if (f.from == f.to) continue;
      const std::size_t dimensions = f.to->facts().extents.size();
      copy_request r;
      r.from = f.from;
      r.to = f.to;
      r.from_size = r.to_size = f.element_size;
      r.from_lower.assign(dimensions, 0);
      r.to_lower.assign(dimensions, 0);
      r.extents.assign(f.to->facts().extents.begin(), f.to->facts().extents.end());
      for (std::size_t k = 0; k < dimensions; ++k) r.permutation.push_back(k);
      r.options = {.threads = call_.threads(),
                   .mark = request_.options.mark,
                   .progress = request_.options.progress,
                   .plan = call_.only_plans()};
      const pass_statistics copied = run_copy(r);
      done_.passes = 1;
      done_.memory = std::max(done_.memory, copied.memory);
      done_.bytes_read += copied.bytes_read;
      done_.bytes_written += copied.bytes_written;
      done_.bound += copied.bound;
    }
  }

  std::size_t slab_bytes() const {
    std::size_t most = 1;
    for (const sweep_field& f : request_.fields) most = std::max(most, geometry_.slab_elements() * f.element_size);
    return most;
  }

  std::size_t slabs_at_a_time(std::size_t levels) const {
    const std::size_t wanted =
        request_.options.group != 0 ? request_.options.group
        : geometry_.rank() == 1
            ? group_elements_of_lines
            : std::clamp(group_bytes, least_round_bytes / levels, most_round_bytes / levels) / slab_bytes();
    return std::clamp<std::size_t>(wanted, 1, geometry_.slabs());
  }

  /// With whole slabs.
  std::uint64_t memory_for(std::size_t levels) {
    plan_.levels = levels;
    return mapped_slabs(request_, false, geometry_, plan_).memory_bytes() +
           wave_rings(geometry_, plan_, row_cut(geometry_), request_).memory_bytes();
  }

  /// Steps until the program must be told.
  std::size_t next_stop() const {
    if (request_.every == 0) return request_.steps;
    return std::min(request_.steps, (done_.steps / request_.every + 1) * request_.every);
  }

  /// So many that the threads compute about as long as a disk needs for a pass.
  std::size_t levels_for_threads() {
    std::size_t levels = std::clamp<std::size_t>(fused_by_thread * call_.threads(), fused_by_few_threads, most_fused);
    // More levels than usual only where their rings stay in the caches of the processors.
    const auto too_large = [&] {
      plan_.group = slabs_at_a_time(levels);
      return memory_for(levels) > call_.threads() * cache_of_thread;
    };
    while (levels > fused_by_few_threads && too_large()) --levels;
    return levels;
  }

  /// As many as memory and ranks allow, and evenly over the passes.  The same on all ranks.
  std::size_t choose_levels() {
    const std::size_t steps = next_stop();
    const std::uint64_t spare = leader_.shared().pager().spare();
    // The rest of the budget must hold what is on its way from and to the disk.
    const std::uint64_t room = spare / 2;
    std::size_t levels = request_.options.fuse;
    const std::size_t most = levels == 0 ? levels_for_threads() : levels;
    const std::size_t wanted = std::min(steps, most);
    plan_.group = slabs_at_a_time(wanted);
    while (request_.options.group == 0 && plan_.group > 1 && memory_for(wanted) > room) plan_.group /= 2;
    if (levels == 0) {
      levels = most;
      if (ranks_ > 1 && geometry_.radius() > 0) {
        const std::size_t part = geometry_.slabs() / static_cast<std::size_t>(ranks_);
        levels = std::clamp<std::size_t>(part / (16 * geometry_.radius()), 1, levels);
      }
      while (levels > 1 && memory_for(levels) > room) --levels;
    }
    levels = std::min(levels, steps);
    if (may_cut()) {
      cut_ = better_cut(levels, wanted, steps, spare);
      if (cut_) return cut_->levels;
    }
    std::uint64_t agreed[] = {levels};
    if (ranks_ > 1) leader_.shared().group().all_reduce(call_.name(), agreed, reduction::min);
    levels = agreed[0];
    call_.together([&] {
      std::uint64_t needed = memory_for(levels);
      if (needed <= spare) return;
      if (may_cut()) needed = least_cut(levels);
      std::string why = call_.name() + " keeps " + (may_cut() ? "parts of slabs of " : "slabs of ") +
                        std::to_string(slab_bytes()) + " bytes in memory, which takes " + std::to_string(needed) +
                        " bytes for " + std::to_string(levels) + (levels == 1 ? " step" : " steps") +
                        " at a time, and the budget has " + std::to_string(spare) +
                        " bytes to spare: give the runtime " + std::to_string(needed - spare) + " bytes more memory";
      if (levels > 1)
        why +=
            ", or fuse fewer steps (" + std::to_string(may_cut() ? least_cut(1) : memory_for(1)) + " bytes do for one)";
      throw usage_error(errc::budget_too_small, why);
    });
    const std::size_t passes = (steps + levels - 1) / levels;
    return request_.options.fuse == 0 ? (steps + passes - 1) / passes : levels;
  }

  /// The border between parts is that of one rank's own rows, and edges() of whole slabs needs them whole.
  bool may_cut() const noexcept {
    return ranks_ == 1 && geometry_.rank() > 1 && (!request_.completes || request_.completes_parts);
  }
  cut_sweep cuts() const { return {request_, geometry_, plan_}; }
  std::uint64_t least_cut(std::size_t levels) const { return cuts().least_memory(levels); }

  /// A cut that is worth it, where whole slabs allow `levels` of the `wanted` steps at a time.
  std::optional<cut_choice> better_cut(std::size_t levels, std::size_t wanted, std::size_t steps, std::uint64_t spare) {
    const bool given = request_.options.fuse != 0;
    const bool whole_fits = memory_for(levels) <= (given ? spare : spare / 2);
    const bool asked = request_.options.width != 0;
    if (!asked && whole_fits && levels == wanted) return {};
    std::optional<cut_choice> c = cuts().choose(given ? levels : 0, wanted, steps, spare - spare / 8);
    if (!c) c = cuts().choose(given ? levels : 0, wanted, steps, spare);
    if (!c || asked || !whole_fits) return c;
    // Whole slabs need no scratch file, and use what is in memory.
    if (c->cost > cuts().cost_of_whole(levels, plan_.group, steps) / 5 * 4) c.reset();
    return c;
  }

  std::size_t passes_in_all() const {
    const auto passes = [&](std::size_t steps) { return (steps + done_.fuse - 1) / done_.fuse; };
    const std::size_t every = request_.every == 0 ? request_.steps : request_.every;
    return request_.steps / every * passes(every) + passes(request_.steps % every);
  }
  /// Of the arrays, read and written, without ghosts and borders: what progress counts.
  std::uint64_t bytes_of_pass() const {
    std::uint64_t element = 0;
    for (const sweep_field& f : request_.fields) element += 2 * f.element_size;
    for (const sweep_coefficient& c : request_.coefficients) element += c.element_size;
    return bytes_of(element);
  }
  std::uint64_t bytes_of(std::uint64_t element_size) const {
    return plan_.rows.size() * geometry_.slab_elements() * element_size;
  }
  told_of_rounds progress_of_pass() {
    return [this, bytes = bytes_of_pass(), told = std::uint64_t{0}](std::uint64_t done, std::uint64_t all) mutable {
      const auto now =
          static_cast<std::uint64_t>(static_cast<double>(bytes) * static_cast<double>(done) / static_cast<double>(all));
      call_.advance((done == all ? bytes : now) - std::exchange(told, done == all ? bytes : now));
    };
  }

  /// Every rank sees what the others have written to the rows that it reads.
  void see_halos(bool first) {
    if (ranks_ == 1) return;
    for (const sweep_field& f : request_.fields) {
      array_core& a = first ? *f.from : *f.to;
      if (geometry_.periodic())
        a.ranks().sync(durability::acknowledged);  // the ends of the array are no border between parts
      else
        a.ranks().sync_halo(plan_.levels * geometry_.radius());
    }
  }

  /// False: the callback of a rank says that this is enough.
  bool report(std::size_t step) {
    const auto told =
        call_.together([&] { return process_group::bytes{program_.report(step) ? std::byte{1} : std::byte{0}}; });
    return std::all_of(told.begin(), told.end(), [](const auto& go_on) { return go_on.front() != std::byte{0}; });
  }

  void commit_pass(bool last) {
    const std::size_t every = request_.options.commit_every;
    if (every == 0 || (!last && done_.passes % every != 0)) return;
    cuts_.reset();  // it has the files as they were
    std::vector<shared_array*> all;
    for (array_core* a : written_by(request_)) all.push_back(&a->shared());
    commit_arrays(all, {{"steps", std::to_string(request_.options.steps_before + done_.steps)}});
    if (cut_ && !last) begin_cut();
  }

  void begin_cut() {
    plan_.group = plan_.run = cut_->group;
    done_.parts = cut_->parts;
    cuts_.emplace(request_, geometry_, plan_);
    cuts_->begin(*cut_);
  }

  void one_pass() {
    const bool first = done_.passes == 0;
    see_halos(first);
    const std::unique_ptr<slab_place> place =
        cut_ ? cuts_->place(plan_, first) : std::make_unique<mapped_slabs>(request_, first, geometry_, plan_);
    place->use(memory_->data());
    wavefront front(geometry_, plan_, cut_ ? cuts_->cut(plan_.levels) : row_cut(geometry_), request_, program_, *place,
                    memory_->data() + place->memory_bytes());
    const bool works = !plan_.rows.empty();
    call_.together([&] {
      if (works) place->save();
    });
    // Nobody writes before all have saved; and to whom looks for conflicts, this ends the reads.
    if (ranks_ > 1)
      for (const sweep_field& f : request_.fields)
        if (!first || f.from == f.to) f.to->ranks().sync_halo(0);
    const auto values = call_.together([&] {
      try {
        if (plan_.reported) program_.begin_values(front.slots(), ranks_ > 1 && geometry_.rank() > 1);
        if (works) front.run(progress_of_pass());
      } catch (...) {  // what was to be written whole is not
        for (const sweep_field& f : request_.fields) f.to->clear_overwrite();
        throw;
      }
      return plan_.reported ? program_.folded() : process_group::bytes{};
    });
    if (plan_.reported) program_.combine(values);
    if (!works) return;
    const auto [read, written] = place->moved();
    done_.bytes_read += read;
    done_.bytes_written += written;
    if (cut_) leader_.shared().pager().count_direct(read, written);
  }

  const sweep_request& request_;
  sweep_program& program_;
  array_core& leader_;
  algorithm_call call_;
  const int ranks_;
  const slab_geometry geometry_;
  wave_plan plan_;
  std::optional<cut_choice> cut_;
  std::optional<cut_sweep> cuts_;
  std::optional<lent_memory> memory_;  ///< ends first: the transfers to it have ended
  sweep_statistics done_;
};

}  // namespace

sweep_statistics run_sweep(const sweep_request& r, sweep_program& program) { return sweep_run(r, program).run(); }

}  // namespace ooc::detail
