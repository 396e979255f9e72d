// The command line and the configuration file of a server: the same options in both.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "storage/wire/handshake.hpp"

namespace ooc::servers {

namespace po = boost::program_options;

class server_command_line {
 public:
  /// Every server knows --config, --log-level, --log-file, --version and --help.
  server_command_line(std::string name, std::string summary);

  po::options_description_easy_init option() { return options_.add_options(); }

  /// --metrics, and the addresses that it names.
  void metrics_option();
  std::vector<std::string> metrics_addresses() const;
  /// --encrypt, and what it says.
  void encrypt_option();
  wire::encryption frames() const;

  /// Reads the command line, then the file of --config, whose lines "name = value" give what the
  /// command line does not; sets up the log.  False: --help or --version was asked for and has been
  /// printed.  Throws po::error or usage_error.
  bool parse(int argc, char** argv);

  bool has(const std::string& name) const { return values_.count(name) != 0; }
  template <class T>
  T get(const std::string& name) const {
    return values_[name].as<T>();
  }

 private:
  void start_log() const;

  std::string name_;
  std::string summary_;
  po::options_description options_;
  po::variables_map values_;
};

}  // namespace ooc::servers
