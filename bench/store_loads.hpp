// What the case `store` has a client do with a store: read and write a stream, tiles and small pieces.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "measure/case.hpp"
#include "measure/child.hpp"
#include "measure/rival_memory.hpp"
#include "measure/transfers.hpp"
#include "oocarray/store.hpp"
#include "oocarray/units.hpp"

namespace bench {

using namespace ooc::literals;

inline constexpr std::uint64_t stream_bytes = 256_MiB;
inline constexpr unsigned times = 4;  ///< that the stream is read or written in a run
inline constexpr unsigned depth = 4;  ///< requests in flight
inline constexpr std::uint64_t matrix_extent = 8192, tile_side = 512;
inline constexpr std::uint64_t small = 4096;
inline constexpr unsigned small_reads = 10'000;

struct setting {
  std::string url;
  unsigned nodes = 4;
};

/// Memory of a client, in huge pages.
class client_memory {
 public:
  explicit client_memory(std::uint64_t bytes) : array_(bytes / sizeof(double)), bytes_(bytes) {}
  std::span<std::byte> bytes() {
    return {reinterpret_cast<std::byte*>(array_.data()), static_cast<std::size_t>(bytes_)};
  }

 private:
  plain_array array_;
  std::uint64_t bytes_;
};

/// Runs `work(store)` in a process of its own.
template <class Work>
json client(const setting& s, Work&& work) {
  return in_child(0, [&] {
    ooc::store_options o;
    o.create = !s.url.starts_with("ooc:");
    return work(ooc::store::open(s.url, o));
  });
}

inline double seconds(const json& j) { return j["seconds"].get<double>(); }

/// The files that the others use, written, so that they are in the servers' memory.
void make_files(const setting& s);
/// Seconds to move the stream `times` times, 1 MiB for each node at a time.
double our_stream(const setting& s, transfer what);
/// Reads the whole matrix, in tiles or as it lies: {"seconds"}, and the requests to nodes for each 2 MiB, {"messages"}.
json read_matrix(const setting& s, bool tiles);
/// Seconds of a read of `small` bytes, one after another.
double small_read(const setting& s);
/// Such reads a second of so many threads.
double random_reads_per_second(const setting& s, unsigned threads);

/// The case on the store of `o.url`, in RADOS.
json run_store_on_rados(const options& o);

}  // namespace bench
