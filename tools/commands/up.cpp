#include <charconv>
#include <iostream>
#include <optional>
#include <sstream>

#include "base/command.hpp"
#include "cluster/host_cluster.hpp"
#include "cluster/local_cluster.hpp"

namespace ooc::tool {

namespace {

constexpr unsigned most_nodes = 1024;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

bool encrypts(const command_line& line) {
  const std::string text = line.text_or("encrypt", "on");
  if (text != "on" && text != "off") throw usage_mistake("--encrypt: give on or off");
  return text == "on";
}

/// The value of --nodes: N of a new store, or +N more for one that is there, which has `now`.
unsigned nodes_wanted(const std::string& text, std::optional<unsigned> now) {
  const bool more = text.starts_with('+');
  const char *first = text.data() + more, *end = text.data() + text.size();
  unsigned n = 0;
  if (const auto r = std::from_chars(first, end, n); r.ec != std::errc() || r.ptr != end || n == 0 || n > most_nodes)
    throw usage_mistake("--nodes: give 1 to " + std::to_string(most_nodes) + ", or +N for N more");
  if (more && !now) throw usage_mistake("--nodes " + text + ": there is no store yet that could get more nodes");
  if (!more && now && *now != n)
    throw usage_mistake("the store has " + std::to_string(*now) + " nodes, not " + std::to_string(n) +
                        ": --nodes +N gives it N more, and `ooc drain` empties those that are to go");
  return more ? *now + n : n;
}

cluster::cluster_settings settings(const command_line& line, const cluster::local_cluster& c) {
  cluster::cluster_settings s = c.recorded().value_or(cluster::cluster_settings());
  if (!line.has("nodes")) c.require_readable();
  if (!c.recorded() && !line.has("nodes"))
    throw usage_mistake("--nodes is missing: how many I/O servers is the new store to have?");
  if (line.has("nodes"))
    s.nodes = nodes_wanted(line.text("nodes"), c.recorded() ? std::optional(c.recorded()->nodes) : std::nullopt);
  if (s.nodes > most_nodes) throw usage_mistake("a store has at most " + std::to_string(most_nodes) + " nodes here");
  const std::uint32_t port = line.number("port", s.port);
  if (port > 65535) throw usage_mistake("--port: give 0 to 65535");
  s.port = static_cast<std::uint16_t>(port);
  if (line.has("key")) s.key = std::filesystem::absolute(line.text("key")).string();
  if (line.has("encrypt")) s.encrypt = encrypts(line);
  if (line.has("direct-io")) s.direct_io = true;
  s.iod_memory = line.number("iod-memory", s.iod_memory);
  if (line.has("addresses")) s.addresses = split(line.text("addresses"));
  if (s.addresses.empty()) throw usage_mistake("--addresses: none is given");
  for (const std::string& a : s.addresses)
    if (a.empty()) throw usage_mistake("--addresses: '" + line.text("addresses") + "' has an empty part");
  return s;
}

void add_host_options(command_line& line) {
  line.option()("hosts", po::value<std::string>()->value_name("FILE"),
                "servers on several hosts; a line HOST metad|iod FOLDER [ADDRESS...] for each");
  line.option()("launcher", po::value<std::string>()->value_name("ssh|srun|PROGRAM"),
                "how to get to them, otherwise ssh; a program is called like ssh");
  line.option()("ooc", po::value<std::string>()->value_name("PATH"), "the ooc command on the hosts, otherwise ooc");
}

cluster::host_options host_options(const command_line& line) {
  cluster::host_options o;
  o.how = cluster::launcher(line.text_or("launcher", "ssh"));
  o.ooc = line.text_or("ooc", "ooc");
  if (line.has("key")) o.key = std::filesystem::absolute(line.text("key")).string();
  o.encrypt = !line.has("encrypt") || encrypts(line);
  o.dir = line.text_or("dir", "");
  return o;
}

/// Says on standard error what is wrong with servers, a line for each; the status of the command.
int report(const std::vector<std::string>& wrong) {
  for (const std::string& why : wrong) complain(why);
  return wrong.empty() ? success : failed;
}

int run_up(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("dir,d", po::value<std::string>()->value_name("DIR"),
                "where the store, its logs and process ids lie; made if missing");
  line.option()("nodes,n", po::value<std::string>()->value_name("N|+N"),
                "number of I/O servers of a new store; +N: the store gets N more, and new files lie on them, too");
  line.option()("port,p", po::value<std::uint32_t>()->value_name("PORT"),
                "of the metadata server, otherwise 7420; the I/O servers have those that follow.  "
                "0: free ones");
  line.option()("key", po::value<std::string>()->value_name("FILE"),
                "cluster key (ooc keygen); without one the servers are for this machine only");
  line.option()("encrypt", po::value<std::string>()->value_name("on|off"),
                "off: with a key, peers prove it, but what follows is neither encrypted nor "
                "authenticated: for trusted networks.  Clients say ?encrypt=off, too");
  line.option()("addresses", po::value<std::string>()->value_name("A,B"),
                "to listen at, otherwise 127.0.0.1; with several, clients use all at once");
  line.option()("direct-io", "the I/O servers bypass the page cache: for nodes whose memory the programs need");
  line.option()("iod-memory", po::value<std::uint32_t>()->value_name("MIB"),
                "memory for requests and transfers in each I/O server, otherwise 64 MiB");
  line.option()("wait", po::value<std::uint32_t>()->value_name("SECONDS"),
                "how long to wait until all servers answer, otherwise 30");
  line.option()("forget-node", po::value<std::uint32_t>()->value_name("N"),
                "node N's folder is lost: an empty one takes its place, and what it held of every file is gone");
  add_host_options(line);
  if (!line.parse(arguments)) return success;
  const std::chrono::seconds patience(line.number("wait", 30));
  std::optional<unsigned> forget;
  if (line.has("forget-node")) forget = line.number("forget-node", 0);
  if (line.has("hosts")) {
    cluster::host_options o = host_options(line);
    o.direct_io = line.has("direct-io");
    o.iod_memory = line.number("iod-memory", 0);
    cluster::host_cluster c(cluster::read_host_file(line.text("hosts")), o);
    const auto done = c.up(patience, forget);
    for (const std::string& what : done.lines) std::cout << what << "\n";
    std::cout << c.url() << "\n";
    return report(done.missing);
  }
  if (!line.has("dir")) throw usage_mistake("--dir is missing; usage: ooc " + std::string(self.usage));

  cluster::local_cluster c(line.text("dir"));
  const auto done = c.up(settings(line, c), patience, forget);
  std::cout << (done.servers == 0 ? std::string("already up") : std::to_string(done.servers) + " servers started")
            << "\n"
            << done.url << "\n";
  return report(done.missing);
}

int run_down(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("dir,d", po::value<std::string>()->value_name("DIR"), "that of `ooc up`");
  line.option()("wait", po::value<std::uint32_t>()->value_name("SECONDS"),
                "how long the servers may take, otherwise 60");
  add_host_options(line);
  if (!line.parse(arguments)) return success;
  const std::chrono::seconds patience(line.number("wait", 60));
  if (line.has("hosts")) {
    cluster::host_cluster c(cluster::read_host_file(line.text("hosts")), host_options(line));
    const auto done = c.down(patience);
    for (const std::string& what : done.lines) std::cout << what << "\n";
    return report(done.failed);
  }
  if (!line.has("dir")) throw usage_mistake("--dir is missing; usage: ooc " + std::string(self.usage));
  if (!cluster::local_cluster::is_there(line.text("dir")))
    throw usage_mistake("'" + line.text("dir") + "' holds no servers; --dir is that of `ooc up`");
  cluster::local_cluster c(line.text("dir"));
  for (const std::string& what : c.down(patience)) std::cout << what << "\n";
  return success;
}

}  // namespace

const command up{"up", "up --dir DIR [--nodes N] [options]", "Starts the servers of a store and prints its URL.",
                 run_up};
const command down{"down", "down --dir DIR", "Stops the servers that `ooc up` started; nothing is lost.", run_down};

}  // namespace ooc::tool
