#include "cluster/launcher.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "oocarray/error.hpp"

namespace ooc::cluster {

std::string shell_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& w : words) {
    if (!line.empty()) line += ' ';
    line += '\'';
    for (const char c : w) line += c == '\'' ? "'\\''" : std::string(1, c);
    line += '\'';
  }
  return line;
}

std::vector<std::string> launcher::command(const std::string& host, const std::vector<std::string>& words) const {
  if (kind_ == "srun") {
    std::vector<std::string> all{"srun", "--nodelist=" + host, "--nodes=1", "--ntasks=1", "--overlap"};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  if (kind_ == "ssh") return {"ssh", "-o", "BatchMode=yes", host, shell_words(words)};
  return {kind_, host, shell_words(words)};
}

std::string launcher::run(const std::string& host, const std::vector<std::string>& words) const {
  const auto fail = [&](int error, const std::string& what) {
    throw io_error({error, std::generic_category()}, "host " + host + ": " + what);
  };
  const std::string line = shell_words(command(host, words)) + " 2>&1 < /dev/null";
  std::FILE* const pipe = ::popen(line.c_str(), "re");
  if (!pipe) fail(errno, "'" + kind_ + "' cannot be run");
  std::string text;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  const int status = ::pclose(pipe);
  while (text.ends_with('\n')) text.pop_back();
  if (status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    fail(EIO, kind_ + " ended with status " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : status) + ": " +
                  (text.empty() ? "it printed nothing" : text));
  }
  return text;
}

}  // namespace ooc::cluster
