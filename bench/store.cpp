// A store served by processes of this machine, beside bare sockets; with --rados one in RADOS (store_rados.cpp).
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
#include <string>
#include <vector>

#include "measure/bare_sockets.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/scratch.hpp"
#include "measure/served_store.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/file.hpp"
#include "storage/service/store_core.hpp"
#include "store_loads.hpp"

namespace bench {
namespace {

constexpr unsigned names = 1000;

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
  if (!o.url.empty()) return run_store_on_rados(o);
  require_space(o.dir, 4 * stream_bytes + matrix_extent * matrix_extent * sizeof(double));
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
