// Any bytes as a frame: what passes the checks is within the limits, and has its body.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "storage/layout/crc32c.hpp"
#include "storage/wire/frame.hpp"

using namespace ooc::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  frame_header h;
  if (size < sizeof h) return 0;
  std::memcpy(&h, data, sizeof h);
  const std::string_view body(reinterpret_cast<const char*>(data) + sizeof h, size - sizeof h);
  // A fuzzer does not guess a CRC: half of the inputs get the right one.
  if (h.reserved % 2 == 0) h.header_crc = ooc::storage::crc32c(&h, sizeof h - 4);
  const frame_limits limits{.body = 1024, .payload = 4096};
  if (!header_fault(h, limits).empty()) return 0;
  if (h.body_bytes > limits.body || h.payload_bytes > limits.payload) std::abort();
  if (h.body_bytes == body.size() && body_fault(h, body).empty()) (void)encode_frame(h, body, h.payload_bytes);
  (void)kind_name(h.kind);
  return 0;
}
