#include "daemon/command_line.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <fstream>
#include <iostream>
#include <utility>

#include "oocarray/error.hpp"

namespace ooc::servers {

server_command_line::server_command_line(std::string name, std::string summary)
    : name_(std::move(name)), summary_(std::move(summary)), options_("Options") {
  option()("config", po::value<std::string>(), "file with a line \"name = value\" for each option not given here")(
      "log-level", po::value<std::string>()->default_value("info"), "debug, info, warning or error")(
      "log-file", po::value<std::string>(), "append the log to this file; else to stderr")(
      "version", "print the version")("help,h", "print this");
}

bool server_command_line::parse(int argc, char** argv) {
  po::store(po::parse_command_line(argc, argv, options_), values_);
  if (has("help")) {
    std::cout << "Usage: " << name_ << " [options]\n" << summary_ << "\n\n" << options_;
    return false;
  }
  if (has("version")) {
    std::cout << name_ << " " OOCARRAY_VERSION "\n";
    return false;
  }
  if (has("config")) {
    const auto file = get<std::string>("config");
    std::ifstream in(file);
    if (!in) throw io_error({errno, std::generic_category()}, "configuration file '" + file + "' cannot be read");
    po::store(po::parse_config_file(in, options_), values_);
  }
  po::notify(values_);
  start_log();
  return true;
}

void server_command_line::metrics_option() {
  option()("metrics", po::value<std::vector<std::string>>()->composing(),
           "ADDRESS:PORT, or PORT of 127.0.0.1: what the server counts, at http://ADDRESS:PORT/metrics for "
           "Prometheus, and for whoever reaches that address");
}

std::vector<std::string> server_command_line::metrics_addresses() const {
  return has("metrics") ? get<std::vector<std::string>>("metrics") : std::vector<std::string>{};
}

void server_command_line::encrypt_option() {
  option()("encrypt", po::value<std::string>()->default_value("on"),
           "on or off; off: holders of keys prove them, but what follows is neither encrypted nor "
           "authenticated.  For trusted networks, and the same on all servers and in the store's URL "
           "(?encrypt=off)");
}

wire::encryption server_command_line::frames() const {
  const auto text = get<std::string>("encrypt");
  if (text != "on" && text != "off") throw usage_error(errc::invalid_request, "--encrypt " + text + ": give on or off");
  return text == "on" ? wire::encryption::on : wire::encryption::off;
}

void server_command_line::start_log() const {
  const auto wanted = get<std::string>("log-level");
  const auto level = spdlog::level::from_str(wanted);
  if (level == spdlog::level::off && wanted != "off")
    throw usage_error(errc::invalid_request, "--log-level " + wanted + ": give debug, info, warning or error");
  std::shared_ptr<spdlog::logger> log;
  if (has("log-file"))
    log = spdlog::basic_logger_mt(name_, get<std::string>("log-file"));
  else
    log = spdlog::stderr_logger_mt(name_);
  log->set_level(level);
  log->flush_on(spdlog::level::info);
  spdlog::set_default_logger(log);
}

}  // namespace ooc::servers
