#include "storage/collective/reaching_transfer.hpp"

#include <algorithm>
#include <string>

#include "storage/base/refuse.hpp"

namespace ooc::storage {

void transfer_reaching(const collective_transfer& t, std::uint64_t end, std::uint64_t shortest, const file_of_rank& file) {
  const bool writes = t.kind == access_kind::write;
  std::shared_ptr<const opened_file> f;
  for (bool grows = writes && shortest < end, anew = false, cut = false;; grows = anew = true) {
    // One rank makes the file longer: all at once would wait for each other's lock.
    if (grows)
      t.group.together("growth for " + t.call, [&] {
        if (t.group.rank() == 0) file.grow(cut ? f.get() : nullptr, anew);
        return process_group::bytes{};
      });
    const auto told = t.group.together("size for " + t.call, [&] {
      f = file.look(anew);
      if (f->meta.size >= end) return process_group::bytes{};
      if (!writes || !f->meta.array.extents.empty())
        refuse(errc::invalid_request, f->meta.path,
               "a rank reaches up to byte " + std::to_string(end) + ", the file ends at byte " + std::to_string(f->meta.size));
      return process_group::bytes(1);
    });
    // Another program has cut it off before all ranks have seen it.
    cut = false;
    if (std::any_of(told.begin(), told.end(), [](const process_group::bytes& b) { return !b.empty(); })) continue;
    try {
      return transfer_collectively(*f->file, t, file.how(*f->file));
    } catch (const error& e) {  // the same on all ranks
      if (e.code() != errc::cut_off) throw;
    }
    cut = true;
  }
}

}  // namespace ooc::storage
