#include "storage/object/stripe_object_reader.hpp"

#include <algorithm>
#include <cstring>

#include "storage/layout/fill_pattern.hpp"

namespace ooc::storage {
namespace {

constexpr std::size_t batch_slots = 4096;

}  // namespace

std::vector<chunk_range> chunks_of(std::vector<bad_chunk>& bad) {
  std::sort(bad.begin(), bad.end(), [](const bad_chunk& a, const bad_chunk& b) { return a.chunk < b.chunk; });
  std::vector<chunk_range> ranges;
  for (const bad_chunk& b : bad) {
    if (!ranges.empty() && b.chunk <= ranges.back().end)
      ranges.back().end = b.chunk + 1;
    else
      ranges.push_back({b.chunk, b.chunk + 1});
  }
  return ranges;
}

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
      if (planned_ >= io_worker::batch_chunks || w_.slots.size() >= batch_slots)
        if (const object_error e = flush(bad)) return e;
      const bool whole = within == 0 && left >= chunk_size;
      if (whole && !bounce_all && (any_memory || aligned(to))) {
        const std::uint64_t n = places_.run(chunk, std::min(left / chunk_size, io_worker::batch_chunks - planned_));
        plan_slot({places_.of(chunk), static_cast<std::uint32_t>(n), 0, to, false, sums});
        if (sums != nullptr) sums += n;
        at += n * chunk_size;
        continue;
      }
      const bool same =
          !whole && !w_.slots.empty() && w_.slots.back().bounced && w_.slots.back().place == places_.of(chunk);
      if (!same) {
        if (bounced_ == w_.bounce_chunks())
          if (const object_error e = flush(bad)) return e;
        plan_slot({places_.of(chunk), 1, 0, w_.bounce_chunk(bounced_++), true, whole ? sums : nullptr});
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
    plan_slot({places_.of(first + i), 1, 0, w_.bounce_chunk(bounced_++), true, nullptr});
  const object_error e = flush(bad);
  if (!e)
    for (const checksum_entry& s : w_.sums) written += s != checksum_entry{};
  return e;
}

void stripe_object_reader::plan_slot(const chunk_slot& slot) {
  w_.slots.push_back(slot);
  planned_ += slot.count;
}

void stripe_object_reader::plan_transfers() {
  if (!places_.are_chunks()) w_.sort_slots();
  for (const chunk_slot& slot : w_.slots) {
    const std::uint64_t begin = slot.place * chunk_size;
    if (!w_.plan.extents.empty()) {
      const transfer& last = w_.plan.extents.back();
      const std::uint64_t gap = begin - w_.plan.end();  // huge if begin lies before the end
      if (gap > 0 && gap <= max_sieved_gap && last.bytes + gap + chunk_size <= transfer_list::max_bytes)
        w_.plan.add(w_.plan.end(), w_.sink(), gap);
    }
    w_.plan.add(begin, slot.at, slot.count * chunk_size);
  }
}

object_error stripe_object_reader::flush(std::vector<bad_chunk>& bad) {
  plan_transfers();
  w_.run(s_, direction::read);
  object_error error = w_.first_error("reading data", places_);
  if (!error) {
    bool untouched = false;
    if (const int e = w_.load_sums(s_, untouched))
      error = {e, verdict::good, places_.chunk(w_.slots.front().place) * chunk_size, "reading checksums"};
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
      const std::uint64_t place = slot.place + i, chunk = places_.chunk(place);
      const bool never_written = *entry == checksum_entry{};
      std::uint32_t* const sum = slot.sums == nullptr ? nullptr : slot.sums + i;
      const std::uint32_t seed = s_.sums().seeds().of_chunk(place);
      if (who_ == checking::by_caller && sum != nullptr && !never_written && entry->settled() &&
          entry->current != seed) {
        *sum = entry->current;
        continue;
      }
      const std::uint32_t found = never_written ? 0 : chunk_sum(bytes);
      if (sum != nullptr) *sum = found;
      verdict v = never_written ? verdict::fill : judge(*entry, found, seed);
      if (v == verdict::lost && place >= chunks_) v = verdict::fill;
      switch (v) {
        case verdict::good: break;
        case verdict::fill:
          fill_object_bytes(f_, stripe_index_, chunk * chunk_size, {bytes, chunk_size});
          if (sum != nullptr) *sum = chunk_sum(bytes);
          break;
        case verdict::torn:
        case verdict::corrupt:
        case verdict::lost: bad.push_back({chunk, v}); break;
      }
    }
  }
}

}  // namespace ooc::storage
