#include "cluster/find_program.hpp"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "oocarray/error.hpp"

namespace ooc::cluster {

namespace fs = std::filesystem;

fs::path find_program(const std::string& name) {
  std::error_code ec;
  const fs::path here = fs::read_symlink("/proc/self/exe", ec).parent_path();
  const auto usable = [](const fs::path& p) {
    std::error_code ignored;
    return fs::is_regular_file(p, ignored) && ::access(p.c_str(), X_OK) == 0;
  };
  if (!here.empty())
    for (const char* folder : {".", "../libexec/oocarray", "../bin", "../servers", "../tools"})
      if (const fs::path p = (here / folder / name).lexically_normal(); usable(p)) return p;
  if (const char* path = std::getenv("PATH")) {
    std::istringstream folders(path);
    for (std::string folder; std::getline(folders, folder, ':');)
      if (const fs::path p = fs::path(folder.empty() ? "." : folder) / name; usable(p)) return fs::absolute(p);
  }
  throw usage_error(errc::invalid_request, "the program '" + name + "' is neither beside '" + here.string() +
                                               "' nor in PATH; install the servers, or add their folder to PATH");
}

}  // namespace ooc::cluster
