#include <cstdio>
#include <iostream>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "commands/disks.hpp"
#include "oocarray/error.hpp"
#include "progress/progress.hpp"

namespace ooc::tool {

namespace {

void print_row(const std::string& what, std::uint64_t bytes, std::uint64_t free, const std::string& name) {
  char text[160];
  std::snprintf(text, sizeof text, "%-6s %10s %10s %4.0f %%  ", what.c_str(),
                human_bytes(static_cast<double>(bytes)).c_str(), human_bytes(static_cast<double>(free)).c_str(),
                bytes == 0 ? 0 : 100.0 * (1.0 - static_cast<double>(free) / static_cast<double>(bytes)));
  std::cout << text << name << "\n";
}

int run_df(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.key_option();
  line.option()("json", "for programs");
  line.positional("URL");
  if (!line.parse(arguments)) return success;
  const std::string url = line.store_url("URL");
  const auto all =
      url.starts_with("ooc:") ? served_disks(url, line.text_or("key", "")) : own_disks(line.open_store_of("URL"));
  const auto [bytes, free, complete] = sum_of(all);
  if (line.has("json")) {
    nlohmann::json nodes = nlohmann::json::array();
    for (const disk& d : all) {
      nlohmann::json j{{"name", d.name}};
      if (d.why.empty()) {
        j["disk_bytes"] = d.bytes;
        j["available_bytes"] = d.free;
      } else {
        j["why"] = d.why;
      }
      nodes.push_back(std::move(j));
    }
    print({{"nodes", nodes}, {"disk_bytes", bytes}, {"available_bytes", free}});
    return complete ? success : failed;
  }
  std::cout << "node         size       free   used\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].why.empty())
      print_row(std::to_string(i), all[i].bytes, all[i].free, all[i].name);
    else
      std::cout << i << "      " << all[i].name << "  " << all[i].why << "\n";
  }
  print_row("total", bytes, free, complete ? "" : "without the nodes that do not answer");
  return complete ? success : failed;
}

}  // namespace

const command df{"df", "df [options] [URL]",
                 "Tells the size of every node's disk and what is free; the total counts a shared disk once.", run_df};

}  // namespace ooc::tool
