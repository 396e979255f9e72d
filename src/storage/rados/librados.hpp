// The calls of librados that the library makes, loaded when a store in RADOS is first opened: a program that opens none
// needs no package of Ceph, and starts no slower.
//
// All are in librados of Ceph 16 and of Ceph 20.  Threads: any.
#pragma once

#include <rados/librados.h>

namespace ooc::storage {

struct librados {
  /// Loads it.  Throws usage_error (errc::not_a_store), with the package to install, where it is not there.
  static const librados& get();

// clang-format off
#define OOC_LIBRADOS_CALLS(X)                                                                    \
  X(create) X(conf_read_file) X(conf_parse_env) X(conf_set) X(connect) X(shutdown) X(cct)        \
  X(cluster_stat) X(getaddrs) X(blocklist_add) X(wait_for_latest_osdmap) X(buffer_free)          \
  X(ioctx_create) X(ioctx_destroy) X(ioctx_set_namespace) X(read) X(write_full) X(remove)        \
  X(lock_exclusive) X(unlock) X(list_lockers) X(nobjects_list_open) X(nobjects_list_next)        \
  X(nobjects_list_close) X(aio_create_completion2) X(aio_get_return_value) X(aio_release)        \
  X(create_read_op) X(release_read_op) X(read_op_read) X(aio_read_op_operate) X(create_write_op) \
  X(read_op_getxattrs) X(getxattrs_next) X(getxattrs_end) X(write_op_setxattr)                   \
  X(write_op_rmxattr) X(release_write_op) X(write_op_assert_exists) X(write_op_create)           \
  X(write_op_write) X(write_op_write_full) X(write_op_truncate) X(write_op_remove)               \
  X(aio_write_op_operate) X(write_op_assert_version) X(get_last_version)                         \
  X(ioctx_snap_set_read) X(ioctx_selfmanaged_snap_create) X(ioctx_selfmanaged_snap_remove)       \
  X(ioctx_selfmanaged_snap_rollback) X(ioctx_selfmanaged_snap_set_write_ctx)
// clang-format on
#define OOC_LIBRADOS_CALL(name) decltype(&::rados_##name) name = nullptr;
  OOC_LIBRADOS_CALLS(OOC_LIBRADOS_CALL)
#undef OOC_LIBRADOS_CALL
};

}  // namespace ooc::storage
