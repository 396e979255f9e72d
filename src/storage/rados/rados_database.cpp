#include "storage/rados/rados_database.hpp"

#include <dlfcn.h>
#include <sqlite3.h>

// After SQLite's
#include <libcephsqlite.h>

#include <cerrno>
#include <cstdlib>

#include "oocarray/error.hpp"
#include "storage/base/mutex.hpp"
#include "storage/base/refuse.hpp"

namespace ooc::storage {

namespace {

struct vfs {
  decltype(&::sqlite3_cephsqlite_init) init = nullptr;
  decltype(&::cephsqlite_setcct) set_context = nullptr;
};

vfs load_vfs() {
  void* const library = ::dlopen("libcephsqlite.so", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    refuse(errc::not_a_store,
           std::string("the metadata of a store in RADOS need libcephsqlite, which cannot be loaded (") + ::dlerror() +
               "): install it (Debian: libsqlite3-mod-ceph)");
  vfs v;
  v.init = reinterpret_cast<decltype(v.init)>(::dlsym(library, "sqlite3_cephsqlite_init"));
  v.set_context = reinterpret_cast<decltype(v.set_context)>(::dlsym(library, "cephsqlite_setcct"));
  if (v.init == nullptr || v.set_context == nullptr)
    refuse(errc::not_a_store, "libcephsqlite lacks a call: install a later release");
  return v;
}

/// SQLite gives an extension its calls when it opens a database.
void register_with_sqlite(const vfs& v) {
  auto* const entry = reinterpret_cast<void (*)()>(v.init);
  sqlite3_auto_extension(entry);
  sqlite3* passing = nullptr;
  (void)sqlite3_open_v2(":memory:", &passing, SQLITE_OPEN_READWRITE, nullptr);
  sqlite3_close(passing);
  sqlite3_cancel_auto_extension(entry);
  if (sqlite3_vfs_find("ceph") == nullptr) refuse(errc::not_a_store, "libcephsqlite does not work with this SQLite");
}

// Its own names: SimpleRADOSStriper.h of Ceph.
constexpr const char* first_object = ".0000000000000000";
constexpr const char* lock_of_database = "striper.lock";

}  // namespace

std::string use_rados_database(const rados_pool& pool, const std::string& name) {
  static mutex one_at_a_time;
  static std::string cluster;  // of the process
  const lock_guard lock(one_at_a_time);
  const rados_location& where = pool.where();
  if (const std::string wanted = where.conf + '\n' + where.user; cluster.empty()) {
    static const vfs ceph = load_vfs();
    register_with_sqlite(ceph);
    char* ours = nullptr;
    if (const int rc = ceph.set_context(static_cast<CephContext*>(pool.calls().cct(pool.cluster())), &ours); rc < 0)
      throw_if(pool.failed(rc, "connecting to the cluster for the metadata"));
    std::free(ours);
    cluster = wanted;
  } else if (cluster != wanted) {
    refuse(errc::not_a_store,
           "store '" + where.name() +
               "': this process has a store of another cluster of Ceph open, or of another user, and "
               "can have the metadata of one: use another process, or a metadata server");
  }
  return where.pool + ":" + where.name_space + "/" + name;
}

std::string holder_of_rados_database(const rados_pool& pool, const std::string& name) {
  return pool.lockers(name + first_object, lock_of_database);
}

}  // namespace ooc::storage
