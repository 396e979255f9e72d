// The load of the servers of a store: looks at all of them at once, and the rates between two looks.
//
// A server that does not answer takes its `patience` and nobody else's time.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "cluster/server_queries.hpp"

namespace ooc::tool {

/// One server, as the last two looks show it.
struct server_load {
  std::string name;  ///< "metad", "0"
  bool up = false;
  bool retired = false;                    ///< nothing is there, and nobody needs it
  std::string why;                         ///< where it is not up
  double silent_s = 0;                     ///< for how long it has not answered
  double read = 0;                         ///< bytes in a second; of I/O servers
  double written = 0;                      ///< the same
  double requests = 0;                     ///< in a second; calls of the metadata server
  double latency_us = 0;                   ///< of a question and its answer
  std::uint64_t waiting = 0, running = 0;  ///< requests
  std::uint64_t memory = 0, memory_limit = 0;
  std::uint64_t disk_used = 0, disk_size = 0;
  std::uint64_t clients = 0;
  std::deque<double> history;  ///< bytes in a second, or calls; the newest last
};

class load_watch {
 public:
  static constexpr std::size_t history_length = 60;

  /// Asks the metadata server who the others are.  Throws as cluster::ask_cluster() does.
  load_watch(std::string metadata, cluster::asker who);

  /// Asks all of them, each once: the metadata server first, then the I/O servers in their order.
  const std::vector<server_load>& look();

 private:
  using clock = std::chrono::steady_clock;
  /// The counters from which rates are made.
  struct counted {
    clock::time_point when{};
    clock::time_point heard{};     ///< when it last answered
    std::uint64_t started_ns = 0;  ///< counters begin again with a new one
    std::uint64_t read = 0, written = 0, requests = 0;
  };

  void add(server_load& l, counted& before, const counted& now);
  void missed(server_load& l, const counted& before, const std::string& why);

  std::string metadata_;
  cluster::asker who_;
  storage::cluster_info cluster_;
  clock::time_point began_ = clock::now();
  std::vector<counted> before_;
  std::vector<server_load> loads_;
};

}  // namespace ooc::tool
