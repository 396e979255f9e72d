#include "cluster/host_cluster.hpp"

#include <algorithm>
#include <map>
#include <sstream>
#include <thread>

#include "cluster/background_server.hpp"
#include "cluster/find_program.hpp"
#include "cluster/folder_identity.hpp"
#include "cluster/server_queries.hpp"
#include "oocarray/error.hpp"

namespace ooc::cluster {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

constexpr std::string_view already = "is running already";  // what `ooc start` says
constexpr auto look_pause = 1s;
constexpr auto settling = 2s;  // until then, a refusal may be of the folder that was there before

const char* program_of(const host_server& s) { return s.name == "metad" ? "ooc-metad" : "ooc-iod"; }

/// Of an I/O server: "iod-3" is "iod 3" there.
std::string pulse_name(const host_server& s) { return "iod " + s.name.substr(4); }

}  // namespace

host_cluster::host_cluster(std::vector<host_server> servers, host_options options)
    : servers_(std::move(servers)), options_(std::move(options)) {
  if (options_.how.holds_servers() && options_.dir.empty())
    throw usage_error(errc::invalid_request,
                      "with srun, --dir must name a folder of this machine for logs and process ids");
}

std::string host_cluster::url() const {
  return "ooc://" + servers_.front().addresses.front() + (options_.encrypt ? "/" : "/?encrypt=off");
}

std::vector<std::string> host_cluster::arguments(const host_server& s) const {
  std::vector<std::string> words{"--folder", s.folder + "/" + s.name};
  if (s.name == "metad")
    words.insert(words.end(), {"--nodes", std::to_string(servers_.size() - 1)});
  else
    words.insert(words.end(), {"--node", s.name.substr(4), "--metad", servers_.front().addresses.front()});
  if (s.name != "metad" && options_.direct_io) words.push_back("--direct-io");
  if (s.name != "metad" && options_.iod_memory != 0)
    words.insert(words.end(), {"--memory", std::to_string(options_.iod_memory)});
  for (const std::string& a : s.addresses) words.insert(words.end(), {"--listen", a});
  if (!options_.key.empty()) words.insert(words.end(), {"--key", options_.key});
  if (!options_.encrypt) words.insert(words.end(), {"--encrypt", "off"});
  return words;
}

std::string host_cluster::start(const host_server& s, const std::vector<std::string>& more) const {
  auto all = arguments(s);
  all.insert(all.end(), more.begin(), more.end());
  std::vector<std::string> words;
  if (!options_.how.holds_servers()) {
    words = {options_.ooc, "start", "--dir", s.folder, s.name, "--"};
    words.insert(words.end(), all.begin(), all.end());
    return options_.how.run(s.host, words);
  }
  background_server b(options_.dir, s.name);
  if (b.running()) return s.name + " " + std::string(already);
  words.push_back(program_of(s));
  words.insert(words.end(), all.begin(), all.end());
  words = options_.how.command(s.host, words);
  const auto program = find_program(words.front());
  words.erase(words.begin());
  b.start(program, words);
  return s.name + " started";
}

std::string host_cluster::stop(const host_server& s, std::chrono::seconds patience) const {
  if (!options_.how.holds_servers())
    return options_.how.run(
        s.host, {options_.ooc, "stop", "--dir", s.folder, "--wait", std::to_string(patience.count()), s.name});
  const background_server b(options_.dir, s.name);
  const bool ran = b.ask_to_stop();
  if (ran) b.wait_stopped(steady_clock::now() + patience);
  return s.name + (ran ? " stopped" : " was not running");
}

/// The metadata server that runs was started before the store got the last ones of these servers.
bool host_cluster::knows_fewer_nodes() const {
  asker who = asker::with_key(options_.key, options_.encrypt);
  who.patience = 1s;
  try {
    return ask_cluster(servers_.front().addresses.front(), who).nodes.size() < servers_.size() - 1;
  } catch (const error&) {
    return false;  // it does not run
  }
}

/// Before the metadata server is stopped: it would not start again, on a host of several, without the key that it has.
void host_cluster::require_key() const {
  asker who = asker::with_key(options_.key, options_.encrypt);
  if (!options_.key.empty()) return;
  who.patience = 1s;
  try {
    (void)ask_cluster(servers_.front().addresses.front(), who);
    if (!who.client.key) return;
  } catch (const error& e) {
    // It does not run, or has no key.
    if (who.client.key || e.code() != std::errc::permission_denied) return;
  }
  throw usage_error(
      errc::invalid_request,
      "the metadata server must be started anew, and runs with a cluster key: give --key FILE, as when it "
      "was started first");
}

std::string host_cluster::store_of(const host_server& s) const {
  const std::string identity = s.folder + "/" + s.name + "/" + (s.name == "metad" ? metad_identity : iod_identity);
  std::istringstream text(options_.how.run(s.host, {"sh", "-c", "cat \"$0\" 2>/dev/null || true", identity}));
  return store_in(text);
}

/// A new name space would not know the files whose data lie on the other hosts.
bool host_cluster::makes_new_store() const {
  const host_server& metad = servers_.front();
  if (!store_of(metad).empty()) return false;
  for (const host_server& s : servers_) {
    if (&s == &metad) continue;
    if (const std::string store = store_of(s); !store.empty())
      throw usage_error(errc::not_a_store,
                        metad.host + ": folder '" + metad.folder + "/metad' is missing or empty, but " + s.name +
                            " on " + s.host + " belongs to store " + store +
                            ": put it back (is its disk mounted?), from a copy if it is lost, or name other folders "
                            "in the host file to make a new store");
  }
  return true;
}

std::set<std::string> host_cluster::retired(std::chrono::seconds patience) const {
  asker who = asker::with_key(options_.key, options_.encrypt);
  who.patience = 1s;
  std::set<std::string> names;
  for (const auto deadline = steady_clock::now() + patience;;) {
    try {
      const auto nodes = ask_cluster(servers_.front().addresses.front(), who).nodes;
      for (std::size_t i = 0; i < nodes.size(); ++i)
        if (nodes[i].retired) names.insert("iod-" + std::to_string(i));
      return names;
    } catch (const error&) {
      if (steady_clock::now() >= deadline) return names;  // it is looked for again when all are started
    }
    std::this_thread::sleep_for(10ms);
  }
}

struct host_cluster::attempt {
  started done;
  bool is_new = false;                             ///< the store begins with all its nodes
  std::map<std::string, std::string> not_started;  ///< why, of I/O servers by the names of their pulses
  std::vector<const host_server*> running;         ///< when they were to be started
};

/// Not "started" of one that the metadata server refuses, or that has ended since.
void host_cluster::say_what_serves(const std::vector<pulse>& pulses, started& done) const {
  for (std::size_t i = 1; i < servers_.size(); ++i) {
    bool asked = false, up = false;
    for (const pulse& p : pulses) {
      if (p.name != pulse_name(servers_[i])) continue;
      asked = true;
      up = up || p.up;
    }
    if (asked && !up) done.lines[i] = servers_[i].host + ": " + servers_[i].name + " does not serve";
  }
}

/// start(); of an I/O server that the others do without, what it throws.
std::string host_cluster::start_if_it_can_be(const host_server& s, const std::vector<std::string>& more,
                                             attempt& a) const {
  try {
    return start(s, more);
  } catch (const error& e) {
    if (a.is_new || &s == &servers_.front()) throw;
    return a.not_started[pulse_name(s)] = s.name + ": " + e.what();
  }
}

host_cluster::attempt host_cluster::start_all(std::chrono::seconds patience, std::optional<unsigned> forget) const {
  attempt a;
  a.is_new = makes_new_store();
  if (forget || knows_fewer_nodes()) {
    require_key();
    (void)stop(servers_.front(), patience);
  }
  std::set<std::string> not_needed;
  for (const host_server& s : servers_) {
    if (not_needed.contains(s.name)) {
      a.done.lines.push_back(s.host + ": " + s.name + " is retired");
      continue;
    }
    std::vector<std::string> more;
    if (forget && &s == &servers_.front()) more = {"--forget-node", std::to_string(*forget)};
    a.done.lines.push_back(s.host + ": " + start_if_it_can_be(s, more, a));
    if (a.done.lines.back().ends_with(already)) a.running.push_back(&s);
    if (&s == &servers_.front()) not_needed = retired(std::min(patience, 5s));
  }
  return a;
}

host_cluster::started host_cluster::up(std::chrono::seconds patience, std::optional<unsigned> forget) {
  if (forget && *forget + 1 >= servers_.size())
    throw usage_error(errc::invalid_request, "--forget-node " + std::to_string(*forget) +
                                                 ": the store has nodes 0 to " + std::to_string(servers_.size() - 2));
  const auto deadline = steady_clock::now() + patience;
  attempt a = start_all(patience, forget);
  auto look_again = steady_clock::now() + look_pause;
  const auto settled = steady_clock::now() + settling;
  asker who = asker::with_key(options_.key, options_.encrypt);
  for (;;) {
    const std::vector<pulse> all = ping_all(servers_.front().addresses.front(), who);
    const bool late = steady_clock::now() >= deadline;
    std::string missing;
    bool any = false;
    a.done.missing.clear();
    for (const pulse& p : all) {
      any = any || (p.up && p.name != "metad");
      if (p.up) continue;
      const auto why = a.not_started.find(p.name);
      const bool given_up = why != a.not_started.end() || (p.refused && steady_clock::now() >= settled);
      const std::string text = why != a.not_started.end() ? why->second : p.name + " " + p.address + ": " + p.why;
      if ((given_up || late) && std::ranges::find(a.done.missing, text) == a.done.missing.end())
        a.done.missing.push_back(text);
      if (!given_up && missing.empty()) missing = text;
    }
    if (missing.empty() || (late && any)) {
      say_what_serves(all, a.done);
      return a.done;
    }
    if (late)
      throw io_error::in_full(
          {ETIMEDOUT, std::generic_category()},
          "the servers have not come up: " + missing + "; the logs are in the `log` folders beside their own");
    std::this_thread::sleep_for(100ms);
    if (steady_clock::now() < look_again) continue;
    // A server that was killed a moment ago still ran.
    std::erase_if(a.running, [&](const host_server* s) { return !start_if_it_can_be(*s, {}, a).ends_with(already); });
    look_again = steady_clock::now() + look_pause;
  }
}

host_cluster::stopped host_cluster::down(std::chrono::seconds patience) {
  stopped done;
  const std::set<std::string> gone = retired(0s);
  for (auto s = servers_.rbegin(); s != servers_.rend(); ++s) {
    try {
      done.lines.push_back(s->host + ": " + stop(*s, patience));
    } catch (const error& e) {
      if (gone.contains(s->name))
        done.lines.push_back(s->host + ": " + s->name + " is retired, and was not reached");
      else
        done.failed.push_back(s->name + ": " + e.what());
    }
  }
  return done;
}

}  // namespace ooc::cluster
