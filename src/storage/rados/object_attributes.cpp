#include "storage/rados/object_attributes.hpp"

namespace ooc::storage {

object_attributes::~object_attributes() {
  if (all_ != nullptr) calls_.getxattrs_end(all_);
}

void object_attributes::read_by(rados_read_op_t op) { calls_.read_op_getxattrs(op, &all_, &result_); }

int object_attributes::find(std::string_view name, std::optional<std::string>& value) {
  if (result_ < 0) return result_;
  for (;;) {
    const char* found = nullptr;
    const char* bytes = nullptr;
    std::size_t n = 0;
    if (const int rc = calls_.getxattrs_next(all_, &found, &bytes, &n); rc < 0) return rc;
    if (found == nullptr) return 0;
    if (found != name) continue;
    value.emplace(bytes, n);
    return 0;
  }
}

}  // namespace ooc::storage
