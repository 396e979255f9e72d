// The metrics of an I/O server, for Prometheus; docs/cluster.md has the list.
#pragma once

#include <string>

#include "storage/wire/messages.hpp"

namespace ooc::iod {

std::string metrics_of(const wire::node_statistics& s);

}  // namespace ooc::iod
