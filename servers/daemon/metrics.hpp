// The metrics of a server, in the text format that Prometheus reads (version 0.0.4).
//
//   metrics_text t;
//   t.counter("ooc_iod_read_bytes_total", "Bytes delivered to clients.", n);
//   return std::move(t).text();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ooc::servers {

class metrics_text {
 public:
  /// The value of a label, and what is said of it.  The value is escaped.
  using labelled = std::vector<std::pair<std::string, double>>;

  /// A value that only grows while the server runs; the name ends with _total.
  void counter(std::string_view name, std::string_view help, double value);
  void counter(std::string_view name, std::string_view help, std::string_view label, const labelled& values);
  /// A value that grows and shrinks.
  void gauge(std::string_view name, std::string_view help, double value);
  void gauge(std::string_view name, std::string_view help, std::string_view label, const labelled& values);
  /// Version of the server `name`, when it was started, and the memory of this process.
  void process(std::string_view name, std::uint64_t started_ns);

  std::string text() && { return std::move(text_); }

 private:
  void family(std::string_view name, std::string_view type, std::string_view help);
  void sample(std::string_view name, double value);
  void samples(std::string_view name, std::string_view label, const labelled& values);

  std::string text_;
};

}  // namespace ooc::servers
