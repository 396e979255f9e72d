#include "storage/service/store_nodes.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/base/refuse.hpp"

namespace ooc::storage {

striped_file::nodes store_nodes::all() const {
  const lock_guard lock(mutex_);
  return nodes_;
}

store_nodes::nodes_of_file store_nodes::of(const entry& e) const {
  const striping& s = e.striping;
  const std::size_t wanted = e.nodes.empty() ? std::max<std::size_t>(s.nn, s.sn + std::size_t{1})
                                             : *std::ranges::max_element(e.nodes) + std::size_t{1};
  nodes_of_file n{all(), e.nodes};
  if (s.nn != 0 && wanted > n.all.size() && further_) {
    striped_file::nodes further = further_(n.all.size());
    const lock_guard lock(mutex_);
    // Another thread may have been here.
    if (nodes_.size() == n.all.size()) std::ranges::move(further, std::back_inserter(nodes_));
    n.all = nodes_;
  }
  if (s.nn != 0 && wanted > n.all.size() && !e.nodes.empty())
    refuse(errc::invalid_request, e.path,
           "it lies on node " + std::to_string(wanted - 1) + ", and the store had nodes 0 to " +
               std::to_string(n.all.size() - 1) + " when this program opened it: open the store again, as it is now");
  if (s.nn == 0 || wanted > n.all.size() || s.sf == 0)
    throw integrity_error(errc::corrupt, "'" + e.path + "': its entry names nodes that the store does not have");
  // Once the store has got further nodes, every entry that begins at node 0 again has a list.
  if (e.nodes.empty() && std::uint64_t{s.sn} + s.nn > opened_with_) n.list = nodes_of(s, {}, opened_with_);
  return n;
}

}  // namespace ooc::storage
