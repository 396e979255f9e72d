#include "storage/chunked/packed_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "storage/base/in_flight.hpp"
#include "storage/base/job_threads.hpp"
#include "storage/chunked/chunk_encoder.hpp"
#include "storage/chunked/chunk_source.hpp"
#include "storage/chunked/chunked_node.hpp"
#include "storage/chunked/packed_codec.hpp"
#include "storage/layout/crc32c.hpp"
#include "storage/layout/fill_pattern.hpp"

namespace ooc::storage {
namespace {

/// Little-endian, as everything on disk.
struct packed_header {
  std::array<char, 8> magic{'O', 'O', 'C', 'P', 'A', 'C', 'K', '1'};
  std::uint64_t chunks = 0;
  std::uint64_t table = 0;       ///< where it begins: behind the last chunk
  std::uint32_t table_crc = 0;   ///< CRC32C of the table
  std::uint32_t header_crc = 0;  ///< of all before
};
static_assert(sizeof(packed_header) == 32 && offsetof(packed_header, header_crc) == 28);

using length = std::uint32_t;  ///< of a chunk, in the table
constexpr std::uint32_t no_filters = ~std::uint32_t{0};

std::uint32_t crc_of(const packed_header& h) { return crc32c(&h, offsetof(packed_header, header_crc)); }

failure damaged(const chunked_dataset& d, const std::string& why) {
  return {errc::corrupt, "'" + d.name + "' is packed, and " + why};
}

failure read_header(const striped_file& f, const chunked_dataset& d, packed_header& h) {
  const std::uint64_t size = f.shape().size;
  if (size < sizeof h) return damaged(d, "has only " + std::to_string(size) + " bytes");
  if (failure why = f.read(request::contiguous(0, sizeof h), reinterpret_cast<std::byte*>(&h))) return why;
  if (h.magic != packed_header{}.magic || h.header_crc != crc_of(h)) return damaged(d, "its header is none");
  if (h.chunks != d.grid.chunks()) return damaged(d, "its header names another number of chunks than it has");
  if (h.table < sizeof h || h.table > size || h.chunks * sizeof(length) > size - h.table)
    return damaged(d, "its table would lie past its end");
  return {};
}

/// That unpack one array, each with memory of its own.
constexpr std::uint64_t most_threads = 8;

/// What is packed at the same time, before packing.
constexpr std::uint64_t most_together = 32 << 20;

}  // namespace

packed_file::packed_file(std::shared_ptr<const striped_file> bytes, std::shared_ptr<const chunked_dataset> d)
    : bytes_(std::move(bytes)), dataset_(std::move(d)) {}

std::uint64_t packed_file::most_stored() const noexcept { return dataset_->grid.chunk_bytes(); }

failure packed_file::failed(std::uint64_t chunk, std::error_code code, const std::string& why, bool reading) const {
  return {code, std::string(reading ? "reading '" : "writing '") + dataset_->name + "': its packed chunk " +
                    dataset_->grid.place_of(chunk) + " " + why};
}

failure packed_file::load_table() const {
  packed_header h;
  if (failure f = read_header(*bytes_, *dataset_, h)) return f;
  std::vector<length> lengths(h.chunks);
  const std::span<std::byte> table = std::as_writable_bytes(std::span(lengths));
  if (failure f = bytes_->read(request::contiguous(h.table, table.size()), table.data())) return f;
  if (crc32c(table.data(), table.size()) != h.table_crc)
    return damaged(*dataset_, "its table does not match its checksum");
  std::vector<std::uint64_t> ends;
  ends.reserve(lengths.size());
  std::uint64_t end = sizeof h;
  for (const length n : lengths) ends.push_back(end += n);
  if (end != h.table || std::ranges::max(lengths) > most_stored()) return damaged(*dataset_, "its table is wrong");
  ends_ = std::move(ends);
  return {};
}

failure packed_file::find(std::uint64_t chunk, std::uint64_t& at, std::uint64_t& bytes) const try {
  const lock_guard lock(mutex_);
  if (ends_.empty())
    if (failure f = load_table()) return f;
  at = chunk == 0 ? sizeof(packed_header) : ends_[chunk - 1];
  bytes = ends_[chunk] - at;
  return {};
} catch (const std::bad_alloc&) {
  return failed(chunk, {ENOMEM, std::generic_category()}, "cannot be found: there is no memory for the table");
}

stored_chunks::stored packed_file::read(std::uint64_t chunk, chunk_decoder& into) const {
  std::uint64_t at = 0, bytes = 0;
  if (failure f = find(chunk, at, bytes)) return {std::move(f)};
  if (bytes == 0) return {};
  const std::span<std::byte> memory = into.stored(bytes);
  if (failure f = bytes_->read(request::contiguous(at, bytes), memory.data())) return {std::move(f)};
  return {{}, bytes, bytes == most_stored() ? no_filters : 0};
}

std::uint64_t bytes_of_packed_file(const striped_file& f, const chunked_dataset& d) {
  packed_header h;
  throw_if(read_header(f, d, h));
  return h.table + h.chunks * sizeof(length);
}

std::shared_ptr<io_service> unpacked_node(const entry& e, std::shared_ptr<const striped_file> packed,
                                          std::uint64_t budget) {
  const auto d = std::make_shared<const chunked_dataset>(packed_dataset(e));
  const std::uint64_t chunk = d->grid.chunk_bytes();
  const std::uint64_t of_thread = chunk + chunk_decoder::memory(d->chunks, chunk, chunk);
  budget = std::min(budget, 8 * most_threads * of_thread);
  auto stored = std::make_unique<packed_file>(std::move(packed), d);
  return make_chunked_node(e.path, std::make_shared<chunk_source>(d, std::move(stored), budget));
}

std::uint64_t pack_file(const chunked_dataset& d, std::uint64_t file_bytes, const packing& p) {
  const std::uint64_t chunk = d.grid.chunk_bytes(), chunks = d.grid.chunks();
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  const std::uint64_t together = std::clamp<std::uint64_t>(most_together / chunk, 1, 4 * processors);
  std::vector<length> lengths(chunks, 0);
  std::vector<std::vector<std::byte>> packed(together);
  std::vector<std::byte> plain(together * chunk), joined;
  std::vector<std::string> why(together);
  packed_header h;
  h.chunks = chunks;
  h.table = sizeof h;
  job_threads<std::optional<chunk_encoder>> threads(processors);
  for (std::uint64_t first = 0; first < chunks; first += together) {
    const std::uint64_t n = std::min(together, chunks - first), begin = first * chunk;
    const std::uint64_t bytes = std::min(n * chunk, file_bytes - begin);
    p.read(begin, std::span(plain).first(bytes));
    // The last chunk reaches beyond the file.
    fill_with(d.chunks.fill, file_bytes, std::span(plain).first(n * chunk).subspan(bytes));
    {
      in_flight jobs;
      for (std::uint64_t i = 0; i < n; ++i)
        jobs.start([&](auto ended) {
          threads.post([&, i, ended](std::optional<chunk_encoder>& e) {
            const std::span<const std::byte> one = std::span(plain).subspan(i * chunk, chunk);
            packed[i].clear();
            failure f;
            try {
              if (!e) e.emplace(d.chunks, d.element_size);
              if (!is_filled_with(d.chunks.fill, (first + i) * chunk, one)) {
                why[i] = e->encode(one);
                const std::span<const std::byte> made = e->stored().size() < chunk ? e->stored() : one;
                if (why[i].empty()) packed[i].assign(made.begin(), made.end());
              }
            } catch (const std::bad_alloc&) {
              f = {{ENOMEM, std::generic_category()}, "packing '" + d.name + "': there is no memory for it"};
            }
            ended(f);
          });
        });
      throw_if(jobs.wait());
    }
    joined.clear();
    for (std::uint64_t i = 0; i < n; ++i) {
      if (!why[i].empty())
        throw usage_error(errc::invalid_request,
                          "packing '" + d.name + "': chunk " + d.grid.place_of(first + i) + " " + why[i]);
      lengths[first + i] = static_cast<length>(packed[i].size());
      joined.insert(joined.end(), packed[i].begin(), packed[i].end());
    }
    if (joined.size() > p.most || h.table > p.most - joined.size()) return 0;
    p.write(h.table, joined);
    h.table += joined.size();
    if (p.step) p.step(bytes);
  }
  const std::span<const std::byte> table = std::as_bytes(std::span(lengths));
  if (table.size() > p.most || h.table > p.most - table.size()) return 0;
  p.write(h.table, table);
  h.table_crc = crc32c(table.data(), table.size());
  h.header_crc = crc_of(h);
  p.write(0, std::as_bytes(std::span(&h, 1)));
  return h.table + table.size();
}

}  // namespace ooc::storage
