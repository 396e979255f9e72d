// The calls of the kernel on a mounted store.
//
// Entries are known to the kernel by their lasting numbers in the store (lasting_number), so nothing is kept for those
// that are not open.  The kernel checks permissions (`default_permissions`) by what getattr() and lookup() tell it.
//
// Name-space calls wait for the metadata service on a thread of the FUSE session.  Reads, writes and syncs are
// answered from the completion of the transfer.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mount/error_number.hpp"
#include "mount/live_file.hpp"
#include "oocarray/store.hpp"
#include "storage/base/in_flight.hpp"
#include "storage/base/job_threads.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::mount {

struct space {
  std::uint64_t bytes = 0, free = 0;
};

struct mount_options {
  std::string url;  ///< shown in the table of mounts
  std::string folder;
  bool read_only = false;
  bool single = false;               ///< nobody else uses the store: the kernel caches writes, names and attributes
  std::vector<std::string> fuse{};   ///< options for libfuse: "allow_other"
  std::function<space()> ask_space;  ///< of the disks of all nodes
};

class file_system {
 public:
  file_system(std::shared_ptr<storage::store_core> core, const mount_options& options);
  ~file_system() { finish(); }
  /// Sends what open files still have, and waits for it and for the answers that are to come.
  void finish() OOC_EXCLUDES(mutex_);

  static fuse_lowlevel_ops operations();

  // Used by the calls.

  struct handle;
  struct folder_handle;

  storage::store_core& core() { return *core_; }
  storage::metadata_service& metadata() { return core_->metadata(); }
  const mount_options& options() const { return options_; }
  double entry_timeout() const { return options_.single ? 60 : 0; }
  double attribute_timeout() const { return options_.single ? 60 : 1; }
  job_threads<>& jobs() { return jobs_; }

  /// The file, open once more; release() gives it back.
  std::shared_ptr<live_file> open(file_id id, bool write) OOC_EXCLUDES(mutex_);
  void release(file_id id, const std::shared_ptr<live_file>& f, bool write) OOC_EXCLUDES(mutex_);
  /// Empty: it is not open.
  std::shared_ptr<live_file> find(file_id id) OOC_EXCLUDES(mutex_);
  /// What unlink() or move() has left without a name is shown until the kernel forgets it.  A file goes with its last
  /// user, or now.
  void removed(storage::entry e) OOC_EXCLUDES(mutex_);
  void forgotten(file_id id) OOC_EXCLUDES(mutex_);
  /// What is there, or was removed here.
  storage::entry stat(file_id id) OOC_EXCLUDES(mutex_);
  struct ::stat attributes(storage::entry& e) OOC_EXCLUDES(mutex_);
  void reply_entry(fuse_req_t req, storage::entry e);

  /// Calls that are answered later; the file system does not end before they are.
  void begin() { under_way_.begin(); }
  void end() { under_way_.end(); }

 private:
  struct open_file {
    std::shared_ptr<live_file> file;
    unsigned users = 0;
    std::optional<storage::entry> removed;  // while it was open: when the last one closes it, it goes for good
  };

  const std::shared_ptr<storage::store_core> core_;
  const mount_options options_;
  mutex mutex_;
  // Both by lasting number.
  std::map<file_id, open_file> files_ OOC_GUARDED_BY(mutex_);
  std::map<file_id, storage::entry> gone_ OOC_GUARDED_BY(mutex_);  // removed here, and known to the kernel
  in_flight under_way_;
  job_threads<> jobs_{4};
};

struct file_system::handle {
  std::shared_ptr<live_file> file;
  file_id id = 0;
  bool write = false;
  bool through = false;      ///< O_DIRECT, O_SYNC, O_DSYNC
  bool synchronous = false;  ///< O_SYNC, O_DSYNC
  std::uint64_t errors_seen = 0;
};

struct file_system::folder_handle {
  mutex reading;
  std::vector<storage::entry> entries OOC_GUARDED_BY(reading);
  bool complete OOC_GUARDED_BY(reading) = false;
};

inline file_system& system_of(fuse_req_t req) { return *static_cast<file_system*>(fuse_req_userdata(req)); }

/// Of a call on what the kernel knows by its number: it looks for the name anew where that is gone, as another may have
/// taken its place.
inline int stale_if_gone(int error) { return error == ENOENT ? ESTALE : error; }

/// Runs a call; what it throws is the answer.
template <class F>
void answer_errors(fuse_req_t req, F f, bool by_number = false) {
  int error = 0;
  try {
    f(system_of(req));
    return;
  } catch (...) {
    error = error_number();
  }
  fuse_reply_err(req, by_number ? stale_if_gone(error) : error);
}

template <class F>
void answer_by_number(fuse_req_t req, F f) {
  answer_errors(req, std::move(f), true);
}

/// The calls on the bytes of files: file_calls.cpp.
void add_file_calls(fuse_lowlevel_ops& ops);
/// Extended attributes: attribute_calls.cpp.
void add_attribute_calls(fuse_lowlevel_ops& ops);

}  // namespace ooc::mount
