// How commands get to other hosts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ooc::cluster {

/// One command for a shell, every word quoted.
std::string shell_words(const std::vector<std::string>& words);

class launcher {
 public:
  /// "ssh", "srun", or a program that is called like ssh: PROGRAM HOST COMMAND, where COMMAND is
  /// one word for a shell.
  explicit launcher(std::string kind) : kind_(std::move(kind)) {}

  /// Under Slurm a server lives as long as the step it belongs to, so its srun stays with it: it
  /// runs in the background here, instead of the server there.
  bool holds_servers() const noexcept { return kind_ == "srun"; }
  /// The words that run `words` on `host`.
  std::vector<std::string> command(const std::string& host, const std::vector<std::string>& words) const;
  /// Runs them, waits, and returns what they print.  Throws io_error with host and output where the
  /// status is not 0.
  std::string run(const std::string& host, const std::vector<std::string>& words) const;

 private:
  std::string kind_;
};

}  // namespace ooc::cluster
