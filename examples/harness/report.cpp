#include "harness/report.hpp"

#include <sys/resource.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

namespace examples {

namespace {

traffic of_all(const traffic& mine, const ranks& all) {
  double t[3] = {static_cast<double>(mine.faults), static_cast<double>(mine.bytes_read),
                 static_cast<double>(mine.bytes_written)};
  all.sum(t);
  return {static_cast<std::uint64_t>(t[0]), static_cast<std::uint64_t>(t[1]), static_cast<std::uint64_t>(t[2])};
}

}  // namespace

traffic traffic_now(const ooc::runtime* rt, const ranks& all) {
  traffic t;
  if (rt) {
    const ooc::runtime_stats s = all.group() ? rt->stats(*all.group()) : rt->stats();
    t.faults = s.faults;
    t.bytes_read = s.bytes_read;
    t.bytes_written = s.bytes_written;
    return t;
  }
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  t.faults = static_cast<std::uint64_t>(use.ru_majflt);
  std::ifstream io("/proc/self/io");
  for (std::string key; io >> key;) {
    std::uint64_t value = 0;
    io >> value;
    if (key == "read_bytes:") t.bytes_read = value;
    if (key == "write_bytes:") t.bytes_written = value;
  }
  return of_all(t, all);
}

struct report::state {
  std::string program;
  bool json;
  nlohmann::ordered_json values;
};

report::report(std::string program, bool json, const ooc::runtime* rt, const ranks& all)
    : state_(new state{std::move(program), json, {}}), runtime_(rt), ranks_(all) {
  state_->values["program"] = state_->program;
  state_->values["ranks"] = all.size();
  state_->values["seconds"] = nlohmann::ordered_json::object();
  state_->values["MB_per_s"] = nlohmann::ordered_json::object();
}

report::~report() = default;

void report::note_phase(const std::string& name, std::chrono::duration<double> seconds, const traffic& before) {
  const traffic now = traffic_now(runtime_, ranks_);
  const double read = static_cast<double>(now.bytes_read - before.bytes_read) / 1e6;
  const double written = static_cast<double>(now.bytes_written - before.bytes_written) / 1e6;
  std::printf("%-10s %9.3f s   %10.1f MB read  %10.1f MB written  %8llu faults\n", name.c_str(), seconds.count(), read,
              written, static_cast<unsigned long long>(now.faults - before.faults));
  std::fflush(stdout);
  state_->values["seconds"][name] = seconds.count();
}

void report::set(const std::string& key, double value) { state_->values[key] = value; }
void report::set(const std::string& key, std::uint64_t value) { state_->values[key] = value; }
void report::set(const std::string& key, const std::string& value) { state_->values[key] = value; }

void report::rate(const std::string& phase, double bytes) {
  const double seconds = state_->values["seconds"].value(phase, 0.0);
  state_->values["MB_per_s"][phase] = seconds > 0 ? bytes / 1e6 / seconds : 0.0;
}

int report::finish(bool right) {
  state_->values["right"] = right;
  std::printf("the result is %s\n", right ? "right" : "WRONG");
  finish_without_result();
  return right ? 0 : 1;
}

int report::finish_without_result() {
  const traffic t = traffic_now(runtime_, ranks_);
  set("faults", t.faults);
  set("bytes_read", t.bytes_read);
  set("bytes_written", t.bytes_written);
  if (state_->json) std::printf("%s\n", state_->values.dump().c_str());
  return 0;
}

}  // namespace examples
