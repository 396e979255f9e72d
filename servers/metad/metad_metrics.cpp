#include "metad/metad_metrics.hpp"

#include <algorithm>

#include "daemon/metrics.hpp"
#include "storage/wire/metadata_calls.hpp"

namespace ooc::metad {

namespace {

/// "set_size"
std::string name_of(wire::pb::Operation op) {
  std::string name = wire::operation_name(op);
  std::ranges::replace(name, ' ', '_');
  return name;
}

}  // namespace

std::string metrics_of(const wire::pb::MetadataStatistics& s, const std::vector<node_table::state>& nodes) {
  using servers::metrics_text;
  metrics_text t;
  t.process("ooc_metad", s.started_ns());
  metrics_text::labelled calls;
  for (const auto& o : s.operations()) calls.emplace_back(name_of(o.op()), static_cast<double>(o.calls()));
  t.counter("ooc_metad_calls_total", "Calls of the metadata service, failures included.", "operation", calls);
  t.counter("ooc_metad_failures_total", "Calls and questions that were answered with an error.",
            static_cast<double>(s.failures()));
  t.gauge("ooc_metad_connections", "Open connections, those of I/O servers included.",
          static_cast<double>(s.connections()));
  t.gauge("ooc_metad_clients", "Clients with a connection, a lease, or a file that is being made.",
          static_cast<double>(s.clients()));
  t.gauge("ooc_metad_leases", "Leases that clients hold.", static_cast<double>(s.leases()));
  metrics_text::labelled up, size, free;
  for (const node_table::state& n : nodes) {
    const std::string node = std::to_string(n.known.node);
    up.emplace_back(node, n.up ? 1 : 0);
    size.emplace_back(node, static_cast<double>(n.known.disk_bytes));
    free.emplace_back(node, static_cast<double>(n.known.disk_free));
  }
  t.gauge("ooc_metad_node_up", "1 for an I/O server that has been heard of within 10 s.", "node", up);
  t.gauge("ooc_metad_node_disk_size_bytes", "Size of its file system, as it said last.", "node", size);
  t.gauge("ooc_metad_node_disk_free_bytes", "Space in it, as it said last.", "node", free);
  return std::move(t).text();
}

}  // namespace ooc::metad
