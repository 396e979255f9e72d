// An open file of a store: one request in, one request per I/O node out, all in flight at once (but
// for long reads from 32 nodes or more, which ask groups of them).
//
// Thread-safe.  Asynchronous calls follow io_service.hpp: `done` once, on any thread, and the memory
// valid until then.  Where several nodes fail, the first failure is reported, with node and file
// named; `done` is called only when every node has finished, so the memory is free to be used again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/service/io_service.hpp"
#include "storage/service/unpacking.hpp"

namespace ooc::storage {

/// The node, of `nodes`, that the client with this number asks first.  Clients that begin a step at
/// the same time would else all ask the same one, and then all the next.  As many numbers in a row as
/// there are nodes have one each, and fewer have nodes that lie far apart: multiples of the golden
/// section.
std::ptrdiff_t first_of_client(std::uint64_t number, std::size_t nodes);

class striped_file {
 public:
  using nodes = std::vector<std::shared_ptr<io_service>>;
  /// Looks, on a thread that may wait, where the file is now, and tells `found` its new place, the same one where a
  /// loss of power may have taken stripe objects of it, or null where it has not been moved else, or nobody can say.
  using finder = std::function<void(std::function<void(std::shared_ptr<const striped_file>)> found)>;

  /// `all` are the I/O nodes of the store in order; the file uses `shape->striping.nn` of them.
  /// `client`: a number that other clients do not have, see first_of_client().  `find`: what cannot be read is looked
  /// for elsewhere, once, as the file may have been moved (metadata call take_over); empty: it never is.
  /// `unpacked`: what is read of a packed file, which is not written; null: the bytes of its stripe objects.  All else
  /// is of those.
  striped_file(shape_ptr shape, nodes all, std::uint64_t client = 0, finder find = {},
               std::shared_ptr<unpacked_file> unpacked = {});

  /// Only nodes that hold a region of the request get a message.  A request that reaches past the
  /// end of the file fails with errc::invalid_request before anything is sent.
  void read(request_ptr r, std::byte* memory, completion done) const;
  /// Nothing is written where the file has been moved: errc::cut_off, as of who does not know that it has become
  /// shorter.
  void write(request_ptr r, const std::byte* memory, completion done) const;
  /// Makes every acknowledged write of this file durable on every node.
  void sync(completion done) const;

  /// The same, waiting.  Not to be called from a completion.
  failure read(const request& r, std::byte* memory) const;
  failure write(const request& r, const std::byte* memory) const;
  failure sync() const;
  /// io_service::flush and forget of all its nodes.  The first waits, as above.
  failure flush() const;
  void forget() const;

  /// Reads at once, in the calling thread, what lies within one stripe; false where that cannot be.  All as
  /// immediate_reader::read().
  class reader {
   public:
    /// Null where a node of the file has no immediate_reader.
    static std::unique_ptr<const reader> of(const striped_file& f);
    bool read(std::uint64_t file_offset, std::byte* memory, std::size_t bytes) const noexcept;

   private:
    shape_ptr shape_;
    std::vector<std::shared_ptr<const immediate_reader>> nodes_;  ///< by stripe index
  };

  /// Null where it is not packed.
  const std::shared_ptr<unpacked_file>& unpacked() const noexcept { return unpacked_; }

  /// The distance between this process and the farthest node of the file; a node that does not answer counts as far.
  /// Waits, as above, where it is not known yet.
  locality farthest_node() const;

  /// Makes, opens for writing, resizes or removes the stripe objects on all nodes; used by store_core only.
  failure create_objects() const;
  failure advance_objects() const;
  failure resize_objects(std::uint64_t old_size) const;
  /// Gives the stripe objects the permissions of the shape; nothing where nodes keep none.
  failure permit_objects() const;
  failure remove_objects() const;
  /// Of a file with commits; also on nodes that had bytes of it and have none now.
  void prepare_objects(completion done) const;
  failure roll_back_objects() const;
  void trim_objects(completion done) const;
  /// The stripe objects of `into` get the bytes that this file has in the commit that it is read as of
  /// (io_service::clone).
  failure clone_objects(const shape_ptr& into, bool copies) const;
  /// By stripe index: what in its last commit may not be as in the earlier one `since` (io_service::find_changes).
  /// Throws io_error.
  std::vector<std::vector<byte_interval>> find_changes(std::uint64_t since) const;

  /// Whether the metadata are known to say that no stripe object may be missing; see store_core::sync_entry().
  bool is_settled() const noexcept { return settled_.load(std::memory_order_relaxed); }
  void set_settled() const noexcept { settled_.store(true, std::memory_order_relaxed); }

  const file_shape& shape() const noexcept { return *shape_; }
  const shape_ptr& shape_handle() const noexcept { return shape_; }
  /// The I/O node with this stripe index (0 <= stripe index < nn).
  io_service& node(std::uint32_t stripe_index) const;

 private:
  class moved_place;

  failure ask(std::vector<std::uint32_t> stripe_indexes, node_call call) const;
  void read_here(request_ptr r, std::byte* memory, completion done) const;
  void write_here(request_ptr r, const std::byte* memory, completion done) const;
  void sync_here(completion done) const;
  /// `done` of a call that `repeat` makes once more where the file is now, if it fails here as it has been moved;
  /// `here_too`: also where it is still here, and has missed a stripe object.
  template <class Repeat>
  completion looking_elsewhere(Repeat repeat, completion done, bool here_too = false) const;

  shape_ptr shape_;
  nodes all_;
  std::uint64_t client_;
  std::shared_ptr<moved_place> moved_;  // null: it stays where it is
  std::shared_ptr<unpacked_file> unpacked_;
  /// Once every node has said; nodes do not move while a store is open.
  mutable std::atomic<std::optional<locality>> farthest_{std::nullopt};
  mutable std::atomic<bool> settled_{false};
};

}  // namespace ooc::storage
