#include <optional>

#include "command.hpp"
#include "oocarray/error.hpp"
#include "plain_file.hpp"
#include "progress.hpp"
#include "slab_pump.hpp"
#include "storage/layout/npy.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

int run_export(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("format", po::value<std::string>()->value_name("npy|raw"),
                "of the file; otherwise npy where its name ends in .npy");
  line.option()("force,f", "replace the file if it is there");
  line.option()("buffer", po::value<std::string>()->value_name("BYTES"),
                "memory for each of the two buffers; otherwise 32MiB");
  line.option()("quiet,q", "no progress bar");
  line.positional("PATH");
  line.positional("FILE");
  if (!line.parse(arguments)) return success;
  const std::string path = line.required("PATH"), file = line.required("FILE");
  const std::string format = line.text_or("format", file.ends_with(".npy") ? "npy" : "raw");
  if (format != "npy" && format != "raw")
    throw usage_mistake("--format: '" + format + "' is neither npy nor raw");
  const std::uint64_t buffer = std::max<std::uint64_t>(4096, line.bytes("buffer", 32_MiB));

  const located from = line.locate(path);
  const storage::opened_file source = from.store.core()->open(from.path, storage::open_mode::read);
  storage::array_description array = source.meta.array;
  if (array.extents.empty()) {  // a plain file: its bytes
    array = {};
    array.element_type = "u1";
    array.extents = {source.meta.size};
  }
  if (array.element_type.empty())
    array.element_type = "struct" + std::to_string(array.element_size);
  if (storage::array_file_bytes(array) > source.meta.size)
    throw integrity_error(errc::corrupt, "'" + source.meta.path +
                                             "': its entry describes more data "
                                             "than the file has");

  catch_interrupts();
  output_file out(file, line.has("force"));
  if (format == "npy") {
    const std::string header = storage::format_npy_header(array.element_type, array.extents);
    out.append(std::as_bytes(std::span(header)));
  }
  const std::uint64_t bytes = storage::array_bytes(array);
  std::optional<progress> bar;
  if (!line.has("quiet")) bar.emplace("export " + path, bytes);
  pump_slabs(
      array, buffer,
      [&](const storage::index& lower, const storage::index& upper, std::span<std::byte> slab) {
        throw_if(source.file->read(storage::box_request(array, lower, upper), slab.data()));
      },
      [&](const storage::index&, const storage::index&, std::span<std::byte> slab) {
        out.append(slab);
        if (bar) bar->advance(slab.size());
      });
  out.publish();
  if (bar) bar->finish();
  return success;
}

}  // namespace

const command export_array{"export", "export [options] PATH FILE",
                           "Copies an array out of the store, row-major.", run_export};

}  // namespace ooc::tool
