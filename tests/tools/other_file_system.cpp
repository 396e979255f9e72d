// statfs() for a program into which this is preloaded: what lies in a folder `network` is on the file system of the
// type OOC_TEST_FILE_SYSTEM (a number), everything else is where it is.
#include <dlfcn.h>
#include <sys/vfs.h>

#include <cstdlib>
#include <cstring>

namespace {

template <class S>
int other(const char* name, const char* path, S* s) noexcept {
  using function = int (*)(const char*, S*);
  const int result = reinterpret_cast<function>(::dlsym(RTLD_NEXT, name))(path, s);
  const char* const type = std::getenv("OOC_TEST_FILE_SYSTEM");
  if (result == 0 && type != nullptr && std::strstr(path, "/network") != nullptr)
    s->f_type = std::strtol(type, nullptr, 0);
  return result;
}

}  // namespace

extern "C" {

int statfs(const char* path, struct statfs* s) noexcept { return other("statfs", path, s); }
int statfs64(const char* path, struct statfs64* s) noexcept { return other("statfs64", path, s); }

}  // extern "C"
