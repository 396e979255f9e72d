// An I/O node whose server was not there when the store was opened.
//
// Requests wait until the metadata server knows the server to be up, and fail after the deadline
// with an error that names the node.  From then on this is the remote node.  A thread does the
// asking, from the first request on: who only looks at names never waits for the node.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "storage/remote/remote_node.hpp"

namespace ooc::storage {

/// How to reach the node; nothing while it is not there.  Throws ooc::error where nobody can say.
/// Called on a thread of its own; should answer within a second or so.
using node_lookup = std::function<std::optional<remote_node_options>()>;

/// `name` is for messages: "node 3".
std::shared_ptr<io_service> await_remote_node(std::string name, node_lookup lookup,
                                              std::chrono::milliseconds deadline);

}  // namespace ooc::storage
