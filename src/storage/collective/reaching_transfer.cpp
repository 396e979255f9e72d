#include "storage/collective/reaching_transfer.hpp"

#include <algorithm>
#include <string>

#include "storage/base/refuse.hpp"
#include "storage/collective/rank_messages.hpp"

namespace ooc::storage {

std::uint64_t joint_request::end() const {
  std::uint64_t last = 0;
  for (const request& r : wanted) last = std::max(last, r.file_end());
  return last;
}

joint_request gather(process_group& group, const std::string& call, const growing_file& file,
                     const std::function<request()>& mine) {
  const std::vector<process_group::bytes> told = group.together(call, [&] {
    rank_request r{.wanted = mine()};
    const auto seen = file.current();
    if (group.size() > 1) r.nodes = seen->file->farthest_node();
    r.size = seen->meta.size;
    return encode(r);
  });
  joint_request all;
  for (const process_group::bytes& b : told) {
    rank_request r = decode_rank_request(b);
    all.wanted.push_back(std::move(r.wanted));
    all.nodes = std::max(all.nodes, r.nodes);
    all.size = std::min(all.size, r.size);
  }
  return all;
}

void transfer_reaching(const collective_transfer& t, const joint_request& all, growing_file& file,
                       const std::function<strategy(const striped_file&)>& how) {
  const std::uint64_t end = all.end();
  const bool writes = t.kind == access_kind::write;
  growing_file::snapshot f;
  for (bool grows = writes && all.size < end, anew = false, cut = false;; grows = anew = true) {
    // One rank makes the file longer: all at once would wait for each other's lock.
    if (grows)
      t.group.together("growth for " + t.call, [&] {
        if (t.group.rank() != 0) return process_group::bytes{};
        if (cut) file.learn_of_cut(f->meta);
        if (anew) file.forget_size();  // it is shorter than this rank has seen it
        (void)file.grown_to(end);
        return process_group::bytes{};
      });
    const auto told = t.group.together("size for " + t.call, [&] {
      f = anew ? file.refreshed() : file.reaching(end);
      if (f->meta.size >= end) return process_group::bytes{};
      if (!writes || !f->meta.array.extents.empty())
        refuse(errc::invalid_request, f->meta.path,
               "a rank reaches up to byte " + std::to_string(end) + ", the file ends at byte " +
                   std::to_string(f->meta.size));
      return process_group::bytes(1);
    });
    // Another program has cut it off before all ranks have seen it.
    cut = false;
    if (std::any_of(told.begin(), told.end(), [](const process_group::bytes& b) { return !b.empty(); })) continue;
    try {
      return transfer_collectively(*f->file, t, how(*f->file));
    } catch (const error& e) {  // the same on all ranks
      if (e.code() != errc::cut_off) throw;
    }
    cut = true;
  }
}

}  // namespace ooc::storage
