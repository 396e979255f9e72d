// Any bytes as the frames of a handshake: where there are keys nobody gets through who has proven none, and
// nobody with a user's key as another one.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "storage/wire/handshake.hpp"

using namespace ooc::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const key_ptr key = access_key::random();
  static const key_ptr user = key->for_user({"alice", 1000, {100, 27}});
  frame_header h;
  h.kind = static_cast<frame_kind>(data[0] % 8);
  h.flags = data[1];
  const std::string_view body(reinterpret_cast<const char*>(data) + 2, size - 2);

  const server_info me{server_role::metadata, 1, "store", 0, encryption::on};
  server_handshake server(me, {.wanted = true, .same_machine = true});
  if (!server.welcome(h, body).refused) std::abort();
  server_handshake for_user(me, {.wanted = true, .given = user->holder()});
  if (!for_user.welcome(h, body).refused &&
      (for_user.peer().who.uid != 1000 || for_user.peer().role != peer_role::client))
    std::abort();
  client_handshake client({}, {.wanted = true, .given = key->holder()});
  (void)client.finish(h, body);
  if (const auto holder = parse_identity(body); holder && holder->identity != body) std::abort();
  return 0;
}
