#include "storage/service/store_core.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "storage/base/log.hpp"
#include "storage/base/refuse.hpp"
#include "storage/service/commits.hpp"
#include "storage/service/generations.hpp"
#include "storage/service/node_locality.hpp"
#include "storage/service/removals.hpp"
#include "storage/service/writer_claim.hpp"

namespace ooc::storage {

namespace {

constexpr std::uint64_t max_size = std::numeric_limits<std::int64_t>::max();

/// The file that is to be made on so many nodes, with all that `f` leaves open.
new_file checked(std::string_view path, const new_file& f, bool finished, std::size_t node_count) {
  const auto nodes = static_cast<std::uint32_t>(node_count);
  const std::string name(path);
  new_file complete = f;
  striping& s = complete.striping;
  if (s.nn == 0) s.nn = nodes;
  if (complete.nodes.empty() && s.sn >= nodes)
    refuse(errc::invalid_request, name,
           "first node " + std::to_string(s.sn) + ": the store has nodes 0 to " + std::to_string(nodes - 1));
  if (s.nn > nodes)
    refuse(errc::invalid_request, name, std::to_string(s.nn) + " nodes: the store has " + std::to_string(nodes));
  if (s.sf == 0) refuse(errc::invalid_request, name, "the stripe size is 0");
  if (s.sf > max_size / s.nn)
    refuse(errc::invalid_request, name, "the stripe size times the nodes passes 2^63 - 1 bytes");
  if (f.size > max_size) refuse(errc::invalid_request, name, "a file has at most 2^63 - 1 bytes");

  complete.finished = finished;
  // Others may know the store to have more nodes.
  if (complete.nodes.empty() && std::uint64_t{s.sn} + s.nn > nodes) complete.nodes = nodes_of(s, {}, nodes);
  return complete;
}

entry created(store_core& store, std::string_view path, const new_file& f, bool finished) {
  entry e = store.metadata().create(path, checked(path, f, finished, store.nodes().size()));
  e.opened = next_moment();
  return e;
}

// Somebody else may have made it one since it was opened.
void require_no_array(const entry& e, std::uint64_t end) {
  if (!e.array.extents.empty())
    refuse(errc::invalid_request, e.path,
           "it holds an array of " + std::to_string(e.size) +
               " bytes, and cannot be made longer for a write that ends at " + "byte " + std::to_string(end) +
               ": resize the array");
}

// The claim comes first: who is refused must not end the claims of others, and who is granted his must have seen the
// last write of those whose claims have ended.  Nothing where another file has taken the place of what `look` found.
std::optional<opened_file> opened_as(store_core& store, const std::function<entry()>& look, entry e, open_mode mode,
                                     const claim_taker& claim) {
  if (mode == open_mode::read_write) require_unpacked(e);
  if (mode == open_mode::read_write && e.commit && !claim.knows_commits)
    refuse(errc::invalid_request, e.path,
           "an array with commits is written as an array only (ooc::open); copy it to one without to write its file");
  // Gives back bytes that were reserved by a process that has died.
  if (mode == open_mode::read_write && e.reserved > e.size) e = store.give_back(store.opened(std::move(e))).meta;
  const bool claimed = claim.take && claim.take(e);
  if (claimed) {  // before that others may have changed it, or begun what leaves it half done
    entry now = look();
    if (now.id != e.id) return {};
    e = std::move(now);
    if (claim.check) claim.check(e);
  }
  const auto opened_now = [&] {  // when the nodes have been asked, so that what they lost before is known
    e.opened = next_moment();
    return store.opened(std::move(e));
  };
  if (mode == open_mode::read) return opened_now();
  for (const file_id id : e.left_behind) throw_if(remove_everywhere(store, id));
  e.left_behind.clear();
  const bool alone = claim.alone || e.commit;
  if (allocated_size(e) != 0 || claimed) e = with_next_generation(store, std::move(e), claimed, alone);
  opened_file f = opened_now();
  return f.meta.commit ? roll_back(store, f) : f;
}

// The file as the metadata have it now, in the name of the same claim.
opened_file found_again(store_core& store, const entry& e) {
  entry now = store.metadata().find(e.id, e.at_commit);
  now.claim = e.claim;
  now.opened = e.opened;
  if (e.at_commit && now.commit->number != e.commit->number) {  // who reads a commit stays with it
    now.size = e.size;
    now.array.extents = e.array.extents;
    now.attributes = e.attributes;
    now.commit = e.commit;
  }
  return store.opened(std::move(now));
}

// The stripe objects of `e`, which had those of `old_size` bytes, become those of a file that has been cut off so
// often.
failure resize_cut(store_core& store, const entry& e, std::uint64_t old_size, std::uint64_t cuts) {
  auto shape = std::make_shared<file_shape>(store.opened(e).file->shape());
  shape->cuts = cuts;
  shape->cut = cuts != 0;
  return striped_file(std::move(shape), store.nodes()).resize_objects(old_size);
}

// `resize` is of the stripe objects of `e` as long as the caller has the lock of its size.  Where nodes refuse it
// because the file has been opened for writing since `e` was looked up, it is repeated with the generation that the
// file has now.
template <class F>
failure while_locked(store_core& store, entry& e, std::uint64_t wanted, F resize) {
  for (;;) {
    const failure f = resize(std::as_const(e));
    if (f.code != errc::conflict) return f;
    entry now = store.metadata().find(e.id);
    // Whoever is opening it has not told the metadata yet, or never will.
    if (now.generation <= e.generation) now = with_next_generation(store, std::move(now));
    e.generation = now.generation;
    // In this order: who has lost the lock gets no right to resize a generation that came after that.
    e.capability = store.metadata().size_capability(e.id, wanted);
  }
}

}  // namespace

store_core::store_core(std::string url, std::string uuid, std::shared_ptr<metadata_service> metadata,
                       striped_file::nodes nodes, std::uint64_t client, unpacked_node_maker unpack,
                       store_nodes::source further)
    : url_(std::move(url)),
      uuid_(std::move(uuid)),
      metadata_(std::move(metadata)),
      nodes_(std::move(nodes), std::move(further)),
      client_(client),
      unpacked_(std::move(unpack)),
      removals_([this](std::vector<entry> gone) { return remove_files(*this, std::move(gone)); }) {}

store_core::~store_core() {
  if (::getpid() == process_) return;
  // Their threads, for which they would wait, are the parent's.
  static_cast<void>(new std::shared_ptr(std::move(metadata_)));
  static_cast<void>(new striped_file::nodes(nodes_.all()));
}

metadata_service& store_core::metadata() const {
  if (::getpid() != process_)
    throw usage_error(errc::busy, "store '" + url_ +
                                      "' was opened by the parent of this process, which was forked: open it again "
                                      "here");
  return *metadata_;
}

opened_file store_core::opened(entry e) const {
  auto [nodes, list] = nodes_.of(e);
  auto shape = std::make_shared<file_shape>();
  shape->id = e.id;
  shape->striping = e.striping;
  shape->nodes = std::move(list);
  shape->size = allocated_size(e);
  shape->sparse = has_sparse_objects(e);
  shape->fill = e.fill;
  shape->name = e.path;
  shape->capability = e.capability;
  shape->generation = e.generation;
  shape->claim = e.claim;
  shape->opened = e.opened;
  // Of an array the ranks know more than what they have looked up.
  if (e.array.extents.empty()) shape->cuts = e.cuts;
  if (e.commit) {
    shape->commits = true;
    shape->commit = e.commit->number;
    shape->at_commit = e.at_commit;
  }
  shape->permissions = {e.owner, e.group, e.mode};
  striped_file::finder find;
  if (!e.in_place)
    find = [weak = weak_from_this(), known = moved_file(e)](auto found) {
      if (const auto self = weak.lock())
        self->moved_.find([self, known] { return known.place_in(*self); }, std::move(found));
      else
        found(nullptr);
    };
  std::shared_ptr<unpacked_file> unpacked;
  if (!e.codec.empty() && e.names != 0)  // what is being made is not read
    unpacked =
        unpacked_.find(e, [&, &all = nodes] { return std::make_shared<const striped_file>(shape, all, client_); });
  auto file = std::make_shared<const striped_file>(std::move(shape), std::move(nodes), client_, std::move(find),
                                                   std::move(unpacked));
  return {std::move(e), std::move(file)};
}

namespace {

// opened_as() of what `look` finds, and once more where another file has taken its place meanwhile.
opened_file open_found(store_core& store, const std::function<entry()>& look, open_mode mode,
                       const claim_taker& claim) {
  for (;;) {
    entry e = look();
    const file_id id = e.id;
    try {
      if (auto f = opened_as(store, look, std::move(e), mode, claim)) return *std::move(f);
    } catch (const error& x) {
      if (x.code() != std::errc::no_such_file_or_directory || store.metadata().find(id).id == id) throw;
    }
  }
}

}  // namespace

opened_file store_core::open(std::string_view path, open_mode mode, bool unfinished, const claim_taker& claim) {
  return open_found(
      *this, [&] { return metadata().open(path, mode == open_mode::read_write, unfinished); }, mode, claim);
}

opened_file store_core::open(file_id id, open_mode mode, const claim_taker& claim) {
  return open_found(
      *this, [&] { return metadata().find(id, mode == open_mode::read); }, mode, claim);
}

opened_file store_core::claimed(const opened_file& f, bool alone) {
  entry now = metadata_->find(f.meta.id);  // somebody else may have had it meanwhile
  require_claim(*this, f.meta.id, now.path);
  now.claim = {now.generation, alone};
  now.opened = f.meta.opened;
  return opened(std::move(now));
}

opened_file store_core::give_back(const opened_file& f) {
  const file_id id = f.meta.id;
  const auto lock = lock_size(*this, id);
  // The process that has reserved it holds a claim together with others.
  const auto alone = metadata_->claim_writer(id, false);
  if (!alone) return refresh(f);
  entry now = metadata_->find(id);
  now.opened = f.meta.opened;
  if (now.reserved <= now.size) return opened(std::move(now));
  return resize_locked(*lock, now, now.size, now.array.extents);
}

opened_file store_core::make(std::string_view path, const new_file& f) {
  const auto try_once = [&] {
    opened_file made = opened(created(*this, path, f, false));
    try {
      // Elements would be somewhere else for all who open the file later.
      if (made.meta.array.max_extents != f.array.max_extents)
        refuse(
            errc::invalid_request, path,
            "the metadata server is of a release that knows max_extents of the first dimension only; use a later one");
      if (made.meta.commit.has_value() != f.commits)
        refuse(errc::invalid_request, path,
               "the metadata server is of a release that does not know commits; use a later one");
      throw_if(made.file->create_objects());
    } catch (...) {
      abandon(made);
      throw;
    }
    return made;
  };
  try {
    return try_once();
  } catch (const error& e) {
    // The space of what was removed may be enough.
    if (e.code() != std::errc::no_space_on_device || !removals_.finish()) throw;
  }
  return try_once();
}

void store_core::commit(const opened_file& f) {
  try {
    metadata_->commit(f.meta.id);
  } catch (...) {
    abandon(f);
    throw;
  }
}

opened_file store_core::create(std::string_view path, const new_file& f) {
  // An empty file has no stripe objects: entry and commit are one step.
  if (f.size == 0 && !f.commits) return opened(created(*this, path, f, true));
  opened_file made = make(path, f);
  commit(made);
  return made;
}

void store_core::abandon(const opened_file& f) noexcept {
  try {
    metadata_->abandon(f.meta.id);
    // Not of a file that is there: its commit may have been made, and the answer lost.
    (void)metadata_->removal_capability(f.meta.id);
    (void)remove_objects(*metadata_, *f.file);
  } catch (const std::exception&) {
    // The database cannot be reached: what is left is swept when this process has ended.  Or the file stays.
  }
}

void store_core::remove(std::string_view path) {
  const std::uint64_t before = next_moment();
  entry e = metadata().remove(path);
  e.opened = before;
  if (e.kind != entry_kind::file || e.names != 0) return;
  const bool large = allocated_size(e) >= removal_queue::most_bytes;
  removals_.add(std::move(e));
  if (large) removals_.finish();
}

std::shared_ptr<void> store_core::claim_unused(const entry& e, std::string_view to_be) {
  if (e.kind != entry_kind::file) return nullptr;
  claim_holder other;
  try {
    if (auto claim = claim_to_write(*this, e.id, false, &other)) return claim;
  } catch (const error& refused) {
    // A user may be allowed to remove a file and not to write it; or it has been removed meanwhile.
    if (refused.code() != std::errc::permission_denied && refused.code() != std::errc::no_such_file_or_directory) throw;
    return nullptr;
  }
  throw usage_error(errc::busy, "'" + e.path + "' is open for writing" +
                                    (other.name.empty() ? "" : " (" + other.name + ")") + " and cannot be " +
                                    std::string(to_be) + ": close it there first");
}

void store_core::replace(std::string_view from, std::string_view to) {
  std::shared_ptr<void> claim;
  if (const std::optional<entry> there = lookup_if_there(*metadata_, to)) claim = claim_unused(*there, "replaced");
  const std::uint64_t before = next_moment();
  entry gone = metadata_->move(from, to, true);
  gone.opened = before;
  if (gone.id != 0 && gone.kind == entry_kind::file && gone.names == 0) removals_.add_unnamed(std::move(gone));
}

opened_file store_core::resize_locked(size_lock& lock, const entry& now, std::uint64_t size,
                                      const std::vector<std::uint64_t>& extents, std::uint64_t reserved) {
  if (size > max_size) refuse(errc::invalid_request, now.path, "a file has at most 2^63 - 1 bytes");
  const bool packed = !now.codec.empty();
  if (!packed) reserved = reserved > size ? std::min(reserved, max_size) : 0;
  const std::uint64_t had = allocated_size(now), wanted = packed ? reserved : std::max(size, reserved);
  entry next = now;
  next.size = size;
  next.reserved = reserved;
  set_extents(next.array, extents);
  entry before = now;
  before.capability = next.capability = metadata_->size_capability(now.id, wanted);
  // Others may have seen the size, or may have reserved what is past it.
  const bool cuts = wanted < had && now.array.extents.empty() && now.cuts != 0;
  const auto resize = [&] {
    return while_locked(*this, next, wanted, [&](const entry& e) {
      return cuts ? resize_cut(*this, e, had, now.cuts + 1) : opened(e).file->resize_objects(had);
    });
  };
  const auto go_back = [&] {
    before.generation = next.generation;
    return while_locked(*this, before, wanted, [&](const entry& e) {
      return cuts ? resize_cut(*this, e, 0, now.cuts) : opened(e).file->resize_objects(wanted);
    });
  };
  lock.unsettled = true;
  failure f = resize();
  if (f.code == std::errc::no_space_on_device && removals_.finish()) f = resize();
  if (f) {
    // Back to what the entry says.  Bytes that a failed shrink cut off are gone; a failed growth
    // (a full disk) leaves no trace.
    try {
      lock.unsettled = static_cast<bool>(go_back());
    } catch (const error&) {
      // The lock is lost, or nobody can say: what has failed first counts.
    }
    throw_if(f);
  }
  lock.unsettled = false;
  if (!has_new_objects(now.striping, had, wanted)) {
    metadata_->set_size(now.id, size, extents, 0, reserved);
    if (cuts) ++next.cuts;
  } else {
    // Clients that opened the file for writing meanwhile did not know of the new stripe objects: they must not be
    // older than the metadata say when the new size is seen.
    // (Where there were none at all, nobody had opened them; they were made with the file's generation.)
    if (had == 0 && metadata_->set_size(now.id, size, extents, next.generation, reserved))
      return next.capability ? found_again(*this, now) : opened(std::move(next));
    for (;;) {
      const std::uint64_t generation = metadata_->find(next.id).generation;
      if (std::exchange(next.generation, generation) != generation)  // the new ones are behind it
        throw_if(opened(next).file->resize_objects(had));
      entry advanced = next;
      const failure e = advance(*this, advanced);
      if (e.code == errc::conflict) {
        entry later = next;
        later.generation = metadata_->find(next.id).generation;
        require_changed(next, later, e);
        continue;
      }
      throw_if(e);
      next = std::move(advanced);
      if (metadata_->set_size(next.id, size, extents, next.generation, reserved)) break;
    }
  }
  if (!next.capability) return opened(std::move(next));
  // The right to use the file as it was ends at the old size.
  return found_again(*this, now);
}

opened_file store_core::resize(const opened_file& f, std::uint64_t size, const std::vector<std::uint64_t>& extents) {
  const auto lock = lock_size(*this, f.meta.id);
  const entry now = found_again(*this, f.meta).meta;
  require_unpacked(now);
  // A growth leaves others what they have reserved.
  return resize_locked(*lock, now, size, extents, size > now.size ? now.reserved : 0);
}

opened_file store_core::set_packed(const opened_file& f, std::uint64_t bytes) {
  const auto lock = lock_size(*this, f.meta.id);
  const entry now = found_again(*this, f.meta).meta;
  return resize_locked(*lock, now, now.size, now.array.extents, bytes);
}

opened_file store_core::grow(const opened_file& f, std::uint64_t size, std::uint64_t reserved) {
  const auto lock = lock_size(*this, f.meta.id);
  entry now = found_again(*this, f.meta).meta;
  if (now.size >= size) return opened(std::move(now));
  require_no_array(now, size);
  if (allocated_size(now) < size)
    return resize_locked(*lock, now, size, now.array.extents, std::max(now.reserved, reserved));
  entry_change longer;
  longer.size_at_least = size;
  (void)metadata_->change(now.id, longer);
  now.size = size;
  return opened(std::move(now));
}

opened_file store_core::reserve(const opened_file& f, std::uint64_t end, std::uint64_t reserved) {
  const auto lock = lock_size(*this, f.meta.id);
  entry now = found_again(*this, f.meta).meta;
  if (allocated_size(now) >= end) return opened(std::move(now));
  require_no_array(now, end);
  if (end > max_size) refuse(errc::invalid_request, now.path, "a file has at most 2^63 - 1 bytes");
  return resize_locked(*lock, now, now.size, now.array.extents, std::max(end, reserved));
}

namespace {

/// Whether modes and owners of files are those of their stripe objects too.
bool keep_permissions(const striped_file::nodes& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const auto& n) { return n->keeps_permissions(); });
}

}  // namespace

entry store_core::change(const place& where, const entry_change& what) {
  if ((what.mode || what.owner || what.group) && keep_permissions(nodes()))
    return change_permissions(metadata_->lookup(where), what);
  // Another client that makes the file longer meanwhile, or reserves more, would take the size back to what it was.
  const auto lock = what.size_at_least ? lock_size(*this, metadata_->lookup(where).id) : nullptr;
  return metadata_->change(where, what);
}

// By id: another file may have taken the path since `e` was looked up.
entry store_core::change_permissions(entry e, const entry_change& what) {
  if (e.kind != entry_kind::file) return metadata_->change(e.id, what);
  // Whoever makes the file longer now gives new stripe objects the old permissions or the new ones.
  const auto lock = metadata_->lock_size(e.id);
  e = metadata_->find(e.id);
  const file_permissions before{e.owner, e.group, e.mode};
  const file_permissions after{what.owner.value_or(e.owner), what.group.value_or(e.group), what.mode.value_or(e.mode)};
  const auto permit = [&](const file_permissions& p) {
    entry with = e;
    with.owner = p.owner;
    with.group = p.group;
    with.mode = p.mode;
    return opened(std::move(with)).file->permit_objects();
  };
  // First what both allow, then the entry, then the rest.
  file_permissions meanwhile = after;
  meanwhile.mode &= before.mode;
  if (after.owner != before.owner || after.group != before.group) meanwhile.mode &= 0700;
  entry changed;
  try {
    throw_if(permit(meanwhile));
    changed = metadata_->change(e.id, what);
  } catch (...) {
    (void)permit(before);
    throw;
  }
  throw_if(permit(after));
  return changed;
}

opened_file store_core::refresh(const opened_file& f) { return found_again(*this, f.meta); }

void store_core::sync(const opened_file& f) {
  throw_if(f.file->sync());
  sync_entry(f);
}

namespace {

// A file leaves its first generation by its first sync: from then on none of its stripe objects may be missing.  True
// where that has made the entry durable, with all that was changed before.
bool settle(store_core& store, const opened_file& f) {
  if (f.meta.in_place || f.meta.generation != 1 || f.file->is_settled()) return false;
  try {
    // Nobody makes further stripe objects meanwhile.
    const auto lock = store.metadata().lock_size(f.meta.id);
    entry now = found_again(store, f.meta).meta;
    if (now.generation == 1 && allocated_size(now) != 0) {
      entry next = now;
      const failure e = advance(store, next);
      if (!e) {
        (void)store.metadata().set_generation(next.id, next.generation, allocated_size(next));
        f.file->set_settled();
        return true;
      }
      // Others have opened it for writing meanwhile.
      next = found_again(store, f.meta).meta;
      require_changed(now, next, e);
      now = std::move(next);
    }
    if (now.generation != 1) f.file->set_settled();
  } catch (const error& e) {
    // A reader may sync, but not say so in the entry; a file that somebody has removed has none.
    if (e.code() != std::errc::permission_denied && e.code() != std::errc::read_only_file_system &&
        e.code() != std::errc::operation_not_permitted && e.code() != std::errc::no_such_file_or_directory)
      throw;
  }
  return false;
}

}  // namespace

void store_core::sync_entry(const opened_file& f) {
  if (!settle(*this, f)) metadata_->ask(calls::sync{});
  // An entry that is not there, or is as it was before, may have gone with the power of the server's machine.
  throw_if(metadata_->epoch_of(f.meta).lost);
}

opened_file after_cut(store_core& store, const opened_file& f) {
  metadata_service& metadata = store.metadata();
  const auto lock = lock_size(store, f.meta.id);
  opened_file now = store.refresh(f);
  for (const file_id id : now.meta.left_behind) throw_if(remove_everywhere(store, id));
  if (now.meta.id != f.meta.id || now.meta.cuts > f.meta.cuts) return now;
  // The metadata know of no cut, so there was none; nor has it been moved.
  entry e = now.meta;
  e.capability = metadata.size_capability(e.id, allocated_size(e));
  lock->unsettled = true;
  throw_if(while_locked(store, e, allocated_size(e), [&](const entry& m) { return resize_cut(store, m, 0, m.cuts); }));
  lock->unsettled = false;
  return store.refresh(f);
}

std::vector<std::uint32_t> near_nodes(const striped_file::nodes& nodes) {
  const std::vector<known_locality> all = localities_of(nodes);
  std::vector<std::uint32_t> near;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    throw_if(all[i].failed);
    if (all[i].far != locality::network) near.push_back(i);
  }
  return near;
}

std::uint64_t store_core::staging_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& n : nodes()) sum += n->staging_bytes();
  return sum;
}

}  // namespace ooc::storage
