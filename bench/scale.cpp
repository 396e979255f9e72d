// Many clients of many servers on this machine: what a client and a connection take, and how long the clients wait when
// all of them come at once.
//
//     open_ms          every client opens the store and the same file, all at once
//     first_read_ms    every client reads 512 bytes from every node, which connects it to all of them
//     read_ms          the same again, ten times, all at once
//     look_up_ms       a look-up of a name by every client, one after another in a process
//     reconnect_ms     from the moment that the metadata server, which was killed, serves again until a client has its
//                      answer
//
// Each with `_median`, `_99` and `_alone`: of the first client, before there are others.  `metad_`, `iod_` and
// `client_` say what takes how much: resident memory (KiB), descriptors and threads, of one server with all clients
// connected, and of one client among all those of its process.  `--nodes` (100) and `--clients` (1000); the clients are
// store handles in 20 processes, a thread each.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "measure/case.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/served_store.hpp"
#include "oocarray/error.hpp"
#include "oocarray/file.hpp"
#include "scale_notices.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;
using namespace ooc::literals;

constexpr unsigned processes = 20, most_clients = 10'000, reads_of_each = 10;
constexpr std::uint64_t stripe = 64_KiB, piece = 512;
constexpr const char* file_name = "all";

enum step : unsigned { opening, first_read, reading, looking_up, reconnecting, steps };
constexpr const char* step_names[steps] = {"open_ms", "first_read_ms", "read_ms", "look_up_ms", "reconnect_ms"};

/// What the processes of a run share.
struct board {
  std::atomic<unsigned> go{0};       ///< steps that may begin
  std::atomic<unsigned> arrived{0};  ///< clients that have ended the step
  std::atomic<unsigned> failed{0};
  std::atomic<double> up_again{0};  ///< the time when the metadata server answered
  char why[400] = {};               ///< the first failure
  float ms[steps][most_clients] = {};
};

class shared_board {
 public:
  shared_board() : at_(::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (at_ == MAP_FAILED) throw std::bad_alloc();
    new (at_) board;
  }
  ~shared_board() { ::munmap(at_, sizeof(board)); }
  shared_board(const shared_board&) = delete;
  shared_board& operator=(const shared_board&) = delete;
  board& operator*() const { return *static_cast<board*>(at_); }
  board* operator->() const { return &**this; }

 private:
  void* at_;
};

/// The same in all processes.
double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void wait_until(const std::function<bool()>& done) {
  while (!done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// 512 bytes from every node.
ooc::request from_every_node(unsigned nodes) {
  ooc::request r;
  for (unsigned n = 0; n < nodes; ++n) r.add(n * stripe, n * piece, piece);
  return r;
}

class client {
 public:
  client(const std::string& url, unsigned nodes) : url_(url), request_(from_every_node(nodes)) {}

  void run(step s) {
    if (s == opening) {
      store_ = ooc::store::open(url_);
      file_.emplace(ooc::file::open(*store_, file_name));
      return;
    }
    if (s == looking_up || s == reconnecting) return (void)store_->exists(file_name);
    std::vector<std::byte> out(request_.bytes());
    for (unsigned n = 0; n < (s == reading ? reads_of_each : 1); ++n) file_->read(request_, out);
  }

 private:
  const std::string url_;
  const ooc::request request_;
  std::optional<ooc::store> store_;
  std::optional<ooc::file> file_;
};

void be_client(board& b, const std::string& url, unsigned nodes, unsigned number) {
  client me(url, nodes);
  for (unsigned s = 0; s < steps; ++s) {
    wait_until([&] { return b.go > s; });
    try {
      const double start = now_seconds();
      me.run(static_cast<step>(s));
      const double from = s == reconnecting ? b.up_again.load() : start;
      b.ms[s][number] =
          static_cast<float>(1e3 * std::max(0.0, now_seconds() - from)) / (s == reading ? reads_of_each : 1);
    } catch (const std::exception& e) {
      if (b.failed++ == 0) std::snprintf(b.why, sizeof b.why, "%s", e.what());
    }
    ++b.arrived;
  }
  wait_until([&] { return b.go > steps; });  // connected until all has been looked at
}

/// What /proc tells of a process.
struct footprint {
  double kib = 0, descriptors = 0, threads = 0;
};

footprint footprint_of(pid_t pid) {
  footprint f;
  const std::string proc = "/proc/" + std::to_string(pid);
  std::ifstream in(proc + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("VmRSS:")) f.kib = std::stod(line.substr(6));
    if (line.starts_with("Threads:")) f.threads = std::stod(line.substr(8));
  }
  for ([[maybe_unused]] const auto& fd : fs::directory_iterator(proc + "/fd")) ++f.descriptors;
  return f;
}

void put(json& out, const std::string& name, const footprint& f) {
  out[name + "_kib"] = std::round(f.kib);
  out[name + "_descriptors"] = f.descriptors;
  out[name + "_threads"] = f.threads;
}

/// The clients of a run, in processes that end with it.
class crowd {
 public:
  crowd(board& b, const std::string& url, unsigned nodes, unsigned clients) : b_(b), clients_(clients) {
    const unsigned in_each = (clients + processes - 1) / processes;
    for (unsigned first = 0; first < clients; first += in_each) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        std::vector<std::thread> all;
        for (unsigned n = first; n < std::min(clients, first + in_each); ++n)
          all.emplace_back([&, n] { be_client(b, url, nodes, n); });
        for (std::thread& t : all) t.join();
        ::_exit(0);
      }
      pids_.push_back(pid);
    }
  }
  ~crowd() {
    b_.go = steps + 1;
    for (const pid_t p : pids_) ::waitpid(p, nullptr, 0);
  }
  crowd(const crowd&) = delete;
  crowd& operator=(const crowd&) = delete;

  /// All of them make the step at once.
  void make(step s) {
    b_.arrived = 0;
    b_.go = s + 1;
    wait_until([&] { return b_.arrived == clients_; });
    if (b_.failed != 0)
      throw std::runtime_error(std::string("scale: ") + step_names[s] + ": " + std::to_string(b_.failed) + " of " +
                               std::to_string(clients_) + " clients: " + b_.why);
  }
  std::vector<double> times(step s) const { return {b_.ms[s], b_.ms[s] + clients_}; }
  const std::vector<pid_t>& pids() const { return pids_; }

 private:
  board& b_;
  const unsigned clients_;
  std::vector<pid_t> pids_;
};

double at_99(std::vector<double> v) {
  std::ranges::sort(v);
  return v[static_cast<std::size_t>(0.99 * static_cast<double>(v.size() - 1))];
}

}  // namespace

json run_scale(const options& o) {
  const unsigned nodes = o.nodes ? o.nodes : 100, clients = std::min(o.clients ? o.clients : 1000, most_clients);
  json out{{"nodes", nodes}, {"clients", clients}};
  served_store servers(o.dir / "served", nodes);
  {
    const ooc::store s = ooc::store::open(servers.url());
    ooc::file f = ooc::file::create(s, file_name, {.size = nodes * stripe, .striping = {.sf = stripe}});
    const std::vector<std::byte> some(stripe);
    for (unsigned n = 0; n < nodes; ++n) f.write_at(n * stripe, some);
    f.sync();
  }
  const auto run = [&](unsigned count, const std::string& ending, bool all) {
    const shared_board b;
    // One machine plays all of them: what is asked is how long it takes, not whether that is within the deadline.
    crowd c(*b, servers.url() + "?deadline=600s", nodes, count);
    for (unsigned s = 0; s < steps; ++s) {
      if (s == reconnecting) {
        if (!all) break;
        servers.restart_metadata();
        b->up_again = now_seconds();
      }
      c.make(static_cast<step>(s));
      const std::vector<double> ms = c.times(static_cast<step>(s));
      out[step_names[s] + (all ? std::string("_median") : ending)] = median(ms);
      if (all) out[std::string(step_names[s]) + "_99"] = at_99(ms);
      std::fprintf(stderr, "  %-14s %8.2f ms, 99 %% %8.2f ms\n", step_names[s], median(ms), at_99(ms));
      if (!all || s != reading) continue;
      put(out, "metad", footprint_of(servers.pid("metad")));
      put(out, "iod", footprint_of(servers.pid("iod-0")));
      footprint sum;
      for (const pid_t p : c.pids()) {
        const footprint f = footprint_of(p);
        sum = {sum.kib + f.kib, sum.descriptors + f.descriptors, sum.threads + f.threads};
      }
      put(out, "client", {sum.kib / count, sum.descriptors / count, sum.threads / count});
    }
  };
  run(1, "_alone", false);
  run(clients, "", true);
  measure_notices(o, out);
  return out;
}

}  // namespace bench
