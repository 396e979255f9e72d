#include "runtime/blocks/address_room.hpp"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "runtime/blocks/sys.hpp"
#include "storage/base/page.hpp"
#include "storage/base/refuse.hpp"

namespace ooc::detail {

namespace {

constexpr std::uint64_t least_for_the_program = std::uint64_t{128} << 20;

std::uint64_t kept_of(std::uint64_t limit) noexcept { return std::max(limit / 4, 2 * least_for_the_program); }

}  // namespace

address_room address_room::now() {
  rlimit r{};
  if (::getrlimit(RLIMIT_AS, &r) != 0 || r.rlim_cur == RLIM_INFINITY) return {};
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return {r.rlim_cur, r.rlim_cur - std::min<std::uint64_t>(r.rlim_cur, pages * kernel_page_bytes())};
}

bool address_room::has(std::uint64_t bytes) const noexcept {
  return limit == no_limit || (bytes <= left && left - bytes >= least_for_the_program);
}

bool address_room::has_plenty(std::uint64_t bytes) const noexcept {
  return limit == no_limit || bytes + kept_of(limit) <= left;
}

std::uint64_t address_room::guard_beside(std::uint64_t bytes, std::uint64_t most) const noexcept {
  if (limit == no_limit) return most;
  if (!has_plenty(bytes)) return 0;
  return std::min(most, (left - bytes - kept_of(limit)) / 2 / sys::huge_page * sys::huge_page);
}

void spare_addresses() noexcept {
#ifdef M_ARENA_MAX
  ::mallopt(M_ARENA_MAX, 1);
#endif
}

void refuse_addresses(const std::string& what, std::uint64_t bytes) {
  const std::string why = std::generic_category().message(errno);
  const address_room room = address_room::now();
  refuse(ENOMEM, what + " takes " + std::to_string(bytes) + " bytes of addresses, " +
                     (room.limit == address_room::no_limit
                          ? "which the system does not give (" + why + ")"
                          : "and of the " + std::to_string(room.limit) + " that the process may have (ulimit -v) " +
                                std::to_string(room.left) +
                                " are left, some of which the program needs: raise that limit, or " +
                                "give the runtime less memory"));
}

}  // namespace ooc::detail
