// read_all() and write_all(): the boxes of all ranks at once, past the blocks in memory.
//
// First every rank learns every box, writes back the blocks that any of them touches, and waits for
// the others to have done so: the store then holds what all have written.  Promises to overwrite
// these blocks are taken back, so that from then on they are loaded whole.  The transfer itself is
// storage's. After a write the blocks that it touched are dropped, those being loaded on arrival.
#include "runtime/ranks/array_collective.hpp"

#include <algorithm>
#include <string>

#include "oocarray/error.hpp"
#include "runtime/geometry/write_notices.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/ranks/shared_array.hpp"
#include "storage/base/packed.hpp"
#include "storage/collective/collective_transfer.hpp"

namespace ooc::detail {
namespace {

using bytes = process_group::bytes;

/// The description that a rank gives of its call.
struct wish {
  index_box box;
  std::uint64_t budget = 0;                           ///< of its runtime
  storage::locality nodes = storage::locality::none;  ///< of the array, the farthest one

  bytes packed(std::size_t rank) const {
    storage::packer p;
    p.number(budget).number(static_cast<std::uint64_t>(nodes));
    for (std::size_t k = 0; k < rank; ++k) p.number(box.lower[k]).number(box.upper[k]);
    return p.take();
  }
  static wish unpacked(const bytes& b, std::size_t rank) {
    storage::unpacker u(b);
    wish w;
    w.budget = u.number();
    w.nodes = static_cast<storage::locality>(u.number());
    for (std::size_t k = 0; k < rank; ++k) {
      w.box.lower[k] = u.number();
      w.box.upper[k] = u.number();
    }
    return w;
  }
};

std::uint64_t elements_of(const index_box& b, std::size_t rank) {
  std::uint64_t n = 1;
  for (std::size_t k = 0; k < rank; ++k) n *= b.upper[k] - b.lower[k];
  return n;
}

void refuse_overlaps(const std::string& call, std::span<const wish> wishes, std::size_t rank) {
  for (std::size_t j = 0; j < wishes.size(); ++j)
    for (std::size_t i = 0; i < j; ++i) {
      const index_box &a = wishes[i].box, &b = wishes[j].box;
      if (elements_of(a, rank) == 0 || elements_of(b, rank) == 0 || !overlap(a, b, rank)) continue;
      std::vector<std::uint64_t> lower, upper;
      for (std::size_t k = 0; k < rank; ++k) {
        lower.push_back(std::max(a.lower[k], b.lower[k]));
        upper.push_back(std::min(a.upper[k], b.upper[k]));
      }
      throw usage_error(errc::conflict, call + ": ranks " + std::to_string(i) + " and " + std::to_string(j) +
                                            " both write the box from " + to_string(lower) + " to " + to_string(upper));
    }
}

}  // namespace

void transfer_all(shared_array& a, access_kind kind, box_view b, std::byte* memory, std::size_t elements) {
  local_array& local = a.local();
  local.check_open();
  const bool writes = kind == access_kind::write;
  const std::string call = std::string(writes ? "write_all" : "read_all") + " of '" + a.path() + "'";
  const array_source::state_ptr now = local.source().current();
  const array_geometry& g = now->geometry;
  process_group& group = a.group();

  const std::vector<bytes> told = group.together(call, [&] {
    if (writes) {
      local.check_writable("be written");
      local.check_unpinned("write_all()");
    }
    const wish mine{local.checked(b, writes ? "write_all()" : "read_all()"), a.segment().served_by().budget(),
                    group.size() > 1 ? now->file->farthest_node() : storage::locality::none};
    if (const std::uint64_t n = elements_of(mine.box, g.rank()); n != elements)
      throw usage_error(errc::invalid_request, call + ": the box has " + std::to_string(n) +
                                                   " elements, the memory room for " + std::to_string(elements));
    return mine.packed(g.rank());
  });
  std::vector<wish> wishes;
  for (const bytes& t : told) wishes.push_back(wish::unpacked(t, g.rank()));
  if (writes) refuse_overlaps(call, wishes, g.rank());

  std::vector<request> wanted;
  std::vector<block_range> blocks;
  std::uint64_t round_bytes = storage::default_round_bytes;
  storage::locality nodes = storage::locality::none;
  for (const wish& w : wishes) {
    nodes = std::max(nodes, w.nodes);
    wanted.push_back(g.packed_request(w.box));
    const std::vector<block_range> touched = g.blocks_of(w.box);
    blocks.insert(blocks.end(), touched.begin(), touched.end());
    round_bytes = std::min(round_bytes, w.budget / 16);
  }
  blocks = merged(std::move(blocks));

  const storage::strategy how = storage::choose_strategy(kind, wanted, nodes);
  pager::reservation buffers;
  group.together("writing back for " + call, [&] {
    if (how == storage::strategy::two_phase) {
      const std::uint64_t least = group.size() * storage::chunk_size;
      buffers = a.segment().served_by().reserve(2 * std::max(round_bytes, least), call);
    }
    if (local.facts().writable) throw_if(a.segment().writeback(a.with_owed(blocks)));
    // A write past the blocks is no element access that would use a promise up, and what is
    // read must be there still when its neighbour is written.
    a.segment().clear_promises(blocks);
    return bytes{};
  });
  const auto forget = [&] {
    if (writes) a.forget(blocks, "write_all()");
  };
  try {
    storage::transfer_collectively(
        *now->file,
        {.group = group, .call = call, .kind = kind, .wanted = wanted, .memory = memory, .round_bytes = round_bytes},
        how);
  } catch (...) {
    forget();
    throw;
  }
  if (writes) group.together("blocks for " + call, [&] { return forget(), bytes{}; });
}

}  // namespace ooc::detail
