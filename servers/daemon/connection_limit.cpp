#include "daemon/connection_limit.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace ooc::servers {

namespace {

constexpr unsigned usual = 4096;

}  // namespace

unsigned connection_limit(unsigned given) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return given != 0 ? given : usual;
  files.rlim_cur = files.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &files);  // what cannot be had is refused connection by connection
  const rlim_t most = files.rlim_max == RLIM_INFINITY ? usual : files.rlim_max / 2;
  return given != 0 ? given : static_cast<unsigned>(std::min<rlim_t>(usual, std::max<rlim_t>(most, 16)));
}

}  // namespace ooc::servers
