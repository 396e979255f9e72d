#include "top/server_load.hpp"

#include <future>
#include <optional>
#include <utility>

#include "oocarray/error.hpp"

namespace ooc::tool {

load_watch::load_watch(std::string metadata, cluster::asker who)
    : metadata_(std::move(metadata)),
      who_(std::move(who)),
      cluster_(cluster::ask_cluster(metadata_, who_)),
      before_(cluster_.nodes.size() + 1),
      loads_(cluster_.nodes.size() + 1) {
  loads_[0].name = "metad";
  for (std::size_t i = 1; i < loads_.size(); ++i) loads_[i].name = std::to_string(i - 1);
}

const std::vector<server_load>& load_watch::look() {
  std::vector<std::future<cluster::node_answer>> asked;
  for (std::uint32_t i = 0; i < cluster_.nodes.size(); ++i)
    asked.push_back(std::async(
        std::launch::async, [this, i] { return cluster::ask_node(i, cluster_.nodes[i], cluster_.store_uuid, who_); }));
  std::optional<storage::cluster_info> moved;
  try {
    cluster::metadata_answer m = cluster::ask_metadata(metadata_, who_);
    counted now{clock::now(), clock::now(), m.said.started_ns, 0, 0, m.said.calls};
    loads_[0].latency_us = m.round_trip_us;
    loads_[0].clients = m.said.clients;
    add(loads_[0], before_[0], now);
    if (m.cluster.nodes.size() == cluster_.nodes.size()) moved = std::move(m.cluster);
  } catch (const error& e) {
    missed(loads_[0], before_[0], e.what());
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    server_load& l = loads_[i + 1];
    try {
      const cluster::node_answer a = asked[i].get();
      const wire::node_statistics& s = a.said;
      l.latency_us = a.round_trip_us;
      l.waiting = s.waiting;
      l.running = s.running;
      l.memory = s.buffer_bytes;
      l.memory_limit = s.buffer_limit;
      l.disk_size = s.disk_bytes;
      l.disk_used = s.disk_bytes - std::min(s.disk_free, s.disk_bytes);
      l.clients = s.clients;
      add(l, before_[i + 1],
          {clock::now(), clock::now(), s.started_ns, s.io.bytes_read, s.io.bytes_written,
           s.io.read_requests + s.io.write_requests});
    } catch (const error& e) {
      missed(l, before_[i + 1], e.what());
    }
    l.retired = cluster_.nodes[i].retired;
  }
  // A server that was started again may have another address.
  if (moved) cluster_ = std::move(*moved);
  return loads_;
}

void load_watch::add(server_load& l, counted& before, const counted& now) {
  l.read = l.written = l.requests = 0;
  if (before.started_ns == now.started_ns) {
    const double s = std::chrono::duration<double>(now.when - before.when).count();
    const auto rate = [&](std::uint64_t to, std::uint64_t from) { return static_cast<double>(to - from) / s; };
    l.read = rate(now.read, before.read);
    l.written = rate(now.written, before.written);
    l.requests = rate(now.requests, before.requests);
  }
  l.up = true;
  l.why.clear();
  l.silent_s = 0;
  before = now;
  l.history.push_back(l.name == "metad" ? l.requests : l.read + l.written);
  if (l.history.size() > history_length) l.history.pop_front();
}

void load_watch::missed(server_load& l, const counted& before, const std::string& why) {
  const clock::time_point heard = before.heard == clock::time_point{} ? began_ : before.heard;
  std::deque<double> history = std::move(l.history);
  history.push_back(0);
  if (history.size() > history_length) history.pop_front();
  server_load gone;
  gone.name = l.name;
  gone.why = why;
  gone.silent_s = std::chrono::duration<double>(clock::now() - heard).count();
  gone.history = std::move(history);
  l = std::move(gone);
}

}  // namespace ooc::tool
