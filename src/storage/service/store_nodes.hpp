// The I/O nodes of a store as this process knows them: all that there were when the store was opened, and those that
// came later and were asked for since.
//
// Any thread may call.
#pragma once

#include <cstddef>
#include <functional>

#include "storage/base/mutex.hpp"
#include "storage/service/entry.hpp"
#include "storage/service/striped_file.hpp"

namespace ooc::storage {

class store_nodes {
 public:
  /// The nodes that the store has now beyond the first `known`.
  using source = std::function<striped_file::nodes(std::size_t known)>;

  /// `further`: asked when a file lies on a node that is not among `nodes`; empty: nobody knows of any.
  store_nodes(striped_file::nodes nodes, source further)
      : opened_with_(nodes.size()), further_(std::move(further)), nodes_(std::move(nodes)) {}

  striped_file::nodes all() const OOC_EXCLUDES(mutex_);

  struct nodes_of_file {
    striped_file::nodes all;  ///< in order, with all that the file lies on
    node_list list;           ///< as file_shape has it
  };
  /// Throws usage_error where the file lies on a node that is not known, and integrity_error where its entry cannot be
  /// of this store.
  nodes_of_file of(const entry& e) const OOC_EXCLUDES(mutex_);

 private:
  const std::size_t opened_with_;
  const source further_;
  mutable mutex mutex_;
  mutable striped_file::nodes nodes_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::storage
