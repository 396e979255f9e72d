// A served store for the time of a benchmark: ooc-metad and its I/O servers, started by the code
// behind `ooc up` and stopped by the destructor.
#pragma once

#include <filesystem>
#include <string>

namespace bench {

class served_store {
 public:
  /// Starts `nodes` I/O servers on free ports of this machine, in `dir`.  Throws ooc::error.
  served_store(std::filesystem::path dir, unsigned nodes);
  /// The same with a key and, as `encrypt` says, encryption, at this address of the machine.
  served_store(std::filesystem::path dir, unsigned nodes, const std::string& key, bool encrypt,
               const std::string& address);
  ~served_store();
  served_store(const served_store&) = delete;
  served_store& operator=(const served_store&) = delete;

  /// Of "metad", "iod-0", "iod-1", ...
  int pid(const std::string& server) const;
  /// Kills the metadata server and starts it again.
  void restart_metadata();

  const std::string& url() const noexcept { return url_; }

 private:
  std::filesystem::path dir_;
  std::string url_;
};

}  // namespace bench
