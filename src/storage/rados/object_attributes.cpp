#include "storage/rados/object_attributes.hpp"

namespace ooc::storage {

object_attributes::~object_attributes() {
  if (all_ != nullptr) calls_.getxattrs_end(all_);
}

void object_attributes::read_by(rados_read_op_t op) { calls_.read_op_getxattrs(op, &all_, &result_); }

int object_attributes::for_each(const std::function<void(std::string_view name, std::string_view value)>& f) {
  if (result_ < 0) return result_;
  for (;;) {
    const char* name = nullptr;
    const char* value = nullptr;
    std::size_t bytes = 0;
    if (const int rc = calls_.getxattrs_next(all_, &name, &value, &bytes); rc < 0) return rc;
    if (name == nullptr) return 0;
    f(name, {value, bytes});
  }
}

int object_attributes::find(std::string_view name, std::optional<std::string>& value) {
  return for_each([&](std::string_view found, std::string_view its) {
    if (found == name) value.emplace(its);
  });
}

}  // namespace ooc::storage
