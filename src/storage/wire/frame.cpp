#include "storage/wire/frame.hpp"

#include "storage/layout/crc32c.hpp"
#include "storage/wire/node_calls.hpp"

namespace ooc::wire {

using storage::crc32c;

std::string encode_frame(frame_header h, std::string_view body, std::uint32_t payload_bytes) {
  h.body_bytes = static_cast<std::uint32_t>(body.size());
  h.payload_bytes = payload_bytes;
  h.body_crc = crc32c(body.data(), body.size());
  h.header_crc = crc32c(&h, offsetof(frame_header, header_crc));
  std::string bytes;
  bytes.reserve(sizeof h + body.size());
  bytes.append(reinterpret_cast<const char*>(&h), sizeof h);
  bytes.append(body);
  return bytes;
}

std::string header_fault(const frame_header& h, const frame_limits& limits) {
  if (h.magic != frame_header{}.magic) return "not a frame of oocarray";
  if (h.header_crc != crc32c(&h, offsetof(frame_header, header_crc))) return "a header was damaged on the way";
  if (h.version != frame_version)
    return "the peer speaks version " + std::to_string(h.version) + " of the protocol, this is " +
           std::to_string(frame_version) + "; install the same release on both sides";
  if (h.body_bytes > limits.body)
    return "a body of " + std::to_string(h.body_bytes) + " bytes; the limit is " + std::to_string(limits.body);
  if (h.payload_bytes > limits.payload)
    return "a payload of " + std::to_string(h.payload_bytes) + " bytes; the limit is " + std::to_string(limits.payload);
  if (std::uint64_t{h.sums} * 4 > h.payload_bytes) return "more checksums than payload";
  return {};
}

std::string body_fault(const frame_header& h, std::string_view body) {
  if (crc32c(body.data(), body.size()) == h.body_crc) return {};
  return "the body of a " + kind_name(h.kind) + " was damaged on the way";
}

std::string kind_name(frame_kind k) {
  if (const served_call* c = served(k)) return storage::name_of(c->call);
  switch (k) {
    case frame_kind::hello: return "hello";
    case frame_kind::welcome: return "welcome";
    case frame_kind::more: return "part of a write";
    case frame_kind::stats: return "statistics";
    case frame_kind::fence: return "fence";
    case frame_kind::metadata: return "metadata call";
    case frame_kind::enlist: return "registration";
    case frame_kind::cluster: return "cluster information";
    case frame_kind::reply: return "reply";
    default: break;
  }
  return "kind " + std::to_string(static_cast<unsigned>(k));
}

}  // namespace ooc::wire
