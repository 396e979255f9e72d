#include "storage/node/stripe_object_reader.hpp"

#include <algorithm>
#include <cstring>

#include "storage/layout/fill_pattern.hpp"

namespace ooc::storage {
namespace {

constexpr std::size_t batch_extents = 1024;

}  // namespace

object_error stripe_object_reader::read(std::span<const region> regions, std::byte* memory, bool bounce_all,
                               std::vector<bad_chunk>& bad, std::uint32_t* sums, checking who) {
  who_ = who;
  const bool any_memory = !s_.direct();
  for (const region& p : regions) {
    std::uint64_t at = p.node_offset;
    while (at < p.node_end()) {
      std::byte* const to = memory + p.memory_offset + (at - p.node_offset);
      const std::uint64_t within = at % chunk_size;
      const std::uint64_t left = p.node_end() - at;
      const std::uint64_t chunk = at / chunk_size;
      if (planned_ >= io_worker::batch_chunks || w_.plan.extents.size() >= batch_extents)
        if (const object_error e = flush(bad)) return e;
      const bool whole = within == 0 && left >= chunk_size;
      if (whole && !bounce_all && (any_memory || aligned(to))) {
        const std::uint64_t n = std::min(left / chunk_size, io_worker::batch_chunks - planned_);
        plan_slot({chunk, static_cast<std::uint32_t>(n), 0, to, false, sums});
        if (sums != nullptr) sums += n;
        at += n * chunk_size;
        continue;
      }
      const bool same = !whole && !w_.slots.empty() && w_.slots.back().bounced &&
                        w_.slots.back().chunk == chunk;
      if (!same) {
        if (bounced_ == w_.bounce_chunks())
          if (const object_error e = flush(bad)) return e;
        plan_slot({chunk, 1, 0, w_.bounce_chunk(bounced_++), true, whole ? sums : nullptr});
        if (whole && sums != nullptr) ++sums;
      }
      const std::uint64_t n = std::min(chunk_size - within, left);
      copies_.push_back({w_.slots.back().at + within, to, n});
      at += n;
    }
  }
  return flush(bad);
}

object_error stripe_object_reader::check(std::uint64_t first, std::uint32_t count, std::uint64_t& written,
                                std::vector<bad_chunk>& bad) {
  for (std::uint32_t i = 0; i < count; ++i)
    plan_slot({first + i, 1, 0, w_.bounce_chunk(bounced_++), true, nullptr});
  const object_error e = flush(bad);
  if (!e)
    for (const checksum_entry& s : w_.sums) written += s != checksum_entry{};
  return e;
}

void stripe_object_reader::plan_slot(const chunk_slot& slot) {
  const std::uint64_t begin = slot.chunk * chunk_size;
  if (!w_.plan.extents.empty()) {
    const transfer& last = w_.plan.extents.back();
    const std::uint64_t gap = begin - w_.plan.end();  // huge if begin lies before the end
    if (gap > 0 && gap <= max_sieved_gap &&
        last.bytes + gap + chunk_size <= transfer_list::max_bytes)
      w_.plan.add(w_.plan.end(), w_.sink(), gap);
  }
  w_.plan.add(begin, slot.at, slot.count * chunk_size);
  w_.slots.push_back(slot);
  planned_ += slot.count;
}

object_error stripe_object_reader::flush(std::vector<bad_chunk>& bad) {
  w_.run(s_, direction::read);
  object_error error = w_.first_error("reading data");
  if (!error) {
    bool untouched = false;
    if (const int e = w_.load_sums(s_, untouched))
      error = {e, verdict::good, w_.slots.front().chunk * chunk_size, "reading checksums"};
    else
      judge_slots(bad);
  }
  if (!error)
    for (const copy& c : copies_) std::memcpy(c.to, c.from, c.bytes);
  w_.plan.clear();
  w_.slots.clear();
  copies_.clear();
  bounced_ = 0;
  planned_ = 0;
  return error;
}

void stripe_object_reader::judge_slots(std::vector<bad_chunk>& bad) {
  auto entry = w_.sums.begin();
  for (const chunk_slot& slot : w_.slots) {
    for (std::uint32_t i = 0; i < slot.count; ++i, ++entry) {
      std::byte* const bytes = slot.at + i * chunk_size;
      const std::uint64_t chunk = slot.chunk + i;
      const bool never_written = *entry == checksum_entry{};
      std::uint32_t* const sum = slot.sums == nullptr ? nullptr : slot.sums + i;
      const std::uint32_t seed = s_.sums().seeds().of_chunk(chunk);
      if (who_ == checking::by_caller && sum != nullptr && !never_written && entry->settled() &&
          entry->current != seed) {
        *sum = entry->current;
        continue;
      }
      const std::uint32_t found = never_written ? 0 : chunk_sum(bytes);
      if (sum != nullptr) *sum = found;
      verdict v = never_written ? verdict::fill : judge(*entry, found, seed);
      if (v == verdict::lost && chunk >= chunks_) v = verdict::fill;
      switch (v) {
        case verdict::good:
          break;
        case verdict::fill:
          fill_object_bytes(f_, stripe_index_, chunk * chunk_size, {bytes, chunk_size});
          if (sum != nullptr) *sum = chunk_sum(bytes);
          break;
        case verdict::torn:
        case verdict::corrupt:
        case verdict::lost:
          bad.push_back({chunk, v});
          break;
      }
    }
  }
}

}  // namespace ooc::storage
