// The epoch of a server's folder: a number that changes when what the server had acknowledged may have been lost.
//
// What is acknowledged survives the end of the server, but the end of its machine only once it is synced.  A client
// that meets another epoch than before knows that what it has not had synced may be gone (docs/wire-format.md,
// "Epochs").  So a start keeps the epoch of the folder in the same boot of the machine, and in another boot where the
// server before had ended with everything synced, as it does before a planned restart of the machine.  Else the folder
// gets a new epoch.
//
// The file "oocarray-epoch" has three lines, "oocarray-epoch 1", "epoch N" (16 hexadecimal digits) and "boot ID", and,
// while no server runs and all is synced, a fourth: "synced".  A start takes that away, durably, before the server
// acknowledges anything.
//
// Made and destroyed by who holds the folder's lock, with nothing open in it that is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "storage/base/file_descriptor.hpp"

namespace ooc::servers {

class folder_epoch {
 public:
  /// Throws io_error.
  explicit folder_epoch(std::filesystem::path folder);
  /// Syncs the folder's file system and says so in the file; where that fails, it stays unsaid.
  ~folder_epoch();
  folder_epoch(const folder_epoch&) = delete;
  folder_epoch& operator=(const folder_epoch&) = delete;

  /// Never 0.
  std::uint64_t number() const noexcept { return number_; }

 private:
  bool read(std::string& boot, bool& synced);
  void write(bool synced) const;

  const std::filesystem::path folder_;
  const storage::file_descriptor opened_;  // since before the first write, so that syncfs() tells what has failed since
  const std::string boot_;
  std::uint64_t number_ = 0;
};

}  // namespace ooc::servers
