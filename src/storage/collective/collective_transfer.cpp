#include "storage/collective/collective_transfer.hpp"

#include <optional>

#include "storage/base/packed.hpp"
#include "storage/collective/overlaps.hpp"

namespace ooc::storage {

void transfer_collectively(const striped_file& file, const collective_transfer& t, strategy how) {
  failure result;
  if (how == strategy::two_phase) {
    const exchange_plan plan = plan_exchange(t.wanted, file.shape().striping, t.round_bytes);
    result = two_phase_transfer(file, t, plan);
  }
  t.group.together("end of " + t.call, [&] {
    if (how == strategy::independent) {
      const request& mine = t.wanted[static_cast<std::size_t>(t.group.rank())];
      if (!mine.empty()) result = t.kind == access_kind::read ? file.read(mine, t.memory) : file.write(mine, t.memory);
    }
    throw_if(result);
    return process_group::bytes{};
  });
}

void check_disjoint(const striped_file& file, const collective_transfer& t) {
  const exchange_plan plan = plan_exchange(t.wanted, file.shape().striping, t.round_bytes);
  const auto found = t.group.together(t.call, [&] {
    const std::optional<shared_bytes> s = find_overlap(plan, t.wanted, static_cast<std::uint64_t>(t.group.rank()));
    packer p;
    if (s) p.number(s->offset).number(s->length).number(s->first).number(s->second);
    return p.take();
  });
  for (const process_group::bytes& b : found) {
    if (b.empty()) continue;
    unpacker u(b);
    const std::uint64_t offset = u.number(), length = u.number();
    const std::uint64_t first = u.number(), second = u.number();
    throw usage_error(errc::conflict, t.call + ": " +
                                          (first == second ? "rank " + std::to_string(first) + " writes"
                                                           : "ranks " + std::to_string(first) + " and " +
                                                                 std::to_string(second) + " write") +
                                          " the same " + std::to_string(length) + " bytes at byte " +
                                          std::to_string(offset) + (first == second ? " twice" : ""));
  }
}

}  // namespace ooc::storage
