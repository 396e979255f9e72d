// The metrics of the metadata server, and those that it knows of the I/O servers, for Prometheus; docs/cluster.md has
// the list.
#pragma once

#include <string>
#include <vector>

#include "metad/node_table.hpp"
#include "storage/wire/metadata_messages.hpp"

namespace ooc::metad {

std::string metrics_of(const wire::pb::MetadataStatistics& s, const std::vector<node_table::state>& nodes);

}  // namespace ooc::metad
