// The operations on a file with commits that look at the whole stripe object: a slice of it in each step, so that
// others have their turns in between.
//
// A part of node_operations, whose begin() and claim() they use.
#pragma once

#include "storage/node/commit_operations.hpp"
#include "storage/node/node_messages.hpp"
#include "storage/object/stripe_object_cache.hpp"

namespace ooc::storage {

class node_operations;
enum class step_result;

class commit_steps : private node_messages {
 public:
  commit_steps(node_operations& node, commit_operations& commits, stripe_object_cache& cache);

  /// False: parked.
  bool find_changes(operation& op);
  step_result trim(operation& op);
  step_result clone(operation& op, io_worker& w);

 private:
  failure trim_claimed(operation& op);
  failure open_copy(operation& op);
  failure clone_slice(operation& op, io_worker& w);

  node_operations& node_;
  commit_operations& commits_;
  stripe_object_cache& cache_;
};

}  // namespace ooc::storage
