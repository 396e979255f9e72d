// The library's types as the bodies of frames, and back.
//
// Reading a body checks everything that the types promise; what cannot be is reported as a text,
// never as a crash or a huge allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "oocarray/error.hpp"
#include "oocarray/request.hpp"
#include "oocarray/stats.hpp"
#include "storage/layout/regions.hpp"
#include "storage/service/io_service.hpp"

namespace google::protobuf {
template <typename Element>
class RepeatedField;
}

namespace ooc::wire::pb {
class Failure;
}

namespace ooc::wire {

/// A request as numbers: the nested requests one after another, as messages.proto says.
using request_numbers = google::protobuf::RepeatedField<std::uint64_t>;
void write_request(const request& r, request_numbers& to);
/// Throws usage_error (errc::invalid_request) where they are no request, or one of more than `most`
/// nested requests.
request read_request(const request_numbers& n, std::size_t most);

/// A capability that is nothing but its bytes.
class plain_capability final : public storage::access_capability {
 public:
  explicit plain_capability(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string bytes() const override { return bytes_; }

 private:
  const std::string bytes_;
};

/// A call about a file; the kind of its frame says which.
struct io_request : storage::node_call {
  storage::byte_range range;  ///< read, write: of the bytes of its regions
  std::string capability, into_capability;
};

/// The most that the regions of one read or write may take, in steps (object_regions_within()): 6 MiB of memory, and
/// a millisecond or two.
inline constexpr std::uint64_t max_steps = 1 << 18;
/// Nested requests in one message.
inline constexpr std::uint64_t max_entries = 1 << 13;
/// Bytes of the body of one message: entries of the most levels, a fill value and a name.
inline constexpr std::uint32_t max_request_body = 3 << 20;

/// The regions that a read or write is about.  Throws usage_error (errc::invalid_request) where they
/// take more.
std::vector<storage::region> regions_of(const io_request& r);
/// The same; false where they take more than `steps`.
bool regions_within(const io_request& r, std::uint64_t steps, std::vector<storage::region>& regions);

/// Bytes of the body of an answer.
inline constexpr std::uint32_t max_answer_body = 16 << 20;
/// Connections that one fence names.
inline constexpr std::size_t max_fenced = 1 << 16;

/// `r.capability` is not looked at: the capability is that of the file.
std::string encode(const io_request& r);
/// Throws usage_error (errc::invalid_request).
io_request decode_io_request(std::string_view body);

void write_failure(const failure& f, pb::Failure& m);
failure read_failure(const pb::Failure& m);
std::string encode(const failure& f);
failure decode_failure(std::string_view body);

/// Those of its parts that belong to a call of this kind.
std::string encode_answer(storage::io_kind kind, const storage::node_answer& a);
void decode_answer(storage::io_kind kind, std::string_view body, storage::node_answer& a);

std::string encode_fence(const std::vector<std::uint64_t>& connections);
std::vector<std::uint64_t> decode_fence(std::string_view body);

/// Statistics of an I/O server, in its own words.
struct node_statistics {
  io_stats io;
  std::uint64_t clients = 0;
  std::uint64_t waiting = 0;
  std::uint64_t running = 0;
  std::uint64_t buffer_bytes = 0;
  std::uint64_t buffer_limit = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t disk_free = 0;
  std::string disk;  ///< which one: equal for folders on the same; empty: not known
  std::uint64_t started_ns = 0;
  std::string version;
};
std::string encode(const node_statistics& s);
node_statistics decode_statistics(std::string_view body);

}  // namespace ooc::wire
