#include "daemon/folder_epoch.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <system_error>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/base/durable_file.hpp"
#include "storage/base/process_identity.hpp"
#include "storage/wire/handshake.hpp"

namespace ooc::servers {

namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "oocarray-epoch";
constexpr const char* first_line = "oocarray-epoch 1";

}  // namespace

folder_epoch::folder_epoch(fs::path folder)
    : folder_(std::move(folder)),
      opened_(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      boot_(storage::this_process().boot) {
  if (!opened_) throw io_error({errno, std::generic_category()}, "folder '" + folder_.string() + "' cannot be opened");
  std::string boot;
  bool synced = false;
  const bool known = read(boot, synced);
  const bool same_boot = !boot_.empty() && boot == boot_;
  if (known && same_boot && !synced) return;
  if (!known || (!same_boot && !synced)) {
    if (known)
      spdlog::warn(
          "the machine of folder '{}' went down while a server had it: what was acknowledged and not durable may be "
          "lost, and programs that live on are told so",
          folder_.string());
    number_ = wire::random_incarnation();
  }
  write(false);
}

folder_epoch::~folder_epoch() {
  try {
    spdlog::info("folder '{}': making durable what was written", folder_.string());
    if (::syncfs(opened_.get()) != 0)
      throw io_error({errno, std::generic_category()},
                     "the file system of '" + folder_.string() + "' cannot be synced");
    write(true);
  } catch (const std::exception& e) {
    spdlog::warn("{}; where the machine goes down now, programs are told that something may be lost", e.what());
  }
}

/// False where there is none that can be read.
bool folder_epoch::read(std::string& boot, bool& synced) {
  std::ifstream in(folder_ / file_name);
  std::string line, epoch_word, boot_word, end;
  if (!std::getline(in, line) || line != first_line) return false;
  if (!(in >> epoch_word >> std::hex >> number_ >> boot_word >> boot) || epoch_word != "epoch" || boot_word != "boot" ||
      number_ == 0)
    return false;
  synced = static_cast<bool>(in >> end) && end == "synced";
  return true;
}

void folder_epoch::write(bool synced) const {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number_));
  const fs::path file = folder_ / file_name, next = folder_ / (std::string(file_name) + ".new");
  storage::write_durably(
      next, std::string(first_line) + "\nepoch " + digits + "\nboot " + boot_ + "\n" + (synced ? "synced\n" : ""));
  std::error_code ec;
  fs::rename(next, file, ec);
  if (ec) throw io_error(ec, "file '" + file.string() + "' cannot be written");
  storage::sync_folder(folder_);
}

}  // namespace ooc::servers
