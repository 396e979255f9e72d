// Making or opening an array together with the other ranks of its group.
//
// Rank 0 alone talks to the metadata service, holds the claim to write for all, and says what the
// default block is; the others are told the file's entry (where nodes want to see capabilities,
// each rank fetches its own).  So all ranks have the same geometry, and a block's number means the
// same on each of them.  While rank 0 waits for a program that writes the file, it tells the others so, whose deadline
// may be shorter.  What one rank throws, all throw, and a failure leaves no file behind.
//
// Owner: the function that opens.  Threads: one; collective over options.group.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {

class shared_opening {
 public:
  /// `array`, which has been made for `r`, `rt` and `r` outlive it.
  shared_opening(shared_array& array, runtime& rt, const array_request& r) : array_(array), rt_(rt), request_(r) {}

  void open();

 private:
  void create_or_open(const array_request& r);
  bool is_there() const;
  void open(const array_request& r);
  void check_placement(const array_request& r) const;
  void open_together(const array_request& r);
  std::vector<process_group::bytes> entry_of_leader(const std::string& call, bool may_wait,
                                                    const std::function<void()>& make_or_open);
  /// The file as rank 0 has told of it; returns the claimant (metadata_service::claimant).
  std::string use_told(const process_group::bytes& by_leader);

  shared_array& array_;
  runtime& rt_;
  const array_request& request_;
};

}  // namespace ooc::detail
