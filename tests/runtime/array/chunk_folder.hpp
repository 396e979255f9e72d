// A folder for chunks that are files of their own, or lie in shards, as oocarray/file_chunks.hpp describes them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "oocarray/file_chunks.hpp"
#include "support/temporary_folder.hpp"

namespace ooc::testing {

struct chunk_folder {
  temporary_folder folder;
  std::string description = (folder.path() / "about").string(), names = (folder.path() / "c" / "").string();

  chunk_folder() { std::ofstream(description) << "what the chunks are"; }
  /// `in_shard`: chunks of a shard along each dimension; 0: each is a file.
  file_chunks chunks(std::vector<std::size_t> chunk, std::size_t in_shard = 0) const {
    const std::size_t dimensions = chunk.size();
    file_chunks c{.dataset = "d", .extents = std::move(chunk), .filters = {}, .table = {}, .fill = {}};
    c.files = chunk_files{.names = names};
    if (in_shard > 0) c.files->chunks.assign(dimensions, in_shard);
    return c;
  }
  std::size_t files() const {
    std::size_t n = 0;
    for (const auto& e : std::filesystem::recursive_directory_iterator(folder.path())) n += e.is_regular_file();
    return n - 1;
  }
};

}  // namespace ooc::testing
