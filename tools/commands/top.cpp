#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>
#include <thread>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "cluster/server_queries.hpp"
#include "oocarray/error.hpp"
#include "progress/progress.hpp"

namespace ooc::tool {

namespace {

using std::chrono::steady_clock;

struct look {
  steady_clock::time_point when;
  std::optional<wire::node_statistics> said;
  std::string why;  ///< where it said nothing
};

/// What one node did between two looks.
struct rates {
  double read = 0, written = 0, requests = 0;  ///< bytes, bytes, requests; in a second
};

rates between(const look& a, const look& b) {
  // After a restart the counters begin again.
  if (!a.said || !b.said || a.said->started_ns != b.said->started_ns) return {};
  const double s = std::chrono::duration<double>(b.when - a.when).count();
  const io_stats d = b.said->io - a.said->io;
  const auto per_second = [&](std::uint64_t n) { return static_cast<double>(n) / s; };
  return {per_second(d.bytes_read), per_second(d.bytes_written),
          per_second(d.read_requests + d.write_requests)};
}

std::vector<look> look_at(const storage::cluster_info& cluster, const cluster::asker& who) {
  std::vector<look> all;
  for (const auto& n : cluster.nodes) {
    const auto node = static_cast<std::uint32_t>(all.size());
    look l;
    try {
      l.said = cluster::ask_statistics(node, n, cluster.store_uuid, who);
    } catch (const error& e) {
      l.why = e.what();
    }
    l.when = steady_clock::now();
    all.push_back(std::move(l));
  }
  return all;
}

nlohmann::json to_json(const std::vector<look>& before, const std::vector<look>& now) {
  nlohmann::json nodes = nlohmann::json::array();
  for (std::size_t i = 0; i < now.size(); ++i) {
    nlohmann::json j{{"node", i}, {"up", now[i].said.has_value()}};
    if (const auto& s = now[i].said) {
      const rates r = between(before[i], now[i]);
      j.update({{"read_bytes_per_s", r.read},
                {"written_bytes_per_s", r.written},
                {"requests_per_s", r.requests},
                {"waiting", s->waiting},
                {"running", s->running},
                {"buffer_bytes", s->buffer_bytes},
                {"buffer_limit", s->buffer_limit},
                {"clients", s->clients}});
    } else {
      j["why"] = now[i].why;
    }
    nodes.push_back(std::move(j));
  }
  return {{"nodes", nodes}};
}

void print_table(const std::vector<look>& before, const std::vector<look>& now) {
  std::printf("node     read/s  written/s  requests/s  waiting  running     buffers  clients\n");
  rates sum;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const auto& s = now[i].said;
    if (!s) {
      std::printf("%-4zu down: %s\n", i, now[i].why.c_str());
      continue;
    }
    const rates r = between(before[i], now[i]);
    sum.read += r.read;
    sum.written += r.written;
    sum.requests += r.requests;
    std::printf("%-4zu %10s %10s %11.0f %8llu %8llu %11s %8llu\n", i, human_bytes(r.read).c_str(),
                human_bytes(r.written).c_str(), r.requests,
                static_cast<unsigned long long>(s->waiting),
                static_cast<unsigned long long>(s->running),
                human_bytes(static_cast<double>(s->buffer_bytes)).c_str(),
                static_cast<unsigned long long>(s->clients));
  }
  std::printf("all  %10s %10s %11.0f\n", human_bytes(sum.read).c_str(),
              human_bytes(sum.written).c_str(), sum.requests);
  std::fflush(stdout);
}

int run_top(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("once", "one look, then end");
  line.option()("interval,i", po::value<double>()->value_name("SECONDS"),
                "between two looks, otherwise 2");
  line.key_option();
  line.option()("json", "for programs: one object a line");
  line.positional("URL");
  if (!line.parse(arguments)) return success;
  const double seconds = line.real("interval", line.has("once") ? 0.5 : 2);
  if (!(seconds >= 0.05 && seconds <= 3600)) throw usage_mistake("--interval: give 0.05 to 3600");
  const std::string url = line.store_url("URL");
  const std::string metadata = cluster::metadata_address(url);
  const auto who = cluster::asker::of(url, line.text_or("key", ""));
  const auto store = cluster::ask_cluster(metadata, who);

  const bool screen = ::isatty(STDOUT_FILENO) == 1 && !line.has("json") && !line.has("once");
  std::vector<look> before = look_at(store, who);
  for (;;) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    std::vector<look> now = look_at(store, who);
    if (line.has("json")) {
      std::cout
          << to_json(before, now).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
          << std::endl;
    } else {
      if (screen) std::printf("\x1b[H\x1b[2J");
      print_table(before, now);
    }
    if (line.has("once")) return success;
    if (!std::cout || std::ferror(stdout)) return failed;
    before = std::move(now);
  }
}

}  // namespace

const command top{"top", "top [options] [URL]",
                  "Shows what the I/O servers of a store are doing, again and again.", run_top};

}  // namespace ooc::tool
