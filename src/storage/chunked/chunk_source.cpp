#include "storage/chunked/chunk_source.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "storage/base/notice.hpp"
#include "storage/base/refuse.hpp"

namespace ooc::storage {

chunk_source::chunk_source(std::shared_ptr<const chunked_dataset> d, std::unique_ptr<stored_chunks> stored,
                           std::uint64_t budget)
    : dataset_(std::move(d)),
      grid_(dataset_->grid),
      places_(std::move(stored)),
      writer_(places_->writer()),
      memory_(memory_for(budget)),
      buffers_(grid_.chunk_bytes()),
      decoded_(memory_.kept) {
  if (writer_) changed_.emplace(memory_.changed);
}

chunk_memory chunk_source::memory_for(std::uint64_t budget) const {
  const std::string& name = dataset_->name;
  const file_chunks& chunks = dataset_->chunks;
  const std::uint64_t chunk = grid_.chunk_bytes();
  const std::uint64_t of_thread = chunk + chunk_decoder::memory(chunks, chunk, places_->most_stored()) +
                                  (writer_ ? chunk_encoder::memory(chunks, chunk) : 0);
  const std::uint64_t most = budget / 2, least = of_thread + (writer_ ? 2 : 1) * chunk;
  if (most < least)
    refuse(errc::budget_too_small, name,
           "a chunk has " + std::to_string(chunk) + " bytes, which needs a memory budget of at least " +
               std::to_string(2 * least) + " bytes, and it is " + std::to_string(budget) +
               "; import it, or store or pack it in smaller chunks");
  chunk_memory m;
  const std::uint64_t processors = std::max(1U, std::thread::hardware_concurrency());
  m.threads = static_cast<unsigned>(std::clamp<std::uint64_t>(most / 4 / of_thread, 1, processors));
  const std::uint64_t room = (most - m.threads * of_thread) / chunk;
  const std::uint64_t all = grid_.chunks(), together = grid_.chunks_in_use_together();
  // What reading ahead needs of the chunks that come next, beside those that are not done with.
  m.kept = std::min({room, (writer_ ? 3 : 2) * together + m.threads, all});
  // One that is read, and what each thread adds, are beside them.
  if (writer_)
    m.changed = std::max<std::uint64_t>(1, std::min(together + m.threads, m.kept - std::min(m.kept, 1UL + m.threads)));
  m.bytes = m.kept * chunk + m.threads * of_thread;
  const std::uint64_t together_kept = writer_ ? m.changed : m.kept;
  if (together_kept < std::min(together, all))
    notice("'" + name + "': a walk in row-major order comes back to " + std::to_string(together) + " chunks of " +
           std::to_string(chunk) + " bytes, of which the memory budget keeps " + std::to_string(together_kept) +
           "; the others are decoded" + (writer_ ? ", and packed," : "") + " each time.  A budget of " +
           std::to_string(2 * ((together + (writer_ ? 1 + m.threads : 0)) * chunk + m.threads * of_thread)) +
           " bytes keeps all; blocks in tiles of about a chunk's extents, or an import, need none of that");
  return m;
}

chunk_worker chunk_source::worker() const {
  chunk_worker w{{dataset_->chunks, dataset_->element_size}, std::nullopt};
  if (writer_) w.encoder.emplace(dataset_->chunks, dataset_->element_size);
  return w;
}

void chunk_source::read(std::uint64_t chunk, chunk_worker& w, std::function<failure(const std::byte*)> use,
                        std::function<void(const failure&)> done) {
  if (!changed_)
    return get(chunk, w, [use = std::move(use), done = std::move(done)](const failure& f, const auto& found) {
      done(f ? f : use(found.get()));
    });
  failure f;
  {
    const lock_guard lock(changed_->mutex_of(chunk));
    if (const changed_chunks::bytes changed = changed_->find(chunk)) {
      f = use(changed.get());
    } else if (!decoded_.has(key_of(chunk)) && !writer_->is_there(chunk)) {
      f = use(nullptr);
    } else {
      decoded_chunks::bytes found;
      f = get_now(chunk, w, found);
      if (!f) f = use(found.get());
    }
  }
  done(f);
}

failure chunk_source::write(std::uint64_t chunk, chunk_worker& w, const change& c, bool& complete) {
  if (failure f = make_room_for(chunk, w)) return f;
  const std::uint64_t all = grid_.bytes_in_array(chunk);
  const lock_guard lock(changed_->mutex_of(chunk));
  changed_chunks::bytes holds = changed_->find(chunk);
  if (!holds) {
    bool known = true;
    if (failure f = begin_change(chunk, w, c.bytes == all, holds, known)) return f;
    try {
      const bool same = known && c.is_there(holds.get());
      if (same && (!dataset_->chunks.fill_is_undefined || writer_->is_there(chunk)))
        return decoded_.put(key_of(chunk), holds), failure{};
      changed_->add(chunk, holds);
    } catch (const std::bad_alloc&) {
      decoded_.give_room();
      throw;
    }
  }
  c.put(holds.get());
  complete = changed_->note(chunk, c.bytes) >= all;
  return {};
}

failure chunk_source::begin_change(std::uint64_t chunk, chunk_worker& w, bool whole, changed_chunks::bytes& holds,
                                   bool& known) {
  holds = decoded_.take(key_of(chunk));
  if (holds) return {};
  failure f;
  try {
    holds = buffers_.take();
    const std::span<std::byte> to(holds.get(), grid_.chunk_bytes());
    known = !whole || !writer_->is_there(chunk);
    if (!whole)
      f = decode(chunk, w.decoder, to);
    else if (known || grid_.bytes_in_array(chunk) < to.size())
      fill(to);
  } catch (const std::bad_alloc&) {
    f = no_memory(chunk);
  }
  if (f) decoded_.give_room();
  return f;
}

failure chunk_source::make_room_for(std::uint64_t chunk, chunk_worker& w) {
  while (const std::optional<std::uint64_t> oldest = changed_->oldest_of_many(chunk))
    if (failure f = clean(*oldest, w)) return f;
  return {};
}

failure chunk_source::clean(std::uint64_t chunk, chunk_worker& w) try {
  const lock_guard lock(changed_->mutex_of(chunk));
  const changed_chunks::bytes holds = changed_->find(chunk);
  if (!holds) return {};
  if (const std::string why = w.encoder->encode({holds.get(), grid_.chunk_bytes()}); !why.empty())
    return places_->failed(chunk, errc::invalid_request, why, false);
  const std::span<const std::byte> stored = w.encoder->stored();
  if (failure f = writer_->write(chunk, stored)) return f;
  counters.add(&io_stats::device_writes, 1);
  counters.add(&io_stats::device_bytes_written, stored.size());
  decoded_.put(key_of(chunk), holds);
  changed_->remove(chunk);
  return {};
} catch (const std::bad_alloc&) {
  return no_memory(chunk);
}

failure chunk_source::sync() {
  const lock_guard lock(sync_mutex_);
  counters.add(&io_stats::syncs, 1);
  // The kernel tells a failure once: what it was for may be lost, whatever a later sync says.
  if (!sync_failed_) sync_failed_ = writer_->sync();
  return sync_failed_;
}

void chunk_source::get(std::uint64_t chunk, chunk_worker& w, decoded_chunks::user use) {
  const std::uint64_t key = key_of(chunk);
  if (!decoded_.need(key, std::move(use))) return;
  decoded_chunks::bytes made;
  failure f;
  try {
    const auto memory = buffers_.take();
    f = decode(chunk, w.decoder, {memory.get(), grid_.chunk_bytes()});
    made = memory;
  } catch (const std::bad_alloc&) {
    f = no_memory(chunk);
  }
  decoded_.arrived(key, f, f ? nullptr : made);
}

failure chunk_source::get_now(std::uint64_t chunk, chunk_worker& w, decoded_chunks::bytes& found) {
  bool told = false;
  failure why;
  get(chunk, w, [&](const failure& f, const decoded_chunks::bytes& b) {
    told = true;
    why = f;
    found = b;
  });
  assert(told);
  static_cast<void>(told);
  return why;
}

failure chunk_source::decode(std::uint64_t chunk, chunk_decoder& d, std::span<std::byte> to) {
  const stored_chunks::stored found = places_->read(chunk, d);
  if (found.why) return found.why;
  if (found.bytes == 0) return fill(to), failure{};
  counters.add(&io_stats::device_reads, 1);
  counters.add(&io_stats::device_bytes_read, found.bytes);
  const std::string why = d.decode(found.filter_mask, to);
  return why.empty() ? failure{} : places_->failed(chunk, errc::corrupt, why);
}

}  // namespace ooc::storage
