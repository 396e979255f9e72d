#include "runtime/array/direct_transfer.hpp"

#include <algorithm>
#include <utility>

namespace ooc::detail {
namespace {

/// Long enough for a disk, short enough that the threads of a node share a transfer.
constexpr std::uint64_t request_bytes = 4 << 20;

}  // namespace

void direct_transfer::begin_read(const storage::striped_file& f, request r, std::byte* to) {
  auto shared = std::make_shared<const request>(std::move(r));
  requests_.start([&](storage::completion done) { f.read(std::move(shared), to, std::move(done)); });
}

void direct_transfer::begin_write(const storage::striped_file& f, request r, const std::byte* from) {
  auto shared = std::make_shared<const request>(std::move(r));
  requests_.start([&](storage::completion done) { f.write(std::move(shared), from, std::move(done)); });
}

void direct_transfer::in_requests(const element_file& f, std::uint64_t first, std::uint64_t count,
                                  const std::function<void(request, std::size_t)>& each) {
  // Cut where a request begins with a chunk of the file, if elements do.
  const std::size_t size = f.element_size();
  const std::uint64_t most = std::max<std::uint64_t>(1, request_bytes / size);
  for (std::uint64_t at = 0; at < count;) {
    std::uint64_t n = std::min(most, count - at);
    if (n == most && size < request_bytes / 1024) n = (first + at + n) / 512 * 512 - (first + at);
    each(f.elements(first + at, n), at * size);
    at += n;
  }
}

void direct_transfer::begin_read(const element_file& f, std::uint64_t first, std::uint64_t count, std::byte* to) {
  in_requests(f, first, count, [&](request r, std::size_t at) { begin_read(f.file(), std::move(r), to + at); });
}

void direct_transfer::begin_write(const element_file& f, std::uint64_t first, std::uint64_t count,
                                  const std::byte* from) {
  in_requests(f, first, count, [&](request r, std::size_t at) { begin_write(f.file(), std::move(r), from + at); });
}

}  // namespace ooc::detail
