// Command lines as a user gives them, and files as he looks at them.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace ooc::testing {

namespace fs = std::filesystem;

struct outcome {
  int status = -1;
  std::string out, err;
};

inline std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

/// Runs a command line; its output passes through files that begin with `files`.
inline outcome run_command(const std::string& line, const std::string& files) {
  const std::string out = files + ".stdout", err = files + ".stderr";
  const int status = std::system((line + " > " + out + " 2> " + err).c_str());
  outcome o{WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(err)};
  fs::remove(out);
  fs::remove(err);
  return o;
}

}  // namespace ooc::testing
