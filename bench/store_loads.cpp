#include "store_loads.hpp"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

#include "measure/random_numbers.hpp"
#include "measure/stopwatch.hpp"
#include "storage/layout/box_requests.hpp"
#include "storage/layout/stripe_choice.hpp"
#include "storage/service/store_core.hpp"

namespace bench {
namespace {

using ooc::storage::opened_file;
using ooc::storage::request_ptr;

constexpr std::uint64_t matrix_bytes = matrix_extent * matrix_extent * sizeof(double);
constexpr std::uint64_t tile_bytes = tile_side * tile_side * sizeof(double);

ooc::storage::array_description matrix() {
  ooc::storage::array_description a;
  a.element_type = "f8";
  a.element_size = sizeof(double);
  a.extents = {matrix_extent, matrix_extent};
  return a;
}

std::vector<request_ptr> tile_requests() {
  std::vector<request_ptr> all;
  for (std::uint64_t i = 0; i < matrix_extent; i += tile_side)
    for (std::uint64_t j = 0; j < matrix_extent; j += tile_side)
      all.push_back(std::make_shared<const ooc::request>(
          ooc::storage::box_request(matrix(), {i, j}, {i + tile_side, j + tile_side})));
  return all;
}

/// 1 MiB for each node.
std::vector<request_ptr> stream_requests(const setting& s) {
  return contiguous_requests(stream_bytes, s.nodes * 1_MiB);
}

}  // namespace

void make_files(const setting& s) {
  client(s, [&](const ooc::store& store) {
    client_memory m(stream_bytes);
    const auto make = [&](const char* name, std::uint64_t bytes, std::uint64_t row) {
      ooc::storage::new_file f;
      f.size = bytes;
      f.striping.sf =
          ooc::storage::choose_stripe({.file_bytes = bytes, .block_bytes = tile_bytes, .row_bytes = row}, s.nodes);
      if (row != 0) f.array = matrix();
      if (store.exists(name)) store.remove(name);  // of an earlier run
      const opened_file made = store.core()->create(name, f);
      transfer_seconds(*made.file, transfer::write, contiguous_requests(bytes, 4_MiB), m.bytes(), 4_MiB, depth);
    };
    make("stream", stream_bytes, 0);
    make("matrix", matrix_bytes, matrix_extent * sizeof(double));
    make("small", stream_bytes, 0);
    return json::object();
  });
}

double our_stream(const setting& s, transfer what) {
  return seconds(client(s, [&](const ooc::store& store) {
    client_memory m(stream_bytes);
    const auto f = store.core()->open("stream", ooc::storage::open_mode::read_write).file;
    const auto all = stream_requests(s);
    const std::size_t slot = s.nodes * 1_MiB;
    // The connections are made at the first use.
    transfer_seconds(*f, what, std::span(all).first(depth), m.bytes(), slot, depth);
    double sum = 0;
    for (unsigned t = 0; t < times; ++t) sum += transfer_seconds(*f, what, all, m.bytes(), slot, depth);
    return json{{"seconds", sum}};
  }));
}

json read_matrix(const setting& s, bool tiles) {
  return client(s, [&](const ooc::store& store) {
    client_memory m(2 * depth * tile_bytes);
    const auto f = store.core()->open("matrix", ooc::storage::open_mode::read).file;
    const auto all = tiles ? tile_requests() : contiguous_requests(f->shape().size, tile_bytes);
    transfer_seconds(*f, transfer::read, std::span(all).first(depth), m.bytes(), tile_bytes, depth);
    const auto before = store.stats();
    const double t = transfer_seconds(*f, transfer::read, all, m.bytes(), tile_bytes, depth);
    const auto done = store.stats() - before;
    if (done.bytes_read != matrix_bytes) throw std::runtime_error("store: not every byte of the matrix was read");
    return json{{"seconds", t},
                {"messages", static_cast<double>(done.read_requests) / static_cast<double>(matrix_bytes / tile_bytes)}};
  });
}

double small_read(const setting& s) {
  return seconds(client(s, [&](const ooc::store& store) {
    std::vector<std::byte> memory(small);
    const auto f = store.core()->open("small", ooc::storage::open_mode::read).file;
    const auto read = [&](unsigned count) {
      for (unsigned i = 0; i < count; ++i)
        ooc::throw_if(f->read(ooc::request::contiguous(i * 17 * small % stream_bytes, small), memory.data()));
    };
    read(small_reads / 10);
    return json{{"seconds", seconds_of([&] { read(small_reads); }) / small_reads}};
  }));
}

double random_reads_per_second(const setting& s, unsigned threads) {
  constexpr unsigned each = 2'000;
  return 1.0 * each * threads / seconds(client(s, [&](const ooc::store& store) {
           const auto f = store.core()->open("small", ooc::storage::open_mode::read).file;
           std::atomic<bool> failed{false};
           const auto read = [&](unsigned thread) {
             std::vector<std::byte> memory(small);
             random_numbers random(thread);
             for (unsigned i = 0; i < each && !failed; ++i)
               if (f->read(ooc::request::contiguous(random.below(stream_bytes / small) * small, small), memory.data()))
                 failed = true;
           };
           const double t = seconds_of([&] {
             std::vector<std::thread> all;
             for (unsigned thread = 0; thread < threads; ++thread) all.emplace_back(read, thread);
             for (std::thread& one : all) one.join();
           });
           if (failed) throw std::runtime_error("store: a random read has failed");
           return json{{"seconds", t}};
         }));
}

}  // namespace bench
