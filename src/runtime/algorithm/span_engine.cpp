// A pass over spans: what is refused, promises to overwrite, the threads.
#include "oocarray/detail/span_engine.hpp"

#include <algorithm>
#include <atomic>
#include <string>

#include "runtime/algorithm/algorithm_call.hpp"
#include "runtime/algorithm/span_order.hpp"
#include "runtime/algorithm/worker_threads.hpp"
#include "runtime/array/local_array.hpp"
#include "runtime/pager/exact_access.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {

class span_run::state {
 public:
  explicit state(const span_request& r)
      : request(r), call(name_of(r), leader_of(r), written_of(r), r.options), order(checked_order()) {}

  void promise() {
    const array_core& leader = call.leader();
    const auto [first, last] = leader.ranks().rows_of(call.rank());
    if (first >= last) return;
    const auto& extents = leader.facts().extents;
    std::vector<std::size_t> lower(extents.size(), 0), upper(extents.begin(), extents.end());
    lower[0] = first;
    upper[0] = last;
    for (const span_array& a : request.arrays)
      if (a.written && !a.read) a.core->overwrite({lower, upper});
  }
  void take_back_promises() {
    for (const span_array& a : request.arrays)
      if (a.written && !a.read) a.core->clear_overwrite();
  }

  void go_over(span_program& program);
  void bring_in(std::byte* const* p, std::size_t count) const;

  class reading_far_ahead;
  const span_request request;
  algorithm_call call;
  pager::reservation memory;
  const span_order order;
  pass_statistics done;
  unsigned passes_left = 1;

 private:
  static std::string name_of(const span_request& r) {
    std::string name = std::string(r.verb) + " of";
    for (std::size_t a = 0; a < r.arrays.size(); ++a)
      name += (a == 0 ? " '" : ", '") + r.arrays[a].core->facts().path + "'";
    return name;
  }
  /// An array that is written, where there is one: its parts are those that matter.
  static array_core& leader_of(const span_request& r) {
    for (const span_array& a : r.arrays) a.core->check_open();
    for (const span_array& a : r.arrays)
      if (a.written) return *a.core;
    return *r.arrays.front().core;
  }
  static std::vector<array_core*> written_of(const span_request& r) {
    std::vector<array_core*> all;
    for (const span_array& a : r.arrays)
      if (a.written) all.push_back(a.core);
    return all;
  }

  span_order checked_order() {
    array_core& leader = call.leader();
    const auto mine = leader.ranks().rows_of(call.rank());
    for (const span_array& a : request.arrays) {
      if (a.core->facts().extents != leader.facts().extents)
        call.refuse("'" + a.core->facts().path + "' and '" + leader.facts().path + "' have not the same extents");
      call.refuse_other_group(*a.core);
      if (a.written && !call.has_same_parts(*a.core))
        call.refuse("'" + a.core->facts().path +
                    "' is dealt out to the ranks otherwise; give all the same group, block and "
                    "stripes");
    }
    if (request.options.reproducible) call.must_agree(", reproducible");
    span_order o(request, mine.first, mine.second, call.threads());
    call.together([&] { take_memory(o); });
    return o;
  }

  void take_memory(const span_order& o) {
    const std::uint64_t needed = request.memory + o.memory_bytes();
    const std::uint64_t spare = call.leader().shared().pager().spare();
    if (needed > spare)
      call.refuse(
          std::string(o.memory_bytes() == 0 ? "it needs "
                                            : "the arrays lie in memory in different orders, of which it must hold ") +
              std::to_string(needed) + " bytes, and the budget has " + std::to_string(spare) +
              " to spare: give the runtime " + std::to_string(needed - spare) + " bytes more memory" +
              (o.memory_bytes() == 0 ? "" : ", or ooc::copy() one of them into the layout of the other"),
          errc::budget_too_small);
    if (request.memory != 0) memory = call.leader().shared().pager().reserve(request.memory, call.name());
    done.memory = request.memory;
  }
};

/// A pass reads its arrays to the end.  Where it writes nothing, half of the memory is for what comes next;
/// else that is for what is on its way to the store.
class span_run::state::reading_far_ahead {
 public:
  explicit reading_far_ahead(const span_request& r) : request_(r) {
    if (std::any_of(r.arrays.begin(), r.arrays.end(), [](const span_array& a) { return a.written; })) return;
    set(r.arrays.front().core->shared().pager().budget() / 2 / r.arrays.size());
  }
  ~reading_far_ahead() { set(0); }
  reading_far_ahead(const reading_far_ahead&) = delete;
  reading_far_ahead& operator=(const reading_far_ahead&) = delete;

 private:
  void set(std::uint64_t bytes) const {
    for (const span_array& a : request_.arrays) a.core->shared().local().segment().set_read_ahead(bytes);
  }

  const span_request& request_;
};

// A block that cannot be read is then a failure of the call, and not of a touch, which ends the process.
void span_run::state::bring_in(std::byte* const* p, std::size_t count) const {
  for (std::size_t a = 0; a < request.arrays.size(); ++a) {
    const span_array& x = request.arrays[a];
    if (x.read || (x.written && passes_left == 1))
      throw_if(detail::bring_in(x.core->shared().segment(), p[a], count * x.element_size,
                                x.read ? access_mode::read : access_mode::write));
  }
}

void span_run::state::go_over(span_program& program) {
  const reading_far_ahead far(request);
  std::atomic<std::size_t> next{0};
  first_error error;
  const bool writes = passes_left == 1;
  std::size_t of_element = 0;
  for (const span_array& a : request.arrays)
    of_element += (a.read ? a.element_size : 0) + (a.written && writes ? a.element_size : 0);
  // The pass that writes goes over this rank's own rows.  Where the one before has read others', a block that both
  // ranks have rows of may be touched anew: not a read of the other's.
  const bool own_rows =
      writes && request.reads_others &&
      std::any_of(request.arrays.begin(), request.arrays.end(), [](const span_array& a) { return a.written; });
  const auto most = static_cast<unsigned>(std::min<std::size_t>(call.threads(), order.pieces()));
  run_on_threads(most, [&](unsigned thread) noexcept {
    exact_access() = own_rows;
    try {
      for (std::size_t piece; !error.kept() && (piece = next++) < order.pieces();) {
        order.for_each_run(piece, [&](std::byte* const* p, std::size_t count, const std::size_t* at) {
          bring_in(p, count);
          program.run(piece, thread, p, count, at);
        });
        program.end_piece(piece);
        call.advance(order.elements(piece) * of_element);
      }
    } catch (...) {
      error.keep();
      program.stop();
    }
    exact_access() = false;
  });
  error.rethrow();
}

span_run::span_run(const span_request& r) : state_(std::make_unique<state>(r)) {}

span_run::~span_run() = default;

unsigned span_run::threads() const noexcept { return state_->call.threads(); }
int span_run::rank() const noexcept { return state_->call.rank(); }
int span_run::ranks() const noexcept { return state_->call.ranks(); }

void span_run::begin(unsigned passes) {
  state& s = *state_;
  s.passes_left = passes;
  if (s.request.reads_others && s.call.ranks() > 1 && !s.call.only_plans())
    for (const span_array& a : s.request.arrays)
      if (a.core->shared().group().size() > 1) a.core->ranks().sync(durability::acknowledged);
  std::uint64_t elements = 0, read = 0, written = 0;
  for (std::size_t p = 0; p < s.order.pieces(); ++p) elements += s.order.elements(p);
  for (const span_array& a : s.request.arrays) {
    read += a.read ? a.element_size : 0;
    written += a.written ? a.element_size : 0;
  }
  s.done.bytes_read = passes * elements * read;
  s.done.bytes_written = elements * written;
  s.done.passes = passes;
  s.done.bound = elements * (read + written);
  s.call.begin(s.done.bytes_read + s.done.bytes_written);
}

void span_run::pass(span_program& program) {
  state& s = *state_;
  if (s.call.only_plans()) return;
  s.call.together([&] {
    const bool writes = s.passes_left == 1;
    program.begin(s.order.pieces());
    if (writes) s.promise();
    try {
      s.go_over(program);
    } catch (...) {
      if (writes) s.take_back_promises();
      throw;
    }
  });
  --s.passes_left;
}

std::vector<std::vector<std::byte>> span_run::gathered(const std::function<std::vector<std::byte>()>& mine) {
  return state_->call.together(mine);
}

void span_run::bring_in(const array_core& a, const void* first, std::size_t bytes) const {
  throw_if(detail::bring_in(a.shared().segment(), static_cast<const std::byte*>(first), bytes, access_mode::read));
}

pass_statistics span_run::finish() {
  state_->call.finish();
  return state_->done;
}

}  // namespace ooc::detail
