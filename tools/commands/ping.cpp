#include <algorithm>
#include <cstdio>
#include <iostream>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "cluster/server_queries.hpp"

namespace ooc::tool {

namespace {

int run_ping(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.key_option();
  line.option()("json", "for programs");
  line.positional("URL");
  if (!line.parse(arguments)) return success;
  const std::string url = line.store_url("URL");
  const std::string metadata = cluster::metadata_address(url);
  const auto who = cluster::asker::of(url, line.text_or("key", ""));
  const auto all = cluster::ping_all(metadata, who);
  const bool up = std::all_of(all.begin(), all.end(), [](const auto& p) { return p.up; });

  if (line.has("json")) {
    nlohmann::json servers = nlohmann::json::array();
    for (const cluster::pulse& p : all) {
      nlohmann::json j{{"server", p.name}, {"address", p.address}, {"up", p.up}};
      if (p.up) {
        j["round_trip_us"] = p.round_trip_us;
        j["incarnation"] = p.incarnation;
        j["version"] = p.version;
      } else {
        j["why"] = p.why;
      }
      servers.push_back(std::move(j));
    }
    print({{"up", up}, {"servers", servers}});
    return up ? success : failed;
  }
  for (const cluster::pulse& p : all) {
    char text[96] = "";
    if (p.up)
      std::snprintf(text, sizeof text, "up  %.0f us, incarnation %016llx, version ", p.round_trip_us,
                    static_cast<unsigned long long>(p.incarnation));
    std::cout << p.name << "  " << (p.address.empty() ? "" : p.address + "  ")
              << (p.up ? text + p.version : "down: " + p.why) << "\n";
  }
  return up ? success : failed;
}

}  // namespace

const command ping{"ping", "ping [options] [URL]",
                   "Asks every server of a store for a sign of life; status 1 if one is down.", run_ping};

}  // namespace ooc::tool
