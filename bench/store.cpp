// A store served by processes of this machine, beside bare sockets.
//
//     read_over_tcp, write_over_tcp   our throughput / what sockets alone carry between two
//                                     processes over as many connections, in messages of 1 MiB;
//                                     the data are in the servers' page cache
//     write_bound_over_tcp            the same for sockets with checksums on both sides, and writes
//                                     to the page cache: what any such store can reach
//     tile_over_contiguous            all 512 x 512 tiles of a 8192 x 8192 file of doubles:
//                                     throughput / that of contiguous reads of the same file
//     messages_per_tile               requests to I/O servers for a tile
//     latency_over_pingpong           time of a 4 KiB read / of 4 KiB there and back over a socket
//     create_per_s, stat_per_s, remove_per_s   empty files, one client, one call at a time
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure/bare_sockets.hpp"
#include "measure/child.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/rival_memory.hpp"
#include "measure/scratch.hpp"
#include "measure/served_store.hpp"
#include "measure/stopwatch.hpp"
#include "measure/transfers.hpp"
#include "oocarray/file.hpp"
#include "storage/layout/box_requests.hpp"
#include "storage/layout/stripe_choice.hpp"
#include "storage/service/store_core.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using ooc::storage::opened_file;
using ooc::storage::request_ptr;

constexpr std::uint64_t stream_bytes = 256_MiB;
constexpr unsigned times = 4;  ///< that the stream is read or written in a run
constexpr unsigned depth = 4;  ///< requests in flight
constexpr std::uint64_t n = 8192, side = 512, grid = n / side;
constexpr std::uint64_t tile_bytes = side * side * sizeof(double);
constexpr std::uint64_t small = 4096;
constexpr unsigned small_reads = 10'000;
constexpr unsigned names = 1000;

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
    o.create = false;
    return work(ooc::store::open(s.url, o));
  });
}

double seconds(const json& j) { return j["seconds"].get<double>(); }

ooc::storage::array_description matrix() {
  ooc::storage::array_description a;
  a.element_type = "f8";
  a.element_size = sizeof(double);
  a.extents = {n, n};
  return a;
}

std::vector<request_ptr> tile_requests() {
  std::vector<request_ptr> all;
  for (std::uint64_t i = 0; i < n; i += side)
    for (std::uint64_t j = 0; j < n; j += side)
      all.push_back(
          std::make_shared<const ooc::request>(ooc::storage::box_request(matrix(), {i, j}, {i + side, j + side})));
  return all;
}

/// 1 MiB for each node.
std::vector<request_ptr> stream_requests(const setting& s) {
  return contiguous_requests(stream_bytes, s.nodes * 1_MiB);
}

/// Both files, written, so that they are in the servers' page cache.
void make_files(const setting& s) {
  client(s, [&](const ooc::store& store) {
    client_memory m(stream_bytes);
    const auto make = [&](const char* name, std::uint64_t bytes, std::uint64_t row) {
      ooc::storage::new_file f;
      f.size = bytes;
      f.striping.sf =
          ooc::storage::choose_stripe({.file_bytes = bytes, .block_bytes = tile_bytes, .row_bytes = row}, s.nodes);
      if (row != 0) f.array = matrix();
      const opened_file made = store.core()->create(name, f);
      transfer_seconds(*made.file, transfer::write, contiguous_requests(bytes, 4_MiB), m.bytes(), 4_MiB, depth);
    };
    make("stream", stream_bytes, 0);
    make("matrix", n * n * sizeof(double), n * sizeof(double));
    make("small", stream_bytes, 0);
    return json::object();
  });
}

/// The better of the two ways to move it.
double bare_stream(const setting& s, bare::way w) {
  const auto run = [&](bare::movers who) {
    return seconds(in_child(0, [&] {
      client_memory m(stream_bytes);
      return json{{"seconds", bare::carry_seconds(w, who, s.nodes, m.bytes(), times)}};
    }));
  };
  return std::min(run(bare::movers::thread_each), run(bare::movers::one_thread));
}

double bare_stream_to_files(const setting& s, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  return seconds(in_child(0, [&] {
    client_memory m(stream_bytes);
    return json{{"seconds", bare::carry_to_files_seconds(s.nodes, m.bytes(), times, folder)}};
  }));
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

/// Reads the whole matrix; also tells the requests for each 2 MiB.
json read_matrix(const setting& s, bool tiles) {
  return client(s, [&](const ooc::store& store) {
    client_memory m(2 * depth * tile_bytes);
    const auto f = store.core()->open("matrix", ooc::storage::open_mode::read).file;
    const auto all = tiles ? tile_requests() : contiguous_requests(f->shape().size, tile_bytes);
    transfer_seconds(*f, transfer::read, std::span(all).first(depth), m.bytes(), tile_bytes, depth);
    const auto before = store.stats();
    const double t = transfer_seconds(*f, transfer::read, all, m.bytes(), tile_bytes, depth);
    const auto done = store.stats() - before;
    if (done.bytes_read != n * n * sizeof(double))
      throw std::runtime_error("store: not every byte of the matrix was read");
    return json{{"seconds", t},
                {"messages", static_cast<double>(done.read_requests) / static_cast<double>(grid * grid)}};
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

double ping_pong() {
  return seconds(in_child(0, [] { return json{{"seconds", bare::ping_pong_seconds(small, small_reads)}}; }));
}

json name_calls(const setting& s) {
  return client(s, [](const ooc::store& store) {
    auto& core = *store.core();
    std::vector<std::string> paths;
    for (unsigned i = 0; i < names; ++i) paths.push_back("names/" + std::to_string(i));
    core.metadata().mkdir("names", 0755, true);
    json j;
    j["create"] = names / seconds_of([&] {
                    for (const std::string& p : paths) ooc::file::create(store, p);
                  });
    j["stat"] = names / seconds_of([&] {
                  for (const std::string& p : paths) core.metadata().lookup(p);
                });
    j["remove"] = names / seconds_of([&] {
                    for (const std::string& p : paths) core.remove(p);
                  });
    return j;
  });
}

}  // namespace

json run_store(const options& o) {
  require_space(o.dir, 4 * stream_bytes + n * n * sizeof(double));
  setting s;
  s.nodes = o.nodes ? o.nodes : 4;
  const served_store servers(o.dir / "servers", s.nodes);
  s.url = servers.url();
  make_files(s);

  paired_ratio read("read_over_tcp"), write("write_over_tcp"), tile("tile_over_contiguous");
  paired_ratio write_bound("write_bound_over_tcp");
  paired_ratio messages("messages_per_tile"), latency("latency_over_pingpong");
  paired_ratio create("create_per_s"), stat("stat_per_s"), remove("remove_per_s");
  paired_ratio read_speed("read_mib_per_s"), write_speed("write_mib_per_s");
  paired_ratio small_us("us_per_4k_read");
  const double mib = static_cast<double>(times * stream_bytes) / (1 << 20);
  for (unsigned r = o.rounds_or(5); r != 0; --r) {
    const double bare_in = bare_stream(s, bare::way::in);
    const double ours_in = our_stream(s, transfer::read);
    read.add(bare_in, ours_in);
    read_speed.add(mib, ours_in);
    const double bare_out = bare_stream(s, bare::way::out);
    const double ours_out = our_stream(s, transfer::write);
    write.add(bare_out, ours_out);
    write_bound.add(bare_out, bare_stream_to_files(s, o.dir / "bare"));
    write_speed.add(mib, ours_out);
    const json contiguous = read_matrix(s, false), tiles = read_matrix(s, true);
    tile.add(seconds(contiguous), seconds(tiles));
    messages.add(tiles["messages"].get<double>());
    const double there_and_back = ping_pong();
    const double one = small_read(s);
    latency.add(one, there_and_back);
    small_us.add(one * 1e6);
    const json calls = name_calls(s);
    create.add(calls["create"].get<double>());
    stat.add(calls["stat"].get<double>());
    remove.add(calls["remove"].get<double>());
  }
  json out{{"nodes", s.nodes}};
  for (const paired_ratio* p : {&read, &write, &write_bound, &tile, &messages, &latency, &create, &stat, &remove,
                                &read_speed, &write_speed, &small_us})
    p->put(out);
  return out;
}

}  // namespace bench
