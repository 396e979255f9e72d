#include "cluster/host_file.hpp"

#include <cerrno>
#include <fstream>
#include <sstream>

#include "oocarray/error.hpp"
#include "storage/wire/address.hpp"

namespace ooc::cluster {

namespace {

constexpr unsigned first_port = 7420;

}  // namespace

std::vector<host_server> read_host_file(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw io_error({errno, std::generic_category()}, "the host file '" + file.string() + "' cannot be read");
  std::vector<host_server> metad, iods;
  unsigned number = 0;
  const auto refuse = [&](const std::string& why) {
    throw usage_error(errc::invalid_request,
                      "host file '" + file.string() + "', line " + std::to_string(number) + ": " + why);
  };
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    host_server s;
    std::string role;
    if (!(words >> s.host)) continue;
    if (!(words >> role >> s.folder)) refuse("write HOST ROLE FOLDER [ADDRESS...]");
    if (role != "metad" && role != "iod") refuse("role '" + role + "' is neither metad nor iod");
    if (s.host.starts_with('-')) refuse("'" + s.host + "' is not the name of a host");
    if (!s.folder.starts_with('/')) refuse("the folder '" + s.folder + "' is not absolute");
    const bool io = role == "iod";
    const std::string port = std::to_string(first_port + (io ? 1 + iods.size() : 0));
    for (std::string a; words >> a;) {
      try {
        s.addresses.push_back(wire::parse_address(a, port).text());
      } catch (const usage_error& e) {
        refuse(e.what());
      }
    }
    if (s.addresses.empty()) s.addresses.push_back(wire::server_address{s.host, port, {}}.text());
    s.name = io ? "iod-" + std::to_string(iods.size()) : role;
    (io ? iods : metad).push_back(std::move(s));
  }
  if (metad.size() != 1) refuse("there are " + std::to_string(metad.size()) + " lines with the role metad; give one");
  if (iods.empty()) refuse("there is no line with the role iod");
  metad.insert(metad.end(), iods.begin(), iods.end());
  return metad;
}

}  // namespace ooc::cluster
