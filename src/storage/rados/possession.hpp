// The objects of a store in RADOS beside those of its files, and the right to its metadata, which one process has.
//
//     oocarray-store            the description of the store; without it there is none
//     metadata.sqlite.*         the database (libcephsqlite), whose lock is that right
//     oocarray-opening          its lock is held by who is about to take the right
//     oocarray-owner            the address of who has it: the next one shuts it out, where it ended and gave nothing back
//     oocarray-server           the addresses of the metadata server that has it, for clients; without it there is none
//     oocarray-client.NUMBER    the address of a client of that server: shut out when the server takes it for lost
//                               (client_object.hpp)
//     oocarray-gateways         how many gateways the store has; without it none, and programs reach the bytes themselves
//     oocarray-gateway.NUMBER   the address of a gateway: shut out by the one that takes its place
//     oocarray-signing-key      what metadata servers sign capabilities with
//
// docs/disk-format.md, "Stores in RADOS", has what is in them.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/rados/rados_pool.hpp"

namespace ooc::storage {

struct rados_description {
  std::string uuid;
  std::string data;  ///< the pool of the bytes
};

/// Nothing where there is no store.  Throws usage_error (errc::not_a_store) for one of a later release.
std::optional<rados_description> find_description(const rados_pool& pool);

/// The addresses of the server that has the metadata, or had them when it died; empty: there is none.
std::vector<std::string> find_rados_server(const rados_pool& pool);

/// Whether some process has the metadata, or died with them less than after_death ago.
bool has_rados_metadata(const rados_pool& pool);

/// Thread-safe after take().
class rados_possession {
 public:
  struct wish {
    std::string data{};  ///< the pool for the bytes, where the store is made
    bool create = false;
    /// How long to wait for who has it; nothing: for ever, as a server does.
    std::optional<std::chrono::seconds> patience{};
  };
  /// Who died while it had the metadata has them for 30 s more.
  static constexpr std::chrono::seconds after_death{33};

  /// Waits until nobody else has the metadata, and has `open` open the database before anybody can come in between.
  /// Throws usage_error (errc::not_a_store) where there is no store, errc::busy where somebody has it for too long.
  static std::shared_ptr<rados_possession> take(const std::shared_ptr<rados_pool>& pool, const wish& w,
                                                const std::function<void(const rados_possession&)>& open);
  /// Gives it back.  The database is closed after that, which lets the next one in.
  ~rados_possession();
  rados_possession(const rados_possession&) = delete;
  rados_possession& operator=(const rados_possession&) = delete;

  const rados_description& store() const noexcept { return store_; }
  /// For sqlite::open_as::alone.
  const std::string& database() const noexcept { return database_; }
  const std::shared_ptr<rados_pool>& pool() const noexcept { return pool_; }

  /// Why another process has them now; empty: this one has.  Throws io_error where that cannot be known now.
  std::string who_took() const;
  /// Clients find the metadata server there from now on.
  void publish(const std::vector<std::string>& addresses) const;
  /// The clients with these numbers will not touch the store any more, whatever they have sent: they have left, or,
  /// `lost`, must be kept from it.  Throws io_error.
  void end_clients(const std::vector<std::string>& numbers, bool lost) const;

 private:
  explicit rados_possession(std::shared_ptr<rados_pool> pool) : pool_(std::move(pool)) {}

  const std::shared_ptr<rados_pool> pool_;
  const pid_t process_ = ::getpid();
  rados_description store_;
  std::string database_;
  bool taken_ = false;
};

/// The number of gateways through which alone the store is reached; 0: programs reach it themselves.
std::uint32_t find_gateways(const rados_pool& pool);

/// The number from now on.  Where it was another one, gateways are shut out, which keep the files apart by their
/// number, and programs that the metadata server knows; those that it has forgotten learn it when they connect, and
/// their ranks are at the files.  By who has the metadata.
void set_gateways(const rados_pool& pool, std::uint32_t count);

/// The object becomes `bytes`: `look` has been called with what it was, and nobody has changed it since.
void replace_object(rados_pool& pool, const std::string& object, const std::string& bytes,
                    const std::function<void(const std::string&)>& look);

/// Has gateway `number` from now on: who had it before is shut out.  Throws usage_error (errc::not_a_store) where there
/// is no store, or it has no such gateway.
rados_description take_gateway(rados_pool& pool, std::uint32_t number);

/// Why this process, which has taken it, is gateway `number` no more; empty: it is.  Throws io_error.
std::string who_took_gateway(const rados_pool& pool, std::uint32_t number);

/// The key that the store's metadata servers share; nothing where the first is still to make it.
std::optional<std::string> find_signing_key(const rados_pool& pool);
void keep_signing_key(const rados_pool& pool, const std::string& key);

}  // namespace ooc::storage
