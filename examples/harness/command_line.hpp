// Options of the example programs: numbers with units, choices, and refusals that help.
//
// Every option is checked before anything is done; a refusal names the option, the limit and the
// remedy, and the program then ends with status 2 (run.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/ranks.hpp"
#include "oocarray/store.hpp"

namespace examples {

/// An option that cannot be; what() is the whole message.
class bad_option : public std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// "10000", "10_000", "64K", "256M", "1.5G": a number of things; K, M, G, T are powers of 1024.
/// With `bytes`, also "512MiB" and "512_MiB".  Throws bad_option.
std::uint64_t parse_quantity(const std::string& option, const std::string& text, bool bytes);

class command_line {
 public:
  /// `what` is the text above the list of options in --help.
  command_line(std::string program, std::string what);
  ~command_line();

  // Each adds an option whose variable holds the default and receives the value.
  void count(const char* name, std::uint64_t& value, std::uint64_t low, std::uint64_t high, const char* help);
  void bytes(const char* name, std::uint64_t& value, std::uint64_t low, const char* help);
  void real(const char* name, double& value, double low, double high, const char* help);
  void choice(const char* name, std::string& value, std::initializer_list<const char*> from, const char* help);
  void text(const char* name, std::string& value, const char* help);
  void flag(const char* name, bool& value, const char* help);

  /// False: --help was asked for and printed.  Throws bad_option.
  bool parse(int argc, const char* const* argv);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Options that all examples have.
struct common_options {
  std::uint64_t size = 0;
  std::uint64_t memory = std::uint64_t{512} << 20;
  std::uint64_t iterations = 1;
  std::string type = "f8";
  std::string store = "local:ooc-store";
  std::string vm = "none";
  std::string stage = "all";
  bool json = false;
  bool quiet = false;
  bool keep = false;

  /// Adds --memory, --store, --vm, --stage, --keep, --json and --quiet; the others are the program's
  /// own.
  void add_to(command_line& c);
  /// The store, with transfer buffers that leave most of a small budget to the arrays.  Rank 0 opens
  /// it first: it may have to be made.
  ooc::store open_store(const ranks& all) const;

  // What --stage asks for.
  bool creates() const { return stage != "compute"; }
  bool computes() const { return stage != "create"; }
  /// Whether the data are to be there when the program has ended.
  bool keeps() const { return keep || stage == "create"; }
};

}  // namespace examples
