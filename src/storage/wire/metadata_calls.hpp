// The calls of the metadata service, and of the leases of its clients, as bodies of frames, and back.
//
// docs/wire-format.md, "Metadata", has the table of them.  Decoding checks what the types promise and throws
// usage_error (errc::invalid_request, ENOSYS for a call that is not known).  Any thread may call.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "storage/service/metadata_service.hpp"

namespace ooc::wire {

/// Leases of the same file that exclude each other: all of `size`; `exclusive_writer` every writer.
enum class lease_kind : std::uint8_t { size = 1, exclusive_writer = 2, shared_writer = 3 };

struct take_lease {
  std::uint64_t number = 0;  ///< chosen by the client, never used twice
  storage::file_id file = 0;
  lease_kind kind{};
};
struct drop_lease {
  std::uint64_t number = 0;
  bool unsettled = false;  ///< requests to change the size may still be on their way to I/O servers
};
/// All leases of the client end now, and what it was making is abandoned.
struct goodbye {};

using any_call = storage::metadata_call_or<take_lease, drop_lease, goodbye>;

struct sent_call {
  any_call what;
  std::uint64_t sequence = 0;  ///< of this client's changing calls, from 1 by 1
  bool again = false;          ///< sent before, the reply was lost
  int operation = 0;           ///< of a decoded one: its number
};

struct call_reply {
  storage::metadata_answer answer;
  /// With an entry, or by itself: a capability.
  struct {
    std::string bytes;
    std::chrono::seconds life{0};
    std::uint32_t rights = 0;
    std::uint64_t size = 0;  ///< bytes of the file that it is good for
  } capability;
  /// Of take_lease.
  struct {
    bool granted = false;
    bool owes_fence = false;
    storage::claim_holder holder{};  ///< who is in the way
  } lease;
  /// How long the server keeps for a client that is not connected what it has got with this; 0: nothing.
  std::chrono::milliseconds grace{0};
};

bool changes(const any_call& c);
/// Its number on the wire, and such a number in words: "set size".
int operation_of(const any_call& c);
std::string operation_name(int operation);

std::string encode(const sent_call& c);
sent_call decode_call(std::string_view body);
std::string encode(const any_call& asked, const call_reply& r);
call_reply decode_reply(const any_call& asked, std::string_view body);

}  // namespace ooc::wire
