#include "storage/rados/client_object.hpp"

#include <cerrno>
#include <functional>
#include <optional>
#include <utility>

#include "storage/rados/object_attributes.hpp"
#include "storage/rados/result_of.hpp"

namespace ooc::storage {

namespace {

constexpr const char* ended_attribute = "oocarray.ended";

/// 0, or a negative errno.
int change(rados_pool& pool, const std::string& object, const std::function<void(rados_write_op_t)>& steps) {
  return result_of([&](rados_pool::end ended) {
    pool.write(object, 0, "the change of object '" + object + "'", steps, std::move(ended));
  });
}

}  // namespace

std::string client_object(const std::string& number) { return std::string(client_prefix) + number; }

void introduce_client(rados_pool& pool, const std::string& number) {
  const std::string address = pool.address();
  const int rc = change(pool, client_object(number), [&](rados_write_op_t op) {
    pool.calls().write_op_write_full(op, address.data(), address.size());
    pool.calls().write_op_rmxattr(op, ended_attribute);
  });
  if (rc < 0) throw_if(pool.failed(rc, "saying where this process is"));
}

std::string end_client_object(rados_pool& pool, const std::string& number) {
  const int rc = change(pool, client_object(number), [&](rados_write_op_t op) {
    pool.calls().write_op_assert_exists(op);
    pool.calls().write_op_setxattr(op, ended_attribute, "1", 1);
  });
  if (rc < 0 && rc != -ENOENT) throw_if(pool.failed(rc, "ending client " + number));
  return rc < 0 ? "" : pool.get(client_object(number)).value_or("");
}

bool client_has_ended(rados_pool& pool, const std::string& number) {
  object_attributes all(pool.calls());
  int rc = result_of([&](rados_pool::end ended) {
    pool.read(
        client_object(number), 0, "the read of object '" + client_object(number) + "'",
        [&](rados_read_op_t op) { all.read_by(op); }, std::move(ended));
  });
  std::optional<std::string> ended;
  if (rc >= 0) rc = all.find(ended_attribute, ended);
  if (rc < 0 && rc != -ENOENT) throw_if(pool.failed(rc, "looking for client " + number));
  return rc < 0 || ended;
}

}  // namespace ooc::storage
