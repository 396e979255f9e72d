#include "storage/collective/rank_messages.hpp"

#include <limits>
#include <string>

#include "oocarray/error.hpp"
#include "storage/wire/messages.hpp"
#include "storage/wire/metadata_messages.hpp"
#include "storage/wire/ranks.pb.h"

namespace ooc::storage {

namespace pb = wire::pb;

namespace {

template <class Message>
std::vector<std::byte> bytes_of(const Message& m) {
  std::vector<std::byte> bytes(m.ByteSizeLong());
  if (!m.SerializeToArray(bytes.data(), static_cast<int>(bytes.size())))
    throw usage_error(errc::invalid_request, "what a rank tells the others has " + std::to_string(bytes.size()) +
                                                 " bytes; the limit is 2^31 - 1: a request of fewer pieces is needed");
  return bytes;
}

/// The result of f for the message that the bytes hold.
template <class Message, class F>
auto from_bytes(std::span<const std::byte> bytes, F&& f) {
  try {
    return f(wire::parse_body<Message>({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  } catch (const error& e) {
    throw integrity_error(errc::corrupt, std::string("between ranks: ") + e.what());
  }
}

}  // namespace

std::vector<std::byte> encode_entry(const entry& e) {
  pb::Entry m;
  wire::write_entry(e, m);
  m.clear_attributes();
  return bytes_of(m);
}

entry decode_entry(std::span<const std::byte> bytes) { return from_bytes<pb::Entry>(bytes, wire::read_entry); }

std::vector<std::byte> encode(const rank_request& r) {
  pb::RankRequest m;
  wire::write_request(r.wanted, *m.mutable_entries());
  m.set_nodes(static_cast<std::uint32_t>(r.nodes));
  m.set_size(r.size);
  return bytes_of(m);
}

rank_request decode_rank_request(std::span<const std::byte> bytes) {
  return from_bytes<pb::RankRequest>(bytes, [](const pb::RankRequest& m) {
    constexpr std::size_t any = std::numeric_limits<std::size_t>::max();
    return rank_request{
        .wanted = wire::read_request(m.entries(), any), .nodes = static_cast<locality>(m.nodes()), .size = m.size()};
  });
}

}  // namespace ooc::storage
