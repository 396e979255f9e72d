// A connection to a pool of RADOS: its objects of one namespace, asynchronously.
//
// A call that reaches past the bytes that may be in flight waits for its turn, without a thread.  RADOS answers each
// within the deadline, by ETIMEDOUT if need be; after 2 s a line on standard error says what is waited for.
//
// The connection to the cluster stays until the process ends: all pools of a cluster share it, and what ends it must be
// no thread of librados.  Once it was shut out of the cluster all calls fail with ESHUTDOWN, whatever becomes of that.
//
// Owner: shared_ptr; calls that are under way keep it.  Threads: any may call; ends are called on threads of the
// connection, and must not throw or block for long.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "oocarray/error.hpp"
#include "storage/base/mutex.hpp"
#include "storage/base/ticker.hpp"
#include "storage/rados/librados.hpp"
#include "storage/service/io_service.hpp"

namespace ooc::storage {

struct rados_location {
  std::string pool;
  std::string name_space;  ///< empty: the pool's default one
  std::string conf;        ///< the configuration file of the cluster; empty: as librados finds it
  std::string user;        ///< of cephx, without "client."
  std::chrono::milliseconds deadline{30'000};

  std::string name() const { return "rados:" + pool + (name_space.empty() ? "" : "/" + name_space); }
};

class rados_pool : public std::enable_shared_from_this<rados_pool> {
 public:
  /// The result of a call, as librados has it: negative is an errno.
  using end = std::function<void(int)>;
  /// Memory that a call may take beside that of its caller: librados has copies of what is in flight.
  static constexpr std::uint64_t most_in_flight = 32 << 20;

  /// Connects, which takes at most the deadline.  Throws usage_error (errc::not_a_store) for a pool that is not there
  /// or a configuration that cannot be read, io_error where the cluster does not answer or admit us.
  static std::shared_ptr<rados_pool> connect(const rados_location& where);
  ~rados_pool();
  rados_pool(const rados_pool&) = delete;
  rados_pool& operator=(const rados_pool&) = delete;

  /// The same connection, for objects of another pool in the namespace of the same name.
  std::shared_ptr<rados_pool> other_pool(const std::string& pool);

  // Snapshots, by their numbers: the state of all objects at a moment, of which an object keeps what is written over by
  // who knows of the snapshot.
  /// The same objects, whose writers leave what the snapshot has.
  std::shared_ptr<rados_pool> after(std::uint64_t snapshot);
  /// The objects as the snapshot has them, to be read.
  std::shared_ptr<rados_pool> as_of(std::uint64_t snapshot);

  /// One operation on one object, of about so many bytes; `steps` adds to it what it does, all or nothing of which
  /// happens.  `what`, for messages: "the read of 'a'".
  void read(std::string object, std::uint64_t bytes, std::string what, std::function<void(rados_read_op_t)> steps,
            end ended);
  void write(std::string object, std::uint64_t bytes, std::string what, std::function<void(rados_write_op_t)> steps,
             end ended);

  // --- Waiting.  Not to be called from an end.

  /// All of a small object (at most 4 KiB); nothing where there is none.  Throws io_error.  `version`: for
  /// write_op_assert_version; not where other threads use this pool.
  std::optional<std::string> get(const std::string& object, std::uint64_t* version = nullptr) const;
  void put(const std::string& object, const std::string& bytes) const;
  void remove(const std::string& object) const;
  /// Calls `f` with the name of every object, until it returns false.  Throws io_error.
  void for_each_object(const std::function<bool(const std::string&)>& f) const;
  /// The processes that hold this lock of the object, for messages; empty: nobody.
  std::string lockers(const std::string& object, const std::string& lock) const;
  /// Takes a lock of an object that its holder loses after so many seconds; false: somebody else has it.
  bool try_lock(const std::string& object, const std::string& lock, std::chrono::seconds at_most) const;
  void unlock(const std::string& object, const std::string& lock) const noexcept;
  /// Of the objects as they are now.  The second and third: one that is not there is as good as gone, or taken back.
  std::uint64_t new_snapshot() const;
  void drop_snapshot(std::uint64_t snapshot) const;
  void take_back(const std::string& object, std::uint64_t snapshot) const;
  /// Of the whole cluster, in which every copy counts.
  node_space space() const;
  /// How the cluster knows this process; what shut_out() takes.
  std::string address() const;
  /// Nothing that these processes have sent, and has not been carried out yet, will be, nor what they send later: to
  /// any pool of the cluster.  This process is left out, and what is empty.  What is sent here from now on is carried
  /// out after that of nobody whom anybody has shut out until now: an OSD that has not heard of that learns it first.
  void shut_out(std::vector<std::string> addresses = {}) const;

  const librados& calls() const noexcept { return calls_; }
  const rados_location& where() const noexcept { return where_; }
  rados_t cluster() const noexcept;
  /// What to say of a call that has returned `rc`.
  failure failed(int rc, const std::string& doing) const;

 private:
  struct connection;
  struct connections;
  struct call;

  rados_pool(connection& cluster, const rados_location& where);

  void start(std::unique_ptr<call> c);
  void submit(std::unique_ptr<call> c);
  int send(call& c);
  static void came_back(call* c);
  void finish(std::unique_ptr<call> c);
  ticker::clock::time_point look();
  static void completed(rados_completion_t, void* arg);

  const librados& calls_;
  const rados_location where_;
  connection& cluster_;
  rados_ioctx_t objects_ = nullptr;

  struct waited_for {
    ticker::clock::time_point since;
    std::string what;
  };
  mutex mutex_;
  std::uint64_t in_flight_ OOC_GUARDED_BY(mutex_) = 0;  // bytes
  std::deque<std::unique_ptr<call>> waiting_ OOC_GUARDED_BY(mutex_);
  std::map<std::uint64_t, waited_for> under_way_ OOC_GUARDED_BY(mutex_);  // by their numbers
  std::uint64_t number_ OOC_GUARDED_BY(mutex_) = 0;
  bool said_ OOC_GUARDED_BY(mutex_) = false;
  bool watching_ OOC_GUARDED_BY(mutex_) = false;  ///< the watch comes by itself, and need not be woken for each call
  ticker watch_;
};

}  // namespace ooc::storage
