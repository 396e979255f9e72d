#include "runtime/geometry/access_log.hpp"

#include <algorithm>

#include "runtime/geometry/write_notices.hpp"
#include "storage/base/packed.hpp"

namespace ooc::detail {
namespace {

void pack(storage::packer& p, const run_set& set) {
  p.number(set.runs().size());
  for (const byte_run& r : set.runs()) p.number(r.offset).number(r.length);
}

run_set unpack(storage::unpacker& u) {
  run_set set;
  for (std::uint64_t n = u.number(); n > 0; --n) {
    const std::uint64_t offset = u.number();
    set.add({offset, u.number()});
  }
  return set;
}

}  // namespace

void run_set::add(byte_run r) {
  if (r.length == 0) return;
  if (!runs_.empty() && runs_.back().offset + runs_.back().length == r.offset)
    runs_.back().length += r.length;  // the usual case: one element after the other
  else
    runs_.push_back(r);
  if (runs_.size() > 2 * sorted_ + 1024) compact();
}

void run_set::add(const run_set& more) {
  for (const byte_run& r : more.runs()) add(r);
}

const std::vector<byte_run>& run_set::runs() const {
  compact();
  return runs_;
}

run_set run_set::outside(std::span<const block_range> blocks, std::uint64_t block_bytes) const {
  std::vector<block_range> bytes, mine;
  for (const block_range& r : blocks) bytes.push_back({r.first * block_bytes, r.last * block_bytes});
  for (const byte_run& r : runs()) mine.push_back({r.offset, r.offset + r.length});
  run_set rest;
  for (const block_range& r : without(mine, bytes)) rest.add({r.first, r.last - r.first});
  return rest;
}

void run_set::compact() const {
  std::sort(runs_.begin(), runs_.end(), [](const byte_run& a, const byte_run& b) { return a.offset < b.offset; });
  std::size_t kept = 0;
  for (const byte_run& r : runs_) {
    byte_run* const last = kept ? &runs_[kept - 1] : nullptr;
    if (last && r.offset <= last->offset + last->length)
      last->length = std::max(last->offset + last->length, r.offset + r.length) - last->offset;
    else
      runs_[kept++] = r;
  }
  runs_.resize(kept);
  sorted_ = kept;
}

void accesses::add(const accesses& more) {
  written.add(more.written);
  shown_to_nobody.add(more.shown_to_nobody);
  read.add(more.read);
  add(more.read_blocks);
}

void accesses::add(const std::vector<block_range>& blocks_read) {
  read_blocks.insert(read_blocks.end(), blocks_read.begin(), blocks_read.end());
  read_blocks = merged(std::move(read_blocks));
}

accesses accesses::left_by(std::span<const block_range> shown, std::uint64_t block_bytes) const {
  accesses left;
  left.shown_to_nobody = shown_to_nobody.outside(shown, block_bytes);
  left.shown_to_nobody.add(written.outside(shown, block_bytes));
  return left;
}

std::vector<std::byte> accesses::packed() const {
  storage::packer p;
  pack(p, written);
  pack(p, shown_to_nobody);
  pack(p, read);
  p.bytes(packed_notice(read_blocks));
  return p.take();
}

accesses accesses::unpacked(std::span<const std::byte> bytes) {
  storage::unpacker u(bytes);
  accesses a;
  a.written = unpack(u);
  a.shown_to_nobody = unpack(u);
  a.read = unpack(u);
  a.read_blocks = unpacked_notice(u.bytes());
  return a;
}

}  // namespace ooc::detail
