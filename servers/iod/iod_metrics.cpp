#include "iod/iod_metrics.hpp"

#include "daemon/metrics.hpp"

namespace ooc::iod {

std::string metrics_of(const wire::node_statistics& s) {
  servers::metrics_text t;
  const auto counter = [&](const char* name, const char* help, std::uint64_t value) {
    t.counter(std::string("ooc_iod_") + name + "_total", help, static_cast<double>(value));
  };
  const auto gauge = [&](const char* name, const char* help, std::uint64_t value) {
    t.gauge(std::string("ooc_iod_") + name, help, static_cast<double>(value));
  };
  t.process("ooc_iod", s.started_ns);
  counter("read_requests", "Requests of clients that read.", s.io.read_requests);
  counter("write_requests", "Requests of clients that write.", s.io.write_requests);
  counter("read_regions", "Contiguous regions that the reading requests named.", s.io.read_regions);
  counter("write_regions", "Contiguous regions that the writing requests named.", s.io.write_regions);
  counter("read_bytes", "Bytes delivered to clients.", s.io.bytes_read);
  counter("written_bytes", "Bytes received from clients.", s.io.bytes_written);
  counter("device_reads", "Reads from the file system.", s.io.device_reads);
  counter("device_writes", "Writes to the file system.", s.io.device_writes);
  counter("device_read_bytes", "Bytes read from the file system.", s.io.device_bytes_read);
  counter("device_written_bytes", "Bytes written to the file system.", s.io.device_bytes_written);
  counter("syncs", "Requests that waited for stable storage.", s.io.syncs);
  gauge("waiting_requests", "Requests that wait for their turn.", s.waiting);
  gauge("running_requests", "Requests that are being served.", s.running);
  gauge("buffer_bytes", "Memory in use for transfers.", s.buffer_bytes);
  gauge("buffer_limit_bytes", "Memory that transfers may use.", s.buffer_limit);
  gauge("clients", "Connections of clients.", s.clients);
  gauge("disk_size_bytes", "Size of the file system of the folder.", s.disk_bytes);
  gauge("disk_free_bytes", "Space in it that the server may use.", s.disk_free);
  return std::move(t).text();
}

}  // namespace ooc::iod
