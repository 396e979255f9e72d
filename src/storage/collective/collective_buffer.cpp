#include "storage/collective/collective_buffer.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "storage/layout/regions.hpp"

namespace ooc::storage {
namespace {

/// The union of the regions, as runs in ascending order; a gap of at most `gap` bytes counts as
/// wanted.
std::vector<region> runs_of(const std::vector<std::vector<region>>& by_rank, std::uint64_t gap) {
  std::vector<region> all, joined;
  const auto before = [](const region& a, const region& b) { return a.node_offset < b.node_offset; };
  for (const std::vector<region>& one : by_rank) {
    // Joined before they are merged: of many short regions, few runs remain.
    joined.clear();
    const auto join = [&](const region& p) {
      if (!joined.empty() && p.node_offset <= joined.back().node_end() + gap)
        joined.back().length = std::max(joined.back().node_end(), p.node_end()) - joined.back().node_offset;
      else
        joined.push_back({p.node_offset, p.node_offset, p.length});
    };
    std::vector<region> merged(all.size() + one.size());
    std::merge(all.begin(), all.end(), one.begin(), one.end(), merged.begin(), before);
    for (const region& p : merged) join(p);
    all.swap(joined);
  }
  return all;
}

/// Adds runs of one length at equal distances as one entry.
request as_request(const std::vector<region>& runs, std::uint64_t window_begin) {
  request r;
  for (std::size_t i = 0; i < runs.size();) {
    const region& first = runs[i];
    std::size_t next = i + 1;
    const std::uint64_t step = next < runs.size() ? runs[next].node_offset - first.node_offset : 0;
    while (next < runs.size() && runs[next].length == first.length &&
           runs[next].node_offset - runs[next - 1].node_offset == step)
      ++next;
    nested_request n;
    n.file_offset = window_begin + first.node_offset;
    n.memory_offset = first.node_offset;
    n.run = first.length;
    if (next - i > 1) {
      n.depth = 1;
      n.levels[0] = {next - i, step, step};
    }
    r.add(n);
    i = next;
  }
  return r;
}

}  // namespace

request request_of(const std::vector<std::vector<region>>& by_rank, std::uint64_t window_begin) {
  return as_request(runs_of(by_rank, 0), window_begin);
}

request request_with_gaps(const std::vector<std::vector<region>>& by_rank, std::uint64_t window_begin) {
  return as_request(runs_of(by_rank, max_sieved_gap), window_begin);
}

window::window(std::uint64_t bytes)
    : bytes_(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{4096}))) {}

void window::start_read(const striped_file& f, std::uint64_t window_begin) {
  read(f, request_with_gaps(regions_, window_begin));
}

void window::read(const striped_file& f, request r) {
  if (r.empty()) return;
  transfer_.start([&](const completion& ended) {
    // The window is kept: its memory is in use until the completion comes.
    f.read(std::make_shared<const request>(std::move(r)), bytes(),
           [self = shared_from_this(), ended](const failure& e) { ended(e); });
  });
}

void window::start_write(const striped_file& f, std::uint64_t window_begin) {
  auto r = std::make_shared<const request>(request_of(regions_, window_begin));
  if (r->empty()) return;
  transfer_.start([&](const completion& ended) {
    f.write(std::move(r), bytes(), [self = shared_from_this(), ended](const failure& e) { ended(e); });
  });
}

failure window::finish() { return transfer_.wait(); }

failure window::finish_read(const striped_file& f, std::uint64_t window_begin) {
  failure result = finish();
  if (result.code != errc::corrupt && result.code != std::errc::io_error) return result;
  request exact = request_of(regions_, window_begin);
  if (exact.bytes() == request_with_gaps(regions_, window_begin).bytes()) return result;
  read(f, std::move(exact));
  return finish();
}

}  // namespace ooc::storage
