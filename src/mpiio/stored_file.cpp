#include "mpiio/stored_file.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "storage/collective/reaching_transfer.hpp"
#include "storage/layout/stripe_choice.hpp"
#include "storage/service/writer_claim.hpp"

namespace ooc::mpiio {

using storage::allocated_size;
using storage::open_mode;
using storage::opened_file;

namespace {

std::shared_ptr<void> claim_of(storage::store_core& core, const storage::entry& e) {
  storage::claim_holder other;
  auto claim = storage::claim_to_write(core, e.id, true, &other);
  if (!claim)
    throw usage_error(errc::busy, "'" + e.path + "' is open for writing in another program" +
                                      (other.name.empty() ? "" : " (" + other.name + ")") +
                                      ", which writes it alone: close it there first");
  return claim;
}

/// `claim`: how a file that is there is claimed.
opened_file opened_or_made(storage::store_core& core, const stored_file::opening& o,
                           const storage::claim_taker& claim) {
  const auto mode = o.write ? open_mode::read_write : open_mode::read;
  for (;;) {
    if (!o.exclusive) {
      try {
        return core.open(o.path, mode, false, claim);
      } catch (const error& e) {
        if (!o.create || e.code() != std::errc::no_such_file_or_directory) throw;
      }
    }
    try {
      storage::new_file f;
      f.striping = storage::with_stripe_size(o.striping, {}, static_cast<std::uint32_t>(core.nodes().size()));
      f.mode = 0666;
      return core.create(o.path, f);
    } catch (const error& e) {
      // Somebody else has made it meanwhile.
      if (o.exclusive || e.code() != std::errc::file_exists) throw;
    }
  }
}

}  // namespace

stored_file::stored_file(const store& s, opened_file f, bool write, std::shared_ptr<void> claim)
    : id_(f.meta.id),
      writable_(write),
      bytes_(s.core(), std::move(f), std::move(claim)),
      traffic_(std::make_shared<in_flight>()) {}

stored_file::~stored_file() { traffic_->wait_below(1); }

std::shared_ptr<stored_file> stored_file::open(const store& s, const opening& o) {
  storage::store_core& core = *s.core();
  std::shared_ptr<void> claim;
  storage::file_id of = 0;  // another file may have its place when it is looked up once more
  const auto take = [&](const storage::entry& e) {
    claim = claim_of(core, e);
    of = e.id;
    return true;
  };
  opened_file f = opened_or_made(core, o, o.write ? storage::claim_taker{take, false} : storage::claim_taker{});
  if (o.write && of != f.meta.id) {
    claim = claim_of(core, f.meta);
    f = core.claimed(f, false);
  }
  return std::shared_ptr<stored_file>(new stored_file(s, std::move(f), o.write, std::move(claim)));
}

std::shared_ptr<stored_file> stored_file::open_known(const store& s, storage::file_id id, bool write) {
  storage::store_core& core = *s.core();
  storage::entry e = core.metadata().find(id, !write);
  e.opened = storage::next_moment();
  opened_file f = core.opened(std::move(e));
  auto claim = write ? claim_of(core, f.meta) : nullptr;
  if (claim) f = core.claimed(f, false);
  return std::shared_ptr<stored_file>(new stored_file(s, std::move(f), write, std::move(claim)));
}

void stored_file::require_writable() const {
  if (!writable_)
    throw usage_error({EBADF, std::generic_category()},
                      "'" + bytes_.current()->meta.path + "' was opened for reading only");
}

failure stored_file::write_again(const storage::entry& stated, const request& r, const std::byte* memory) noexcept {
  try {
    bytes_.learn_of_cut(stated);
    return bytes_.write(r, memory);
  } catch (const error& e) {
    return {e.code(), e.what()};
  } catch (const std::exception& e) {
    return {std::make_error_code(std::errc::io_error), e.what()};
  }
}

// `again`: a write that is refused because another program has cut the file off is made again, not by the thread that
// is told so, which others wait for.
std::shared_ptr<transfer> stored_file::start(const opened& f, placed_request r, access_kind kind, bool again) {
  const auto t = std::make_shared<transfer>(r.wanted.bytes());
  const auto wanted = std::make_shared<const request>(std::move(r.wanted));
  const auto ended = [t, traffic = traffic_](const failure& e) {
    t->under_way_.end(e);
    traffic->end();
  };
  // `self` is there until its traffic has ended, but no longer: who tells of the end must not be the one who closes the
  // file and the store.
  const auto done = [ended, wanted, self = again ? this : nullptr, base = r.base, sent_as = f](const failure& e) {
    if (self == nullptr || e.code != errc::cut_off) return ended(e);
    try {
      std::thread([=] { ended(self->write_again(sent_as->meta, *wanted, base)); }).detach();
    } catch (const std::exception&) {  // there is no thread, or no memory for one
      ended(e);
    }
  };
  traffic_->begin();
  t->under_way_.begin();
  try {
    if (kind == access_kind::read)
      f->file->read(wanted, r.base, done);
    else
      f->file->write(wanted, r.base, done);
  } catch (...) {
    ended({});
    throw;
  }
  return t;
}

// Locks are for who may write: who may not reads between the writes of others.
storage::size_lock_ptr stored_file::turn_to_read() {
  try {
    return bytes_.store().metadata().lock_size(id_);
  } catch (const error& e) {
    const bool may_not = e.code() == std::errc::permission_denied || e.code() == std::errc::read_only_file_system;
    if (writable_ || !may_not) throw;
    return nullptr;
  }
}

std::shared_ptr<transfer> stored_file::read(std::span<const ooc_mpiio_extent> extents, bool atomic) {
  const auto turn = atomic ? turn_to_read() : nullptr;
  const opened f = bytes_.reaching(end_of(extents));
  auto t = start(f, as_request(extents, f->meta.size), access_kind::read);
  if (turn) (void)t->wait();
  return t;
}

std::shared_ptr<transfer> stored_file::write(std::span<const ooc_mpiio_extent> extents, bool atomic) {
  require_writable();
  const std::uint64_t end = end_of(extents);
  {
    const lock_guard lock(mutex_);
    wrote_ = true;
  }
  if (atomic) return write_as_a_whole(extents, end);
  return start(bytes_.grown_to(end), as_request(extents, end), access_kind::write, true);
}

// A file that gets longer is seen longer when the bytes are there: they go into reserved space first.
std::shared_ptr<transfer> stored_file::write_as_a_whole(std::span<const ooc_mpiio_extent> extents, std::uint64_t end) {
  for (;;) {
    auto turn = lock_size(bytes_.store(), id_);
    // Before it was this one's turn others may have made the file longer or shorter.
    const opened f = bytes_.refreshed();
    if (allocated_size(f->meta) < end) {
      turn.reset();
      bytes_.make_room(end, true);
      continue;
    }
    auto t = start(f, as_request(extents, end), access_kind::write);
    try {
      (void)t->wait();
    } catch (const error& e) {
      if (e.code() != errc::cut_off) throw;
      // By somebody who has died before he could say so.
      turn.reset();
      bytes_.learn_of_cut(f->meta);
      continue;
    }
    if (f->meta.size < end) {
      storage::entry_change longer;
      longer.size_at_least = end;
      (void)bytes_.store().metadata().change(id_, longer);
      (void)bytes_.seen_to(f, end);
    }
    return t;
  }
}

std::uint64_t stored_file::transfer_together(process_group& group, access_kind kind,
                                             std::span<const ooc_mpiio_extent> extents, bool atomic) {
  const bool writes = kind == access_kind::write;
  const std::string call = (writes ? "write_all of '" : "read_all of '") + bytes_.current()->meta.path + "'";
  placed_request mine;
  if (atomic) {
    std::uint64_t bytes = 0;
    group.together(call, [&] {
      bytes = (writes ? write(extents, true) : read(extents, true))->wait();
      return process_group::bytes{};
    });
    return bytes;
  }

  const storage::joint_request all = storage::gather(group, call, bytes_, [&] {
    if (writes) require_writable();
    const std::uint64_t end = end_of(extents);
    mine = as_request(extents, writes ? end : bytes_.reaching(end)->meta.size);
    return mine.wanted;
  });
  if (all.end() == 0) return 0;
  if (writes) {
    const lock_guard lock(mutex_);
    wrote_ = true;
  }

  const storage::collective_transfer t{.group = group,
                                       .call = call,
                                       .kind = kind,
                                       .wanted = all.wanted,
                                       .memory = mine.base,
                                       .round_bytes = storage::default_round_bytes};
  const auto how = [&](const storage::striped_file& file) {
    const auto best = storage::choose_strategy(kind, all.wanted, all.nodes);
    if (!writes || best != storage::strategy::two_phase) return best;
    // MPI allows ranks to write the same bytes: one of them is last.
    try {
      storage::check_disjoint(file, t);
    } catch (const usage_error& e) {
      if (e.code() != errc::conflict) throw;
      return storage::strategy::independent;
    }
    return best;
  };
  storage::transfer_reaching(t, all, bytes_, how);
  return mine.wanted.bytes();
}

std::uint64_t stored_file::size() { return bytes_.refreshed()->meta.size; }

void stored_file::forget_size() { bytes_.forget_size(); }

void stored_file::resize(std::uint64_t size) {
  require_writable();
  if (bytes_.refreshed()->meta.size == size) return;
  bytes_.resize(size);
  const lock_guard lock(mutex_);
  wrote_ = true;
}

void stored_file::sync() {
  // Other ranks may have written where there was nothing before.
  bytes_.store().sync(*bytes_.refreshed());
}

void stored_file::leave() {
  traffic_->wait_below(1);
  (void)bytes_.leave();
  {
    const lock_guard lock(mutex_);
    if (!std::exchange(wrote_, false)) return;
  }
  storage::entry_change touched;
  touched.data_changed_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  (void)bytes_.store().metadata().change(id_, touched);
}

void stored_file::give_back() {
  if (writable_) bytes_.give_back();
}

}  // namespace ooc::mpiio
