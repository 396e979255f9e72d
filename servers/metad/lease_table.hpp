// The locks and claims of files: leases of clients, by file.
//
// They are kept in the database too, so that a server that was killed knows them again; so is which files lost the lock
// of their size while its holder may have been changing it.  Used by one thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "storage/namespace/reply_cache.hpp"
#include "storage/namespace/sqlite.hpp"
#include "storage/service/io_service.hpp"
#include "storage/wire/metadata_calls.hpp"

namespace ooc::metad {

using storage::client_key;
using storage::file_id;
using wire::lease_kind;

class lease_table {
 public:
  /// Has tables of its own in the database of the name space.  `most`: leases of one client.
  explicit lease_table(storage::sqlite::connection& database, std::size_t most = 1 << 16);

  /// True where the client now has the lease with this number of its own, or had it already; false
  /// where another lease is in the way.  Throws usage_error (EMFILE) where it has too many.
  bool take(const client_key& client, std::uint64_t number, file_id file, lease_kind kind);
  /// `unsettled`: what its holder has sent under a lease of the size may still be on its way to the nodes.
  void drop(const client_key& client, std::uint64_t number, bool unsettled = false);
  /// All of a client that has not given them back: nobody knows what is on its way.
  void drop_all(const client_key& client);

  /// True where a size lease of the file has ended unsettled while the file had this generation, or a later one.
  bool owes_fence(file_id file, std::uint64_t generation);

  /// The clients whose leases keep others from this one.
  std::vector<client_key> in_the_way(file_id file, lease_kind kind) const;

  bool has(const client_key& client, std::uint64_t number) const;
  bool holds(const client_key& client, file_id file, lease_kind kind) const;
  bool holds_any(const client_key& client) const { return leases_.count(client) != 0; }
  std::vector<client_key> clients() const;
  std::size_t size() const;
  /// Asserts what the class states.
  void check_invariants() const;

 private:
  struct lease {
    file_id file = 0;
    lease_kind kind{};
  };
  bool is_held_against(file_id file, lease_kind kind) const;
  void remember(const client_key& client, std::uint64_t number, const lease& l);

  storage::sqlite::connection& connection_;
  const std::size_t most_;
  std::map<client_key, std::map<std::uint64_t, lease>> leases_;
  std::multimap<file_id, lease_kind> held_;
};

}  // namespace ooc::metad
