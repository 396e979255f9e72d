#include "storage/client/remote_call.hpp"

#include <cstring>

namespace ooc::storage {

using wire::frame_header;
using wire::frame_kind;

std::vector<region> regions_of(const remote_call& c) {
  return c.what.wanted ? wire::regions_of(c.what) : std::vector<region>{};
}

call_frames frames_of(const remote_call& c, std::uint64_t id, std::vector<region> regions,
                      const std::function<void(bool)>& released) {
  call_frames frames;
  frame_header h;
  h.kind = c.kind;
  h.id = id;
  if (c.kind == frame_kind::read && c.damages != 0) h.flags |= frame_header::checked;
  std::string body = c.what.file ? wire::encode(c.what) : c.body;
  if (c.kind != frame_kind::write) {
    h.flags |= frame_header::last;
    frames.messages.push_back({wire::encode_frame(h, body), {}, {}});
    return frames;
  }
  std::vector<std::uint32_t> sums;
  for (part_cutter parts(std::move(regions));;) {
    const io_part part = parts.next();
    if (parts.at_end()) h.flags |= frame_header::last;
    h.sums = part.sums();
    sums.resize(part.sums());
    compute_sums(part, c.what.memory, sums.data());
    wire::frame_sender::message m;
    m.head = wire::encode_frame(h, body, static_cast<std::uint32_t>(part.wire_bytes()));
    m.head.append(reinterpret_cast<const char*>(sums.data()), sums.size() * 4);
    append_memory(part, c.what.memory, m.payload);
    m.released = released;
    frames.messages.push_back(std::move(m));
    ++frames.holds;
    if (parts.at_end()) return frames;
    h.kind = frame_kind::more;
    body.clear();
  }
}

boost::asio::awaitable<void> receive_part(remote_call& c, wire::frame_reader& reader, const frame_header& h) {
  const auto broken = std::make_error_code(std::errc::protocol_error);
  if (!c.parts || c.parts->at_end()) throw wire::connection_error(broken, "bytes that nobody asked for");
  const io_part part = c.parts->next();
  if (part.sums() != h.sums || part.wire_bytes() != h.payload_bytes)
    throw wire::connection_error(broken, "a part of another size than was asked for");
  c.sums.resize(part.sums());
  std::vector<iovec> places{{c.sums.data(), c.sums.size() * 4}};
  append_memory(part, c.what.memory, places);
  co_await reader.payload(places);
  if (!sums_match(part, c.what.memory, c.sums.data())) c.damaged = true;
}

failure unreadable(const std::string& call, const error& why) {
  return {std::make_error_code(std::errc::protocol_error), "the answer to " + call + " cannot be read: " + why.what()};
}

std::string describe(const remote_call& c) {
  std::string text = "the " + wire::kind_name(c.kind);
  if (c.what.file && !c.what.file->name.empty()) text += " of '" + c.what.file->name + "'";
  return text;
}

}  // namespace ooc::storage
