// The transfer engine on io_uring.
#pragma once

#include <memory>

#include "storage/object/transfer.hpp"

namespace ooc::storage {

/// Null where the kernel, its settings or a sandbox refuse a ring.  To be called by the thread that
/// will use the engine.
std::unique_ptr<transfer_engine> make_uring_engine();

}  // namespace ooc::storage
