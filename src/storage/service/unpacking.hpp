// A packed file as its readers see it: the bytes that were packed.
//
// A packed file does not change: another file takes its place (file_moves.hpp), and has another id.  So all who have it
// open share what is here.
//
// Any thread may call.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "storage/base/mutex.hpp"
#include "storage/service/entry.hpp"
#include "storage/service/io_service.hpp"

namespace ooc::storage {

class striped_file;

/// Makes a node with one file that unpacks what is read of `packed`, and takes a part of a budget of so many bytes.
/// Throws ooc::error where this build cannot, or the budget is too small.
using unpacked_node_maker = std::function<std::shared_ptr<io_service>(
    const entry& e, std::shared_ptr<const striped_file> packed, std::uint64_t budget)>;

class unpacked_file {
 public:
  unpacked_file(entry e, std::shared_ptr<const striped_file> packed, unpacked_node_maker make);

  /// As striped_file::read().
  void read(request_ptr r, std::byte* memory, completion done);
  /// What who writes to it is told: also who has had it open for writing since before it was packed.
  failure refused_write() const;
  /// Bytes of memory that it holds while it is open: of so many, where it has not been read yet.  Throws as the
  /// unpacked_node_maker, as reading fails then.
  std::uint64_t memory(std::uint64_t budget);

 private:
  std::shared_ptr<io_service> node(std::uint64_t budget = 1 << 30);

  const entry entry_;
  const shape_ptr shape_;  ///< of what was packed
  const std::shared_ptr<const striped_file> packed_;
  const unpacked_node_maker make_;
  mutex mutex_;
  std::shared_ptr<io_service> node_ OOC_GUARDED_BY(mutex_);  ///< made when it is first needed
};

/// Those that are open, by id.
class unpacked_files {
 public:
  explicit unpacked_files(unpacked_node_maker make) : make_(std::move(make)) {}
  std::shared_ptr<unpacked_file> find(const entry& e,
                                      const std::function<std::shared_ptr<const striped_file>()>& open) const;

 private:
  const unpacked_node_maker make_;
  mutable mutex mutex_;
  mutable std::map<file_id, std::weak_ptr<unpacked_file>> open_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::storage
