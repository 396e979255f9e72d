#include "storage/chunked/chunked_dataset.hpp"

namespace ooc::storage {

std::string chunked_dataset::file_of(std::uint64_t chunk) const {
  const std::vector<std::uint64_t> at = grid.index_of(chunk);
  const std::vector<std::size_t>& in_shard = chunks.files->chunks;
  std::string file = chunks.files->names;
  for (std::size_t d = 0; d < at.size(); ++d) {
    if (d > 0) file += chunks.files->separator;
    file += std::to_string(in_shard.empty() ? at[d] : at[d] / in_shard[d]);
  }
  return file;
}

failure chunked_dataset::failed(const std::string& in, std::uint64_t chunk, std::error_code code,
                                const std::string& why, bool reading) const {
  return {code, (reading ? "reading '" : "writing '") + in + "', dataset '" + chunks.dataset + "': chunk " +
                    grid.place_of(chunk) + " " + why};
}

}  // namespace ooc::storage
