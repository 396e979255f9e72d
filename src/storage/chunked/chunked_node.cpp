#include "storage/chunked/chunked_node.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "storage/base/completion_counter.hpp"
#include "storage/base/job_threads.hpp"
#include "storage/base/notice.hpp"
#include "storage/base/refuse.hpp"
#include "storage/chunked/chunk_decoder.hpp"
#include "storage/chunked/chunk_grid.hpp"
#include "storage/chunked/decoded_chunks.hpp"
#include "storage/chunked/stored_chunks.hpp"
#include "storage/layout/regions.hpp"
#include "storage/service/node_counters.hpp"

namespace ooc::storage {
namespace {

/// Chunks that are decoded at a time, and kept.
struct chunk_memory {
  unsigned threads = 1;
  std::uint64_t kept = 0;
  std::uint64_t bytes = 0;  ///< of all
};

/// `of_decoder`: beside what it decodes to.
chunk_memory memory_for(const chunk_grid& grid, std::uint64_t of_decoder, std::uint64_t budget,
                        const std::string& what) {
  const std::uint64_t chunk = grid.chunk_bytes(), of_thread = chunk + of_decoder;
  const std::uint64_t most = budget / 2, least = of_thread + chunk;
  if (most < least)
    refuse(errc::budget_too_small, what,
           "a chunk has " + std::to_string(chunk) + " bytes, which needs a memory budget of at least " +
               std::to_string(2 * least) + " bytes, and it is " + std::to_string(budget) +
               "; import it, or store it in smaller chunks");
  chunk_memory m;
  const std::uint64_t processors = std::max(1U, std::thread::hardware_concurrency());
  m.threads = static_cast<unsigned>(std::clamp<std::uint64_t>(most / 4 / of_thread, 1, processors));
  const std::uint64_t room = (most - m.threads * of_thread) / chunk, together = grid.chunks_in_use_together();
  // What reading ahead needs of the chunks that come next, beside those that are not done with.
  m.kept = std::min({room, 2 * together + m.threads, grid.chunks()});
  m.bytes = m.kept * chunk + m.threads * of_thread;
  if (m.kept < std::min(together, grid.chunks()))
    notice("'" + what + "': a walk in row-major order comes back to " + std::to_string(together) + " chunks of " +
           std::to_string(chunk) + " bytes, of which the memory budget keeps " + std::to_string(m.kept) +
           "; the others are decoded each time.  A budget of " +
           std::to_string(2 * (together * chunk + m.threads * of_thread)) +
           " bytes keeps all; blocks in tiles of about a chunk's extents, or an import, need none of that");
  return m;
}

class chunk_source {
 public:
  chunk_source(std::shared_ptr<const plain_file> file, chunk_grid grid, file_chunks chunks, std::uint32_t element_size)
      : grid_(std::move(grid)),
        chunks_(std::move(chunks)),
        element_size_(element_size),
        places_(std::move(file), chunks_, grid_) {}

  const chunk_grid& grid() const noexcept { return grid_; }
  std::uint64_t memory_of_decoder() const {
    return chunk_decoder::memory(chunks_, grid_.chunk_bytes(), places_.most_stored());
  }
  chunk_decoder decoder() const { return {chunks_, element_size_}; }
  /// Before the first chunk is wanted.
  void keep(std::uint64_t chunks) { decoded_.emplace(chunks); }

  /// Has `use` called with the chunk, by this thread or by the one that is decoding it.  Throws std::bad_alloc, and
  /// does not have it called then.
  void get(std::uint64_t chunk, chunk_decoder& d, decoded_chunks::user use) {
    if (!decoded_->need(chunk, std::move(use))) return;
    decoded_chunks::bytes made;
    failure f;
    try {
      const auto memory = std::make_shared_for_overwrite<std::byte[]>(grid_.chunk_bytes());
      f = decode(chunk, d, {memory.get(), grid_.chunk_bytes()});
      made = memory;
    } catch (const std::bad_alloc&) {
      f = no_memory(chunk);
    }
    decoded_->arrived(chunk, f, f ? nullptr : made);
  }

  failure no_memory(std::uint64_t chunk) const {
    return places_.failed(chunk, {ENOMEM, std::generic_category()}, "cannot be delivered: there is no memory for it");
  }

  node_counters counters;

 private:
  failure decode(std::uint64_t chunk, chunk_decoder& d, std::span<std::byte> to) {
    const stored_chunks::stored found = places_.read(chunk, d);
    if (found.why) return found.why;
    if (found.bytes == 0) return fill(to), failure{};
    counters.add(&io_stats::device_reads, 1);
    counters.add(&io_stats::device_bytes_read, found.bytes);
    const std::string why = d.decode(found.filter_mask, to);
    return why.empty() ? failure{} : places_.failed(chunk, errc::corrupt, why);
  }

  void fill(std::span<std::byte> to) const {
    const std::vector<std::byte>& one = chunks_.fill;
    if (one.empty()) return static_cast<void>(std::memset(to.data(), 0, to.size()));
    for (std::size_t at = 0; at < to.size(); at += one.size()) std::memcpy(to.data() + at, one.data(), one.size());
  }

  const chunk_grid grid_;
  const file_chunks chunks_;
  const std::uint32_t element_size_;
  const stored_chunks places_;
  std::optional<decoded_chunks> decoded_;
};

class chunked_node final : public in_place_node {
 public:
  chunked_node(std::string name, std::shared_ptr<chunk_source> source, const chunk_memory& memory)
      : name_(std::move(name)),
        source_(std::move(source)),
        memory_(memory.bytes),
        threads_(memory.threads, [s = source_.get()] { return s->decoder(); }) {}

  std::string name() const override { return name_; }
  io_stats stats() const override { return source_->counters.snapshot(); }
  std::uint64_t staging_bytes() const override { return memory_; }

 private:
  struct transfer {
    std::vector<region> regions;  ///< sorted
    std::byte* memory;
  };

  void carry_out(node_call call, completion done) override {
    if (call.kind == io_kind::sync) return done({});
    if (call.kind == io_kind::write) return done(refusal("written to: its chunks are packed"));
    const auto what = std::make_shared<transfer>();
    what->memory = call.memory;
    object_regions(*call.wanted, call.file->striping, 0, what->regions);
    // The regions, by their numbers, that each chunk has bytes of.
    std::map<std::uint64_t, std::vector<std::uint32_t>> of_chunk;
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < what->regions.size(); ++i) {
      const region& r = what->regions[i];
      bytes += r.length;
      source_->grid().for_each_chunk(r.node_offset, r.node_end(), [&](std::uint64_t c) { of_chunk[c].push_back(i); });
    }
    source_->counters.add(&io_stats::read_requests, 1);
    source_->counters.add(&io_stats::read_regions, node_runs(what->regions));
    source_->counters.add(&io_stats::bytes_read, bytes);
    if (of_chunk.empty()) return done({});
    const auto all = std::make_shared<completion_counter>(of_chunk.size(), std::move(done));
    for (auto& [chunk, regions] : of_chunk) {
      try {
        threads_.post([chunk = chunk, regions = std::move(regions), what, all, source = source_](chunk_decoder& d) {
          try {
            // Perhaps called by another thread, later.
            source->get(chunk, d, [=](const failure& f, const decoded_chunks::bytes& decoded) {
              all->answer(f ? f : deliver(*source, chunk, decoded, *what, regions));
            });
          } catch (const std::bad_alloc&) {
            all->answer(source->no_memory(chunk));
          }
        });
      } catch (const std::exception&) {  // it was not posted
        all->answer(source_->no_memory(chunk));
      }
    }
  }

  static failure deliver(const chunk_source& source, std::uint64_t chunk, const decoded_chunks::bytes& from,
                         const transfer& to, const std::vector<std::uint32_t>& regions) {
    try {
      for (const std::uint32_t i : regions) {
        const region& r = to.regions[i];
        source.grid().for_each_piece(chunk, r.node_offset, r.node_end(), [&](const chunk_grid::piece& p) {
          std::memcpy(to.memory + r.memory_offset + (p.in_array - r.node_offset), from.get() + p.in_chunk, p.bytes);
          return true;
        });
      }
      return {};
    } catch (const std::bad_alloc&) {
      return source.no_memory(chunk);
    }
  }

  const std::string name_;
  const std::shared_ptr<chunk_source> source_;  // outlives the node where a completion ends it
  const std::uint64_t memory_;
  job_threads<chunk_decoder> threads_;
};

}  // namespace

std::shared_ptr<io_service> make_chunked_node(std::shared_ptr<const plain_file> file, const array_description& array,
                                              file_chunks chunks, std::uint64_t budget) {
  const std::string path = file->path, what = path + "', dataset '" + chunks.dataset;
  const std::vector<std::uint64_t> extents(chunks.extents.begin(), chunks.extents.end());
  const bool none = std::find(extents.begin(), extents.end(), 0U) != extents.end();
  if (extents.size() != array.extents.size() || none)
    refuse(errc::invalid_request, what, "its chunks have other dimensions than the array, or extents of 0");
  if (!chunks.fill.empty() && chunks.fill.size() != array.element_size)
    refuse(errc::invalid_request, what, "the fill value has another size than an element");
  if (!std::all_of(chunks.filters.begin(), chunks.filters.end(), can_undo))
    refuse(errc::invalid_request, what, "its chunks are packed by a filter that this build of the library cannot undo");
  std::vector<std::size_t> order = chunks.stored_order;
  std::sort(order.begin(), order.end());
  for (std::size_t d = 0; d < order.size(); ++d)
    if (order.size() != extents.size() || order[d] != d)
      refuse(errc::invalid_request, what, "the order of its dimensions does not name each of them once");
  auto source = std::make_shared<chunk_source>(std::move(file), chunk_grid(array.extents, extents, array.element_size),
                                               std::move(chunks), array.element_size);
  const chunk_memory memory = memory_for(source->grid(), source->memory_of_decoder(), budget, what);
  source->keep(memory.kept);
  return std::make_shared<chunked_node>(path, std::move(source), memory);
}

}  // namespace ooc::storage
