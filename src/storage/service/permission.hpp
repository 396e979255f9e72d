// Permission bits as in POSIX, without access lists.
#pragma once

#include <algorithm>
#include <cstdint>

#include "storage/service/metadata_service.hpp"

namespace ooc::storage {

inline constexpr std::uint32_t may_read = 4, may_write = 2, may_enter = 1;

/// True where `group` is one of the caller's.
inline bool is_member(const credentials& who, std::uint32_t group) noexcept {
  return who.gid == group || std::find(who.groups.begin(), who.groups.end(), group) != who.groups.end();
}

/// True where `who` has all of `bits` on something with this owner, group and mode.
inline bool permits(const credentials& who, std::uint32_t owner, std::uint32_t group, std::uint32_t mode,
                    std::uint32_t bits) noexcept {
  if (who.uid == 0) return true;
  const std::uint32_t granted = who.uid == owner ? mode >> 6 : is_member(who, group) ? mode >> 3 : mode;
  return (granted & bits) == bits;
}

inline bool permits(const credentials& who, const entry& e, std::uint32_t bits) noexcept {
  return permits(who, e.owner, e.group, e.mode, bits);
}

}  // namespace ooc::storage
