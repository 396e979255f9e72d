// A store whose metadata are real (SQLite in a temporary folder) and whose nodes are in memory.
#pragma once

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "oocarray/store.hpp"
#include "storage/chunked/packed_file.hpp"
#include "storage/namespace/local_metadata.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/service/store_core.hpp"
#include "support/memory_io_service.hpp"
#include "support/temporary_folder.hpp"

namespace ooc::testing {

struct memory_store {
  explicit memory_store(std::size_t node_count, credentials who = {::geteuid(), ::getegid()}) {
    make_metadata_database(database(), "test", who);
    metadata = std::make_shared<local_metadata>(database(), "test", who);
    striped_file::nodes all;
    for (std::size_t i = 0; i < node_count; ++i) {
      nodes.push_back(std::make_shared<memory_io_service>("memory" + std::to_string(i)));
      all.push_back(nodes.back());
    }
    core = std::make_shared<store_core>("memory:", "test", metadata, all, 0, unpacked_node);
  }

  std::filesystem::path database() const { return folder / "metadata.sqlite"; }
  ooc::store handle() const { return ooc::store(core); }

  temporary_folder folder{folder_in_memory()};
  std::shared_ptr<metadata_service> metadata;
  std::vector<std::shared_ptr<memory_io_service>> nodes;
  std::shared_ptr<store_core> core;
};

}  // namespace ooc::testing
