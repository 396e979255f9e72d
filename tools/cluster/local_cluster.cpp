#include "cluster/local_cluster.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "cluster/find_program.hpp"
#include "cluster/folder_identity.hpp"
#include "cluster/ports.hpp"
#include "cluster/server_queries.hpp"
#include "oocarray/error.hpp"
#include "storage/base/durable_file.hpp"

namespace ooc::cluster {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using storage::file_descriptor;

namespace {

constexpr const char* settings_file = "cluster.json";

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

/// The store that a server's folder belongs to, as the file `identity` says; empty: none yet.
std::string store_of(const fs::path& identity) {
  std::ifstream in(identity);
  return store_in(in);
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

std::vector<std::string> iod_arguments(const cluster_settings& s, unsigned node, const fs::path& folder) {
  std::vector<std::string> words{"--folder",           folder.string(), "--node",
                                 std::to_string(node), "--metad",       at_port(s.addresses.front(), s.port)};
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
  throw usage_error(errc::corrupt,
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

/// A new name space would not know the files whose data lie beside it.
void local_cluster::require_metadata(unsigned nodes) const {
  std::error_code ec;
  if (fs::exists(dir_ / "metad" / metad_identity, ec)) return;
  for (unsigned i = 0; i < nodes; ++i) {
    const std::string name = "iod-" + std::to_string(i), store = store_of(dir_ / name / iod_identity);
    if (!store.empty())
      throw usage_error(errc::not_a_store,
                        "'" + (dir_ / "metad").string() + "' is missing or empty, but " + name + " belongs to store " +
                            store +
                            ": put metad/ back (is its disk mounted?), from a copy if it is lost, or give "
                            "another --dir to make a new store");
  }
}

/// One up(): what it has started, and which I/O servers it has given up.
class bringing_up {
 public:
  bringing_up(const local_cluster& c, const cluster_settings& s, std::optional<unsigned> forget)
      : dir_(c.dir_),
        settings_(s),
        forget_(forget),
        all_(c.servers(s.nodes)),
        metad_(find_program("ooc-metad")),
        iod_(find_program("ooc-iod")),
        who_(asker::with_key(s.key, s.encrypt)),
        new_(!fs::exists(dir_ / "metad" / metad_identity)),
        given_up_(s.nodes + 1),
        retired_(s.nodes + 1) {
    who_.patience = 1s;
  }

  local_cluster::started run(steady_clock::time_point deadline) {
    if ((forget_ || knows_fewer_nodes()) && all_[0].ask_to_stop()) all_[0].wait_stopped(steady_clock::now() + 60s);
    try {
      wait(deadline, [&] { return metadata_answers(); });
      leave_out_missing_folders();
      wait(deadline, [&] { return all_answer(); });
      require_some();
    } catch (...) {
      for (const background_server& b : mine_) (void)b.ask_to_stop();
      for (const background_server& b : mine_) b.wait_stopped(steady_clock::now() + 10s);
      throw;
    }
    local_cluster::started done{0, cluster_url(settings_), {}};
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (!given_up_[i].empty())
        done.missing.push_back(given_up_[i]);
      else if (is_mine(i))
        done.servers += 1;
    }
    return done;
  }

 private:
  std::string address() const { return at_port(settings_.addresses.front(), settings_.port); }

  /// The reason why the folder of a node that the store has cannot be the node's; empty: it may be the node's own.
  std::string not_there(unsigned node) const {
    const fs::path identity = all_[node + 1].folder() / iod_identity;
    std::error_code ec;
    if (!fs::exists(identity, ec)) return "is missing, empty or cannot be read";
    const std::string its = store_of(identity), ours = store_of(dir_ / "metad" / metad_identity);
    return its.empty() || its == ours ? "" : "belongs to store " + its + ", not to this one, " + ours;
  }

  /// Looks again and again.  At the deadline those that do not answer are given up.
  template <class Done>
  void wait(steady_clock::time_point deadline, const Done& done) {
    for (auto pause = 5ms;; pause = std::min<std::chrono::milliseconds>(pause * 2, 100ms)) {
      if (done()) return;
      if (steady_clock::now() >= deadline) break;
      std::this_thread::sleep_for(pause);
    }
    for (std::size_t i = 0; i < trouble_.size(); ++i)
      if (given_up_[i].empty() && !trouble_[i].empty())
        give_up(i, {ETIMEDOUT, std::generic_category()},
                "the servers have not come up: " + trouble_[i] + "; " + all_[i].log_end() + "; the logs are in '" +
                    (dir_ / "log").string() + "'");
  }

  /// The metadata server that runs has been started before the store was to get further ones.
  bool knows_fewer_nodes() const {
    if (!all_[0].running()) return false;
    try {
      return ask_cluster(address(), who_).nodes.size() < settings_.nodes;
    } catch (const error&) {
      return false;  // it is looked at when it answers
    }
  }

  bool metadata_answers() {
    start(0);
    const pulse p = ping_metadata(address(), who_);
    trouble_.assign(1, p.up ? "" : p.name + " " + p.address + ": " + p.why);
    return p.up;
  }

  /// Their disks may not be mounted, so no server makes new folders in their place.
  void leave_out_missing_folders() {
    const storage::cluster_info known = ask_cluster(address(), who_);
    for (unsigned i = 0; i < settings_.nodes && i < known.nodes.size(); ++i) {
      if (known.nodes[i].retired) retired_[i + 1] = true;
      if (known.nodes[i].retired) continue;
      const background_server& b = all_[i + 1];
      const std::string wrong = not_there(i), n = std::to_string(i);
      if (known.nodes[i].uuid.empty() || b.running() || wrong.empty()) continue;
      given_up_[i + 1] = b.name() + ": folder '" + b.folder().string() + "' " + wrong + ", and node " + n +
                         " has its part of the store there: mount its disk or put the folder back, and call `ooc up` "
                         "again; if it is lost, `ooc up --forget-node " +
                         n + "` goes on with an empty one";
    }
  }

  bool all_answer() {
    // Also those that have ended since the last look: who was killed a moment ago still runs at first.
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (given_up_[i].empty() && !retired_[i]) start(i);
    trouble_.assign(all_.size(), "");
    bool all_up = true;
    for (const pulse& p : ping_all(address(), who_)) {
      const std::size_t i = p.name == "metad" ? 0 : std::stoul(p.name.substr(4)) + 1;
      if (p.up || i >= all_.size() || !given_up_[i].empty()) continue;
      // The metadata server may speak of the folder that was there before; then the server that runs now has not been
      // told so.
      if (p.refused && all_[i].has_said(p.why)) {
        give_up(i, make_error_code(errc::not_a_store), all_[i].name() + ": " + p.why);
      } else {
        trouble_[i] = p.name + " " + p.address + ": " + p.why;
        all_up = false;
      }
    }
    return all_up;
  }

  bool is_mine(std::size_t i) const {
    return std::any_of(mine_.begin(), mine_.end(), [&](const auto& m) { return m.name() == all_[i].name(); });
  }

  void start(std::size_t i) {
    background_server& b = all_[i];
    if (b.running()) return;
    if (is_mine(i)) {
      give_up(i, {EIO, std::generic_category()}, b.ended());
      return;
    }
    try {
      require_free(settings_.addresses, b.name(), static_cast<std::uint16_t>(settings_.port + i));
      b.start(i == 0 ? metad_ : iod_, arguments(i));
      mine_.push_back(b);
    } catch (const error& e) {
      if (is_needed(i)) throw;
      given_up_[i] = e.what();
    }
  }

  std::vector<std::string> arguments(std::size_t i) const {
    const background_server& b = all_[i];
    auto words = i == 0 ? metad_arguments(settings_, b.folder())
                        : iod_arguments(settings_, static_cast<unsigned>(i - 1), b.folder());
    if (i == 0) {
      if (forget_) words.insert(words.end(), {"--forget-node", std::to_string(*forget_)});
      for (unsigned n = 0; n < settings_.nodes; ++n)
        if (!new_ && n != forget_ && !not_there(n).empty())
          words.insert(words.end(), {"--missing-node", std::to_string(n)});
    }
    return words;
  }

  /// Nothing works without the metadata server, and a new store begins with all its nodes.
  bool is_needed(std::size_t i) const { return i == 0 || new_; }

  void give_up(std::size_t i, std::error_code code, const std::string& why) {
    if (is_needed(i)) throw io_error(code, why);
    given_up_[i] = why;
  }

  void require_some() const {
    for (std::size_t i = 1; i < given_up_.size(); ++i)
      if (given_up_[i].empty() && !retired_[i]) return;
    std::string text = "no I/O server has come up: " + given_up_[1];
    if (given_up_.size() > 2) text += "; " + std::to_string(given_up_.size() - 2) + " more";
    throw io_error({ENXIO, std::generic_category()}, text);
  }

  const fs::path dir_;
  const cluster_settings settings_;
  const std::optional<unsigned> forget_;
  std::vector<background_server> all_;  // the metadata server, then I/O server i at i + 1
  const fs::path metad_, iod_;
  asker who_;
  const bool new_;  // the store was not there before
  std::vector<background_server> mine_;
  std::vector<std::string> given_up_;  // why, as in all_; empty: it is not
  std::vector<bool> retired_;          // as in all_: no file has anything there
  std::vector<std::string> trouble_;   // of the last look
};

local_cluster::started local_cluster::up(const cluster_settings& wanted, std::chrono::seconds patience,
                                         std::optional<unsigned> forget) {
  cluster_settings s = wanted;
  if (recorded_ && s.nodes < recorded_->nodes)
    throw usage_error(errc::invalid_request,
                      "the store in '" + dir_.string() + "' has " + std::to_string(recorded_->nodes) + " nodes, not " +
                          std::to_string(s.nodes) + ": `ooc drain` empties those that are to go");
  if (forget && *forget >= s.nodes)
    throw usage_error(errc::invalid_request, "--forget-node " + std::to_string(*forget) +
                                                 ": the store has nodes 0 to " + std::to_string(s.nodes - 1));
  require_metadata(s.nodes);
  const std::vector<background_server> all = servers(s.nodes);
  const bool any = std::any_of(all.begin(), all.end(), [](const auto& b) { return b.running(); });
  if (any && recorded_) {  // where the running ones are
    s = *recorded_;
    s.nodes = wanted.nodes;
  }
  if (s.port == 0) s.port = free_ports(s.addresses, s.nodes + 1);
  if (s.port + s.nodes > 65535)
    throw usage_error(errc::invalid_request, "port " + std::to_string(s.port) + " and the " + std::to_string(s.nodes) +
                                                 " that follow it pass 65535");
  bringing_up work(*this, s, forget);
  // Before anything is stopped or recorded: a node that cannot be served would be missing from then on.
  for (unsigned n = recorded_ ? recorded_->nodes : s.nodes; n < s.nodes; ++n)
    if (const background_server& b = all[n + 1]; !b.running())
      require_free(s.addresses, b.name(), static_cast<std::uint16_t>(s.port + 1 + n));
  record(s);
  return work.run(steady_clock::now() + patience);
}

std::vector<std::string> local_cluster::down(std::chrono::seconds patience) {
  if (!recorded_ && damage_.empty())
    throw usage_error(errc::not_a_store, "'" + dir_.string() + "' holds no servers; it is the --dir of `ooc up`");
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
