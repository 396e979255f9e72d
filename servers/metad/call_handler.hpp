// Carries out the calls of clients on the name space, and adds what only a server gives: leases and capabilities.
//
// Used by one thread: calls take their turns, and a call that changes something is complete before
// the next one begins.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "metad/lease_table.hpp"
#include "metad/metadata_folder.hpp"
#include "storage/namespace/served_metadata.hpp"
#include "storage/wire/capability.hpp"
#include "storage/wire/metadata_calls.hpp"

namespace ooc::metad {

/// The client that makes a call.
struct caller {
  client_key client{};
  storage::credentials who;
  wire::holder_mark holder{};  ///< the key of its connection
};

class call_handler {
 public:
  /// `grace`: as clients are told, so that they are heard of more often.
  /// `clients_end`: see metad_options.
  call_handler(const metadata_folder& folder, std::chrono::seconds capability_life, std::chrono::seconds grace,
               std::function<bool(const client_key&)> alive,
               std::function<storage::claim_holder(const client_key&)> described,
               std::function<void(const std::vector<client_key>&, bool)> clients_end = {});

  /// Throws what the metadata service throws, and usage_error for a call that cannot be meant.
  wire::call_reply answer(const caller& from, const wire::sent_call& c);
  /// The client is gone for good: its leases end, and what it was making is abandoned.
  void end(const client_key& client);
  /// The same of some that have not said so, and may come back with their last calls.
  void lose(std::vector<client_key> clients);

  /// True where the client has leases, or files that it is making.
  bool holds_something(const client_key& client) const {
    return leases_.holds_any(client) || metadata_.makes_files(client);
  }
  /// Clients of an earlier incarnation that may come back: they hold something.
  std::vector<client_key> remembered() const;

  const wire::capability_public_key& public_key() const noexcept { return signer_.public_key(); }
  std::uint64_t calls() const noexcept { return calls_; }
  const std::map<int, std::uint64_t>& calls_by_operation() const noexcept { return by_operation_; }
  const lease_table& leases() const noexcept { return leases_; }
  storage::sqlite::connection& database() const { return metadata_.connection(); }

 private:
  struct question;

  template <class Call>
  void answer(question& q, const Call& c);
  void answer(question& q, const storage::calls::find& c);
  void answer(question& q, const storage::calls::capability& c);
  void answer(question& q, const wire::take_lease& c);
  void answer(question& q, const wire::drop_lease& c);
  void answer(question&, const wire::goodbye&) {}  // the server's: see end()
  /// The reply is what was kept of the very same call.  False: it was not carried out before.
  bool answer_again(question& q, const wire::sent_call& c);
  /// Adds the capability, where the reply gives a right to something.
  template <class Call>
  void add_capability(question& q, const Call& c);
  /// For the file as `e` has it; a right to remove needs no more of it than its id.
  void give_capability(question& q, const storage::entry& e, std::uint32_t rights);
  void give_removal(question& q, const storage::entry& e);
  /// Throws ETIMEDOUT where the caller may write the file and does not hold this lease of it.
  void require_lease(question& q, file_id id, wire::lease_kind kind) const;

  const std::function<storage::claim_holder(const client_key&)> described_;
  const std::function<void(const std::vector<client_key>&, bool)> clients_end_;
  storage::served_metadata metadata_;
  lease_table leases_;
  wire::capability_signer signer_;
  const std::string store_uuid_;
  const std::chrono::seconds capability_life_;
  const std::chrono::milliseconds grace_;
  std::uint64_t serial_ = 0;
  std::uint64_t calls_ = 0;
  std::map<int, std::uint64_t> by_operation_;
};

}  // namespace ooc::metad
