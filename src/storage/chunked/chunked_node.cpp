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
#include "storage/chunked/chunk_grid.hpp"
#include "storage/chunked/chunks_by_table.hpp"
#include "storage/chunked/chunks_in_files.hpp"
#include "storage/chunked/chunks_in_shards.hpp"
#include "storage/layout/regions.hpp"
#include "storage/service/node_counters.hpp"

namespace ooc::storage {
namespace {

/// What a request has of one chunk.
struct part {
  std::uint64_t chunk;
  std::vector<region> regions;  ///< that meet it, by memory and node
  std::byte* memory;

  /// f(byte of the chunk, memory, bytes)
  template <class F>
  void for_each_piece(const chunk_grid& grid, F f) const {
    for (const region& r : regions)
      grid.for_each_piece(chunk, r.node_offset, r.node_end(), [&](const chunk_grid::piece& p) {
        f(p.in_chunk, memory + r.memory_offset + (p.in_array - r.node_offset), p.bytes);
        return true;
      });
  }
};

class chunked_node final : public in_place_node {
 public:
  chunked_node(std::string name, std::shared_ptr<chunk_source> source)
      : name_(std::move(name)), source_(std::move(source)), threads_(source_->memory().threads) {}

  std::string name() const override { return name_; }
  io_stats stats() const override { return source_->counters.snapshot(); }
  std::uint64_t staging_bytes() const override { return source_->memory().bytes; }
  void forget() override { source_->forget(); }

  void flush(completion done) override {
    if (!source_->writable()) return done({});
    const std::vector<std::uint64_t> changed = source_->changed();
    const auto published = std::make_shared<completion_counter>(1, std::move(done));
    const auto publish = [this, published](const failure& f) {
      if (f) return published->answer(f);
      post(0, published, [published, source = source_](chunk_worker&) { published->answer(source->publish()); });
    };
    if (changed.empty()) return publish({});
    const auto all = std::make_shared<completion_counter>(changed.size(), publish);
    for (const std::uint64_t c : changed)
      post(c, all, [c, all, source = source_](chunk_worker& w) { all->answer(source->clean(c, w)); });
  }

 private:
  void carry_out(node_call call, completion done) override {
    if (call.kind == io_kind::sync) return sync(std::move(done));
    const bool writes = call.kind == io_kind::write;
    if (writes && !source_->writable()) return done(refusal("written to: it was opened for reading"));
    std::vector<region> regions;
    object_regions(*call.wanted, call.file->striping, 0, regions);
    if (writes && overlap(regions))
      return done({errc::invalid_request, "writing '" + name_ + "': regions of the request overlap in the file"});
    std::map<std::uint64_t, part> parts;
    std::uint64_t bytes = 0;
    for (const region& r : regions) {
      bytes += r.length;
      source_->grid().for_each_chunk(r.node_offset, r.node_end(), [&](std::uint64_t c) {
        parts.try_emplace(c, part{c, {}, call.memory}).first->second.regions.push_back(r);
      });
    }
    node_counters& n = source_->counters;
    n.add(writes ? &io_stats::write_requests : &io_stats::read_requests, 1);
    n.add(writes ? &io_stats::write_regions : &io_stats::read_regions, node_runs(regions));
    n.add(writes ? &io_stats::bytes_written : &io_stats::bytes_read, bytes);
    if (parts.empty()) return done({});
    if (!writes)
      for (const auto& [chunk, its] : parts) source_->will_read(chunk);
    const auto all = std::make_shared<completion_counter>(parts.size(), std::move(done));
    for (auto& [chunk, its] : parts)
      post(chunk, all, [its = std::move(its), all, source = source_, writes](chunk_worker& w) {
        writes ? write(*source, its, w, *all) : read(source, its, w, all);
      });
  }

  /// Runs `job`, which answers for a chunk, on one of the threads; else the answer is given here.
  template <class Job>
  void post(std::uint64_t chunk, const std::shared_ptr<completion_counter>& all, Job job) {
    try {
      threads_.post([chunk, all, source = source_, job = std::move(job)](std::optional<chunk_worker>& w) mutable {
        try {
          if (!w) w.emplace(source->worker());
          job(*w);
        } catch (const std::bad_alloc&) {
          all->answer(source->no_memory(chunk));
        }
      });
    } catch (const std::exception&) {
      all->answer(source_->no_memory(chunk));
    }
  }

  static void read(const std::shared_ptr<chunk_source>& source, const part& its, chunk_worker& w,
                   const std::shared_ptr<completion_counter>& all) {
    const auto use = [source, its](const std::byte* chunk) -> failure {
      try {
        its.for_each_piece(source->grid(), [&](std::uint64_t in_chunk, std::byte* memory, std::uint64_t bytes) {
          if (chunk != nullptr)
            std::memcpy(memory, chunk + in_chunk, bytes);
          else
            source->fill({memory, bytes}, in_chunk);
        });
        return {};
      } catch (const std::bad_alloc&) {
        return source->no_memory(its.chunk);
      }
    };
    source->read(its.chunk, w, use, [all](const failure& f) { all->answer(f); });
  }

  static void write(chunk_source& source, const part& its, chunk_worker& w, completion_counter& all) {
    chunk_source::change c;
    its.for_each_piece(source.grid(), [&](std::uint64_t, std::byte*, std::uint64_t bytes) { c.bytes += bytes; });
    c.is_there = [&](const std::byte* chunk) {
      bool same = true;
      its.for_each_piece(source.grid(), [&](std::uint64_t in_chunk, const std::byte* memory, std::uint64_t bytes) {
        same = same && std::memcmp(chunk + in_chunk, memory, bytes) == 0;
      });
      return same;
    };
    c.put = [&](std::byte* chunk) {
      its.for_each_piece(source.grid(), [&](std::uint64_t in_chunk, const std::byte* memory, std::uint64_t bytes) {
        std::memcpy(chunk + in_chunk, memory, bytes);
      });
    };
    bool complete = false;
    all.answer(source.write(its.chunk, w, c, complete));
    // What cannot be written now stays changed, and flush() says so.
    if (complete) static_cast<void>(source.clean(its.chunk, w));
  }

  void sync(completion done) {
    if (!source_->writable()) return done({});
    const auto synced = std::make_shared<completion_counter>(1, std::move(done));
    flush([this, synced](const failure& f) {
      if (f) return synced->answer(f);
      post(0, synced, [synced, source = source_](chunk_worker&) { synced->answer(source->sync()); });
    });
  }

  const std::string name_;
  const std::shared_ptr<chunk_source> source_;  // outlives the node where a completion ends it
  job_threads<std::optional<chunk_worker>> threads_;
};

void check_writable(const file_chunks& c, const std::string& what) {
  if (!c.files || c.files->have_table())
    refuse(errc::invalid_request, what,
           "several of its chunks are in one file, and are not written to in place: open it for reading, or "
           "`ooc import` it");
  if (!std::all_of(c.filters.begin(), c.filters.end(), can_apply))
    refuse(errc::invalid_request, what,
           "its chunks are packed by a filter that this build of the library cannot apply");
  if (!c.packing.empty() && c.packing.size() != c.filters.size())
    refuse(errc::invalid_request, what,
           "it has " + std::to_string(c.filters.size()) + " filters, and how to pack is said of " +
               std::to_string(c.packing.size()));
}

std::unique_ptr<stored_chunks> stored_of(std::shared_ptr<const plain_file> file,
                                         std::shared_ptr<const chunked_dataset> d) {
  const file_chunks& c = d->chunks;
  if (!c.files || c.files->have_table()) return std::make_unique<chunks_by_table>(std::move(file), std::move(d));
  if (!c.table.empty() || !c.files->states.empty())
    refuse(errc::invalid_request, d->name, "its chunks are found by the names of their files, and a table is given");
  if (c.files->chunks.empty()) return std::make_unique<chunks_in_files>(std::move(file), std::move(d));
  return std::make_unique<chunks_in_shards>(std::move(file), std::move(d));
}

}  // namespace

std::shared_ptr<io_service> make_chunked_node(std::string name, std::shared_ptr<chunk_source> source) {
  return std::make_shared<chunked_node>(std::move(name), std::move(source));
}

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
  if (!chunks.parameters.empty() && chunks.parameters.size() != chunks.filters.size())
    refuse(errc::invalid_request, what,
           "it has " + std::to_string(chunks.filters.size()) + " filters, and parameters of " +
               std::to_string(chunks.parameters.size()));
  if (file->writable) check_writable(chunks, what);
  std::vector<std::size_t> order = chunks.stored_order;
  std::sort(order.begin(), order.end());
  for (std::size_t d = 0; d < order.size(); ++d)
    if (order.size() != extents.size() || order[d] != d)
      refuse(errc::invalid_request, what, "the order of its dimensions does not name each of them once");
  const auto d = std::make_shared<const chunked_dataset>(chunked_dataset{
      what, chunk_grid(array.extents, extents, array.element_size), std::move(chunks), array.element_size});
  return make_chunked_node(path, std::make_shared<chunk_source>(d, stored_of(std::move(file), d), budget));
}

}  // namespace ooc::storage
