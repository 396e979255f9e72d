// oocbench CASE: measures the library beside the limit of the machine and beside what a program
// would otherwise do.  See README.md.
#include <boost/program_options.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

#include "measure/case.hpp"
#include "measure/child.hpp"
#include "measure/scratch.hpp"

namespace po = boost::program_options;

namespace {

struct bad_option : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// "256M", "64MiB", "1G", "1048576".
std::uint64_t bytes_of(const std::string& text) {
  std::size_t end = 0;
  double n = 0;
  try {
    n = std::stod(text, &end);
  } catch (const std::exception&) {
  }
  const std::string unit = text.substr(end);
  unsigned shift = 0;
  if (unit == "K" || unit == "KiB")
    shift = 10;
  else if (unit == "M" || unit == "MiB")
    shift = 20;
  else if (unit == "G" || unit == "GiB")
    shift = 30;
  else if (!unit.empty() && unit != "B")
    n = 0;
  n *= static_cast<double>(std::uint64_t{1} << shift);
  if (!(n >= 1 << 20) || n > 1e15)
    throw bad_option("--memory " + text + ": expected a size of at least 1M, such as 256M or 1G");
  return static_cast<std::uint64_t>(n) >> 20 << 20;
}

void print_list() {
  for (const bench::bench_case& c : bench::cases) std::printf("%-10s %s\n", c.name, c.question);
}

void print_table(const bench::json& result) {
  for (const auto& [name, value] : result.items()) std::printf("  %-32s %s\n", name.c_str(), value.dump().c_str());
}

bench::json run_one(const bench::bench_case& c, const bench::options& o) {
  std::fprintf(stderr, "%s: %s\n", c.name, c.question);
  bench::json r{{"case", c.name}};
  r.update(c.run(o));
  return r;
}

struct command {
  std::string which;
  bool json = false;
  std::string dir;
  std::string memory;
  unsigned rounds = 0;
  unsigned nodes = 0;
  unsigned clients = 0;
  unsigned ranks = 0;
  double seconds = 0;
  std::vector<std::string> only;
  std::vector<std::string> traces;
  bool vary = false;
  std::string url;
  bool full = false;
};

/// False where only help was asked for.
bool parse(int argc, char** argv, command& c) {
  po::options_description shown(
      "oocbench CASE [options]\n\nCASE is `list`, `all`, or one of the cases that `list` shows.\n\nOptions");
  int rounds = 0, nodes = 0, ranks = 0, clients = 0;
  shown.add_options()("help,h", "this text")("json", "one JSON object as the last line")(
      "dir,d", po::value(&c.dir)->value_name("DIR"), "scratch folder on the disk to measure (default: below /var/tmp)")(
      "memory,m", po::value(&c.memory)->value_name("SIZE"), "memory budget, e.g. 256M (default: the case's own)")(
      "rounds,r", po::value(&rounds)->value_name("N"), "pairs of runs (default: the case's own)")(
      "nodes,n", po::value(&nodes)->value_name("N"),
      "I/O servers of the served store: for `store` and `patterns` (default: 4), for `scale` (100), and for "
      "`collective` to run on one")("clients", po::value(&clients)->value_name("N"), "of `scale` (default: 1000)")(
      "seconds,s", po::value(&c.seconds)->value_name("S"), "time after which a run of `patterns` stops (default: 2.5)")(
      "ranks", po::value(&ranks)->value_name("N"), "MPI ranks, for cases that use them (default: 4)")(
      "only", po::value(&c.only)->value_name("NAME"),
      "one of the rows of `patterns` or `policy`, or of `algorithms`: sweep, wave, passes, sort, multiply, factorise; "
      "may be "
      "repeated")("trace", po::value(&c.traces)->value_name("FILE"),
                  "a recording (OOC_TRACE) that `policy` replays in place of the generated traces; may be repeated")(
      "rados", po::value(&c.url)->value_name("URL"),
      "`store` on this store (rados:POOL/NAMESPACE), which is made if it is not there, beside `rados bench` on its "
      "pool")("full", "`algorithms` on 16384 x 16384 matrices where it takes 8192 x 8192")(
      "vary", "`policy` with half and with twice of each number that the library's choices go by");
  po::options_description all;
  all.add(shown).add_options()("case", po::value(&c.which));
  po::positional_options_description position;
  position.add("case", 1);
  po::variables_map given;
  try {
    po::store(po::command_line_parser(argc, argv).options(all).positional(position).run(), given);
    po::notify(given);
  } catch (const po::error& e) {
    throw bad_option(e.what());
  }
  if (given.count("help")) {
    std::cout << shown;
    return false;
  }
  if (given.count("rounds") && (rounds < 1 || rounds > 1000))
    throw bad_option("--rounds " + std::to_string(rounds) + ": expected 1 to 1000");
  if (given.count("nodes") && (nodes < 1 || nodes > 1024))
    throw bad_option("--nodes " + std::to_string(nodes) + ": expected 1 to 1024");
  if (given.count("clients") && (clients < 1 || clients > 10'000))
    throw bad_option("--clients " + std::to_string(clients) + ": expected 1 to 10000");
  c.clients = static_cast<unsigned>(clients);
  c.nodes = static_cast<unsigned>(nodes);
  c.rounds = static_cast<unsigned>(rounds);
  if (given.count("ranks") && (ranks < 1 || ranks > 1000))
    throw bad_option("--ranks " + std::to_string(ranks) + ": expected 1 to 1000");
  c.ranks = static_cast<unsigned>(ranks);
  if (given.count("seconds") && !(c.seconds >= 0.01 && c.seconds <= 1000))
    throw bad_option("--seconds: expected 0.01 to 1000");
  c.json = given.count("json") != 0;
  c.full = given.count("full") != 0;
  c.vary = given.count("vary") != 0;
  if (c.which.empty()) throw bad_option("no case given");
  return true;
}

int run(int argc, char** argv) {
  command c;
  if (!parse(argc, argv, c)) return 0;
  if (c.which == "list") {
    print_list();
    return 0;
  }
  bench::options o;
  if (!c.memory.empty()) o.memory = bytes_of(c.memory);
  o.rounds = c.rounds;
  o.nodes = c.nodes;
  o.clients = c.clients;
  o.ranks = c.ranks;
  o.seconds = c.seconds;
  o.only = c.only;
  o.traces = c.traces;
  o.url = c.url;
  o.full = c.full;
  o.vary = c.vary;
  const bench::bench_case* one = nullptr;
  for (const bench::bench_case& k : bench::cases)
    if (c.which == k.name) one = &k;
  if (!one && c.which != "all") throw bad_option("there is no case '" + c.which + "'; `oocbench list` shows them");

  bench::interrupts_throw();
  const bench::scratch_folder scratch(c.dir.empty() ? bench::default_base() : std::filesystem::path(c.dir));
  o.dir = scratch.path();
  bench::json result;
  if (one) {
    result = run_one(*one, o);
    if (!c.json) print_table(result);
  } else {
    for (const bench::bench_case& k : bench::cases) {
      result[k.name] = run_one(k, o);
      if (!c.json) {
        std::printf("%s\n", k.name);
        print_table(result[k.name]);
      }
    }
  }
  if (c.json) std::printf("%s\n", result.dump().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const bad_option& e) {
    std::fprintf(stderr, "oocbench: %s; see oocbench --help\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "oocbench: %s\n", e.what());
    return 1;
  }
}
