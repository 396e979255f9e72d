#include <algorithm>
#include <vector>

#include "base/command.hpp"
#include "base/interrupt.hpp"
#include "formats/plain_file.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

int run_cat(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("buffer", po::value<std::string>()->value_name("BYTES"), "memory for the buffer; otherwise 8MiB");
  line.positional("PATH", true);
  if (!line.parse(arguments)) return success;
  const std::uint64_t buffer = std::max<std::uint64_t>(4096, line.bytes("buffer", 8_MiB));
  // Everything is opened before anything is written.
  std::vector<storage::opened_file> files;
  for (const located& l : line.locate_all("PATH"))
    files.push_back(l.store.core()->open(l.path, storage::open_mode::read));
  catch_interrupts();
  output_file out("-", false);
  std::vector<std::byte> memory;
  for (const storage::opened_file& f : files) {
    memory.resize(static_cast<std::size_t>(std::min(f.meta.size, buffer)));
    for (std::uint64_t at = 0; at < f.meta.size; at += memory.size()) {
      check_interrupted();
      const auto part =
          std::span(memory).first(static_cast<std::size_t>(std::min<std::uint64_t>(memory.size(), f.meta.size - at)));
      throw_if(f.file->read(request::contiguous(at, part.size()), part.data()));
      out.append(part);
    }
  }
  out.publish();
  return success;
}

}  // namespace

const command cat{"cat", "cat [options] PATH...",
                  "Writes the bytes of files to standard output, in the files' order (`ooc export "
                  "PATH -`: row-major).",
                  run_cat};

}  // namespace ooc::tool
