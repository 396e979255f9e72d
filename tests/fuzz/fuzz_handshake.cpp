// Any bytes as the frames of a handshake: without the key nobody gets through, on either side.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "storage/wire/handshake.hpp"

using namespace ooc::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const key_ptr key = cluster_key::random();
  frame_header h;
  h.kind = static_cast<frame_kind>(data[0] % 8);
  h.flags = data[1];
  const std::string_view body(reinterpret_cast<const char*>(data) + 2, size - 2);

  server_handshake server({server_role::metadata, 1, "store", 0}, key, true);
  (void)server.challenge(h, body);
  if (!server.welcome(h, body).refused) std::abort();
  client_handshake client({}, key, false);
  if (!client.answer(h, body).refused) std::abort();
  (void)client.finish(h, body);
  return 0;
}
