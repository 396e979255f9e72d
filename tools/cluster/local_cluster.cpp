#include "cluster/local_cluster.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "cluster/find_program.hpp"
#include "cluster/server_queries.hpp"
#include "oocarray/error.hpp"
#include "storage/base/durable_file.hpp"
#include "storage/wire/address.hpp"

namespace ooc::cluster {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using storage::file_descriptor;

namespace {

constexpr const char* settings_file = "cluster.json";

std::string at_port(const std::string& address, unsigned port) {
  return wire::server_address{address, std::to_string(port), {}}.text();
}

/// Whether nobody listens there.
bool is_free(const std::string& address, std::uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  const bool is_v4 = ::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1;
  if (!is_v4 && ::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) != 1) return true;  // a name
  const file_descriptor s(::socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(s.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const int bound = is_v4 ? ::bind(s.get(), reinterpret_cast<sockaddr*>(&v4), sizeof v4)
                          : ::bind(s.get(), reinterpret_cast<sockaddr*>(&v6), sizeof v6);
  return bound == 0 || errno != EADDRINUSE;
}

/// Throws where another program has the port of a server, which would answer in its stead.
void require_free(const cluster_settings& s, const std::string& name, std::uint16_t port) {
  const auto patience = steady_clock::now() + 2s;  // with one that is just ending
  for (const std::string& a : s.addresses)
    while (!is_free(a, port)) {
      if (steady_clock::now() >= patience)
        throw io_error({EADDRINUSE, std::generic_category()},
                       name + " cannot have " + at_port(a, port) + "; give another --port");
      std::this_thread::sleep_for(10ms);
    }
}

/// The first of as many neighbouring free ports as the servers need, below those that the system
/// gives to connections.
std::uint16_t free_ports(const cluster_settings& s) {
  std::random_device random;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const unsigned port = std::uniform_int_distribution<unsigned>(10'000, 31'000)(random);
    bool free = true;
    for (unsigned i = 0; i <= s.nodes && free; ++i)
      for (const std::string& a : s.addresses)
        free = free && is_free(a, static_cast<std::uint16_t>(port + i));
    if (free) return static_cast<std::uint16_t>(port);
  }
  throw io_error({EADDRINUSE, std::generic_category()},
                 "no " + std::to_string(s.nodes + 1) + " neighbouring ports are free");
}

cluster_settings read_settings(std::istream& in) {
  const auto j = nlohmann::json::parse(in);
  cluster_settings s;
  s.nodes = j.at("nodes");
  s.port = j.at("port");
  s.addresses = j.at("addresses");
  s.key = j.at("key");
  s.encrypt = j.value("encrypt", true);
  s.direct_io = j.value("direct_io", false);
  s.iod_memory = j.value("iod_memory", 0u);
  if (s.nodes == 0 || s.addresses.empty()) throw std::runtime_error("no nodes or no addresses");
  return s;
}

void add_common(const cluster_settings& s, unsigned port, std::vector<std::string>& words) {
  for (const std::string& a : s.addresses) {
    words.push_back("--listen");
    words.push_back(at_port(a, port));
  }
  if (!s.encrypt) words.insert(words.end(), {"--encrypt", "off"});
  if (s.key.empty()) return;
  words.push_back("--key");
  words.push_back(s.key);
}

}  // namespace

std::vector<std::string> metad_arguments(const cluster_settings& s, const fs::path& folder) {
  std::vector<std::string> words{"--folder", folder.string(), "--nodes", std::to_string(s.nodes)};
  add_common(s, s.port, words);
  return words;
}

std::vector<std::string> iod_arguments(const cluster_settings& s, unsigned node,
                                       const fs::path& folder) {
  std::vector<std::string> words{"--folder", folder.string(),
                                 "--node",   std::to_string(node),
                                 "--metad",  at_port(s.addresses.front(), s.port)};
  add_common(s, s.port + 1 + node, words);
  if (s.direct_io) words.push_back("--direct-io");
  if (s.iod_memory != 0) words.insert(words.end(), {"--memory", std::to_string(s.iod_memory)});
  return words;
}

std::string cluster_url(const cluster_settings& s) {
  return "ooc://" + at_port(s.addresses.front(), s.port) + (s.encrypt ? "/" : "/?encrypt=off");
}

local_cluster::local_cluster(const fs::path& dir) : dir_(fs::absolute(dir)) {
  std::error_code ec;
  fs::create_directories(dir_ / "run", ec);
  if (ec) throw io_error(ec, "'" + dir_.string() + "' cannot be made");
  const fs::path lock = dir_ / "run" / "lock";
  lock_ = file_descriptor(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock_) throw io_error({errno, std::generic_category()}, "'" + lock.string() + "'");
  while (::flock(lock_.get(), LOCK_EX) != 0)
    if (errno != EINTR) throw io_error({errno, std::generic_category()}, "'" + lock.string() + "'");

  std::ifstream in(dir_ / settings_file);
  if (!in) return;
  try {
    recorded_ = read_settings(in);
  } catch (const std::exception& e) {
    damage_ = e.what();
  }
}

bool local_cluster::is_there(const fs::path& dir) {
  std::error_code ec;
  return fs::exists(dir / settings_file, ec);
}

void local_cluster::require_readable() const {
  if (damage_.empty()) return;
  const unsigned nodes = nodes_there();
  throw usage_error(
      errc::corrupt,
      "'" + (dir_ / settings_file).string() + "' is damaged (" + damage_ +
          "); the store itself is not.  Say once more how it was started, with the same port, key and "
          "other options as then: ooc up --dir " +
          dir_.string() + " --nodes " + (nodes == 0 ? "N" : std::to_string(nodes)) + " ...");
}

unsigned local_cluster::nodes_there() const {
  unsigned nodes = 0;
  std::error_code ec;
  while (fs::exists(dir_ / ("iod-" + std::to_string(nodes)), ec)) ++nodes;
  return nodes;
}

/// Written only where it has changed, and durably: servers that have started know the store's data
/// as safe, so what starts them again must be as safe.
void local_cluster::record(const cluster_settings& s) {
  if (recorded_ == s) return;
  const fs::path file = dir_ / settings_file, part = dir_ / "run" / "cluster.json.new";
  storage::write_durably(part, nlohmann::json{{"nodes", s.nodes},
                                              {"port", s.port},
                                              {"addresses", s.addresses},
                                              {"key", s.key},
                                              {"encrypt", s.encrypt},
                                              {"direct_io", s.direct_io},
                                              {"iod_memory", s.iod_memory}}
                                       .dump(2) +
                                   "\n");
  fs::rename(part, file);
  storage::sync_folder(dir_);
  recorded_ = s;
  damage_.clear();
}

std::vector<background_server> local_cluster::servers(unsigned nodes) const {
  std::vector<background_server> all{{dir_, "metad"}};
  for (unsigned i = 0; i < nodes; ++i) all.emplace_back(dir_, "iod-" + std::to_string(i));
  return all;
}

local_cluster::started local_cluster::up(const cluster_settings& wanted,
                                         std::chrono::seconds patience) {
  cluster_settings s = wanted;
  if (recorded_ && recorded_->nodes != s.nodes)
    throw usage_error(errc::invalid_request, "the store in '" + dir_.string() + "' has " +
                                                 std::to_string(recorded_->nodes) + " nodes, not " +
                                                 std::to_string(s.nodes) + ", and keeps as many");
  std::vector<background_server> all = servers(s.nodes);
  const bool any = std::any_of(all.begin(), all.end(), [](const auto& b) { return b.running(); });
  if (any && recorded_) s = *recorded_;  // where the running ones are
  if (s.port == 0) s.port = free_ports(s);
  if (s.port + s.nodes > 65535)
    throw usage_error(errc::invalid_request, "port " + std::to_string(s.port) + " and the " +
                                                 std::to_string(s.nodes) +
                                                 " that follow it pass 65535");
  const fs::path metad = find_program("ooc-metad"), iod = find_program("ooc-iod");
  record(s);

  std::vector<background_server> mine;
  const auto start_missing = [&] {
    for (unsigned i = 0; i <= s.nodes; ++i) {
      background_server& b = all[i];
      if (b.running()) continue;
      if (std::any_of(mine.begin(), mine.end(),
                      [&](const background_server& m) { return m.name() == b.name(); }))
        b.fail_ended();
      require_free(s, b.name(), static_cast<std::uint16_t>(s.port + i));
      b.start(i == 0 ? metad : iod,
              i == 0 ? metad_arguments(s, b.folder()) : iod_arguments(s, i - 1, b.folder()));
      mine.push_back(b);
    }
  };
  try {
    wait_until_serving(s, start_missing, steady_clock::now() + patience);
  } catch (...) {
    for (const background_server& b : mine) (void)b.ask_to_stop();
    for (const background_server& b : mine) b.wait_stopped(steady_clock::now() + 10s);
    throw;
  }
  return {static_cast<unsigned>(mine.size()), cluster_url(s)};
}

void local_cluster::wait_until_serving(const cluster_settings& s,
                                       const std::function<void()>& start_missing,
                                       steady_clock::time_point deadline) const {
  asker who = asker::with_key(s.key, s.encrypt);
  who.patience = 1s;
  const std::string metadata = at_port(s.addresses.front(), s.port);
  for (auto pause = 5ms;; pause = std::min<std::chrono::milliseconds>(pause * 2, 100ms)) {
    // Also one that has ended since the last look: who was killed a moment ago still runs at first.
    start_missing();
    std::string missing;
    for (const pulse& p : ping_all(metadata, who))
      if (!p.up && missing.empty()) missing = p.name + " " + p.address + ": " + p.why;
    if (missing.empty()) return;
    if (steady_clock::now() >= deadline)
      throw io_error({ETIMEDOUT, std::generic_category()},
                     "the servers have not come up: " + missing + "; the logs are in '" +
                         (dir_ / "log").string() + "'");
    std::this_thread::sleep_for(pause);
  }
}

std::vector<std::string> local_cluster::down(std::chrono::seconds patience) {
  if (!recorded_ && damage_.empty())
    throw usage_error(errc::not_a_store,
                      "'" + dir_.string() + "' holds no servers; it is the --dir of `ooc up`");
  const std::vector<background_server> all = servers(recorded_ ? recorded_->nodes : nodes_there());
  std::vector<std::string> lines;
  std::vector<const background_server*> asked;
  for (const background_server& b : all) {
    const auto pid = b.running();
    if (b.ask_to_stop()) {
      asked.push_back(&b);
      lines.push_back(b.name() + " (process " + std::to_string(*pid) + ") stopped");
    } else {
      lines.push_back(b.name() + " was not running");
    }
  }
  const auto deadline = steady_clock::now() + patience;
  for (const background_server* b : asked) b->wait_stopped(deadline);
  return lines;
}

}  // namespace ooc::cluster
