// The calls of an I/O node on the wire: the list of them, which docs/wire-format.md has as well.
#pragma once

#include <cstdint>

#include "storage/layout/file_shape.hpp"
#include "storage/service/io_service.hpp"
#include "storage/wire/frame.hpp"

namespace ooc::wire {

struct served_call {
  storage::io_kind call{};
  frame_kind frame{};
  std::uint32_t rights = 0;  ///< one of which its capability must grant; 0: it is about no file, and has no body
};

/// All but permit(), which nodes behind servers have no use for.
inline constexpr served_call served_calls[] = {
    {storage::io_kind::read, frame_kind::read, storage::right_read},
    {storage::io_kind::write, frame_kind::write, storage::right_write},
    {storage::io_kind::create, frame_kind::create, storage::right_make},
    {storage::io_kind::resize, frame_kind::resize, storage::right_resize},
    {storage::io_kind::remove, frame_kind::remove, storage::right_remove},
    // A reader may also wait until the writes of others are durable.
    {storage::io_kind::sync, frame_kind::sync, storage::right_write | storage::right_read},
    {storage::io_kind::advance, frame_kind::advance, storage::right_write},
    {storage::io_kind::prepare, frame_kind::prepare, storage::right_write},
    {storage::io_kind::roll_back, frame_kind::roll_back, storage::right_write},
    {storage::io_kind::find_changes, frame_kind::find_changes, storage::right_read},
    {storage::io_kind::trim, frame_kind::trim, storage::right_write},
    // And right_write for the file that gets the bytes.
    {storage::io_kind::clone, frame_kind::clone, storage::right_read},
    {storage::io_kind::verify, frame_kind::verify, storage::right_read},
    {storage::io_kind::list, frame_kind::list, 0},
    {storage::io_kind::find_locality, frame_kind::ping, 0},
};

/// Null where a node has no such call.
constexpr const served_call* served(frame_kind frame) noexcept {
  for (const served_call& c : served_calls)
    if (c.frame == frame) return &c;
  return nullptr;
}

/// Of a call that is in the list.
constexpr const served_call& served(storage::io_kind call) noexcept {
  const served_call* c = served_calls;
  while (c->call != call) ++c;
  return *c;
}

}  // namespace ooc::wire
