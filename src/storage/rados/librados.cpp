#include "storage/rados/librados.hpp"

#include <dlfcn.h>

#include <string>

#include "oocarray/error.hpp"
#include "storage/base/refuse.hpp"

namespace ooc::storage {

namespace {

librados load() {
  // Never closed: it has threads, and others may use it too.
  void* const library = ::dlopen("librados.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    refuse(errc::not_a_store, std::string("a store in RADOS needs librados, which cannot be loaded (") + ::dlerror() +
                                  "): install it (Debian: librados2)");
  librados calls;
#define OOC_LIBRADOS_CALL(name)                                                               \
  calls.name = reinterpret_cast<decltype(&::rados_##name)>(::dlsym(library, "rados_" #name)); \
  if (calls.name == nullptr) refuse(errc::not_a_store, "librados has no rados_" #name ": install a later release");
  OOC_LIBRADOS_CALLS(OOC_LIBRADOS_CALL)
#undef OOC_LIBRADOS_CALL
  return calls;
}

}  // namespace

const librados& librados::get() {
  static const librados calls = load();
  return calls;
}

}  // namespace ooc::storage
