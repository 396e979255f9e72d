#include "daemon/metrics.hpp"

#include <unistd.h>

#include <charconv>
#include <fstream>

namespace ooc::servers {

namespace {

std::string number(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

std::string label_value(std::string_view value) {
  std::string all = "\"";
  for (const char c : value) {
    if (c == '\n') {
      all += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') all += '\\';
    all += c;
  }
  return all + '"';
}

double resident_bytes() {
  std::uint64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

void metrics_text::family(std::string_view name, std::string_view type, std::string_view help) {
  text_.append("# HELP ").append(name).append(" ").append(help).append("\n");
  text_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
}

void metrics_text::sample(std::string_view name, double value) {
  text_.append(name).append(" ").append(number(value)).append("\n");
}

void metrics_text::samples(std::string_view name, std::string_view label, const labelled& values) {
  for (const auto& [of, value] : values)
    sample(std::string(name) + "{" + std::string(label) + "=" + label_value(of) + "}", value);
}

void metrics_text::counter(std::string_view name, std::string_view help, double value) {
  family(name, "counter", help);
  sample(name, value);
}

void metrics_text::counter(std::string_view name, std::string_view help, std::string_view label,
                           const labelled& values) {
  family(name, "counter", help);
  samples(name, label, values);
}

void metrics_text::gauge(std::string_view name, std::string_view help, double value) {
  family(name, "gauge", help);
  sample(name, value);
}

void metrics_text::gauge(std::string_view name, std::string_view help, std::string_view label, const labelled& values) {
  family(name, "gauge", help);
  samples(name, label, values);
}

void metrics_text::process(std::string_view name, std::uint64_t started_ns) {
  gauge(std::string(name) + "_build_info", "1, with the version of the server.", "version", {{OOCARRAY_VERSION, 1}});
  gauge("process_start_time_seconds", "When the server was started, in seconds since 1970.",
        static_cast<double>(started_ns) / 1e9);
  gauge("process_resident_memory_bytes", "Memory of the server.", resident_bytes());
}

}  // namespace ooc::servers
