// Frames: what travels between clients and servers, see docs/wire-format.md.
//
//     header (48 bytes)   body (a Protocol Buffers message)   payload (checksums, then data)
//
// The header has its own CRC32C and holds that of the body; the payload is protected by the
// checksums it begins with (see layout/io_part.hpp).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ooc::wire {

static_assert(std::endian::native == std::endian::little, "frames are written as they lie in memory");

inline constexpr std::uint8_t frame_version = 3;

enum class frame_kind : std::uint8_t {
  hello = 1,  // 2 and 3 were the proof of the key, in version 2
  welcome = 4,

  read = 16,
  write = 17,
  more = 18,  ///< another part of the payload of the write with the same request id
  create = 19,
  resize = 20,
  remove = 21,
  sync = 22,
  verify = 23,
  list = 24,
  stats = 25,
  fence = 26,
  ping = 27,
  advance = 28,       ///< the file is opened for writing: its generation
  prepare = 29,       ///< the first half of a commit
  roll_back = 30,     ///< what came after the last commit is forgotten
  find_changes = 31,  ///< what a commit has that an earlier one had not
  clone = 32,         ///< another file gets the bytes of a commit, and shares their space
  trim = 33,          ///< what the commit before had and the last one has not goes

  metadata = 48,  ///< a call of the metadata service
  enlist = 49,    ///< an I/O server tells the metadata server where it is
  cluster = 50,   ///< which I/O servers there are

  reply = 128,
};

struct frame_header {
  static constexpr std::uint16_t last = 1;     ///< no further frame of this request follows
  static constexpr std::uint16_t failed = 2;   ///< the body of the reply is a Failure
  static constexpr std::uint16_t checked = 4;  ///< read: the server is to check what it sends

  std::array<char, 4> magic = {'O', 'O', 'C', 'F'};
  std::uint8_t version = frame_version;
  frame_kind kind = frame_kind::ping;
  std::uint16_t flags = 0;
  std::uint64_t id = 0;           ///< of the request, chosen by the client; the reply repeats it
  std::uint64_t incarnation = 0;  ///< of the server; 0 in frames of clients
  std::uint32_t body_bytes = 0;
  std::uint32_t payload_bytes = 0;  ///< checksums and data
  std::uint32_t sums = 0;           ///< number of checksums at the start of the payload
  std::uint32_t body_crc = 0;
  std::uint32_t reserved = 0;
  std::uint32_t header_crc = 0;  ///< of the 44 bytes before it

  bool has(std::uint16_t flag) const noexcept { return (flags & flag) != 0; }
};
static_assert(sizeof(frame_header) == 48 && offsetof(frame_header, id) == 8 &&
              offsetof(frame_header, body_bytes) == 24 && offsetof(frame_header, header_crc) == 44);

/// The most that a peer may send.  Checked before anything is allocated.
struct frame_limits {
  std::uint32_t body = 16 << 20;
  std::uint32_t payload = 0;
};

/// The bytes of header and body; fills in what the header says of them.
std::string encode_frame(frame_header h, std::string_view body, std::uint32_t payload_bytes = 0);

/// Why these bytes cannot be the header of a frame; an empty text if they can.
std::string header_fault(const frame_header& h, const frame_limits& limits);
/// Why this body cannot be that of `h`.
std::string body_fault(const frame_header& h, std::string_view body);

/// "read", "reply", ... or "kind 77".
std::string kind_name(frame_kind k);

}  // namespace ooc::wire
