// The attributes of an object of RADOS, as one read operation gives them.
//
// Owner: who waits for the operation.  Threads: one at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "storage/rados/librados.hpp"

namespace ooc::storage {

class object_attributes {
 public:
  explicit object_attributes(const librados& calls) : calls_(calls) {}
  ~object_attributes();
  object_attributes(const object_attributes&) = delete;
  object_attributes& operator=(const object_attributes&) = delete;

  /// Adds to the operation that it reads them.
  void read_by(rados_read_op_t op);
  // When it has been carried out, one of these, once.  0, or a negative errno.
  int for_each(const std::function<void(std::string_view name, std::string_view value)>& f);
  /// `value` stays where there is none of that name.
  int find(std::string_view name, std::optional<std::string>& value);

 private:
  const librados& calls_;
  rados_xattrs_iter_t all_ = nullptr;
  int result_ = 0;
};

}  // namespace ooc::storage
