#include <algorithm>
#include <fstream>
#include <optional>

#include "command.hpp"
#include "oocarray/error.hpp"
#include "plain_file.hpp"
#include "progress.hpp"
#include "slab_pump.hpp"
#include "storage/element_type.hpp"
#include "storage/npy.hpp"
#include "storage/store_core.hpp"
#include "target_striping.hpp"

namespace ooc::tool {

namespace {

/// Where the elements lie in the source file and what they are.
struct source {
  storage::array_description array;
  std::uint64_t offset = 0;
};

bool is_npy(const command_line& line, const std::string& file) {
  const std::string format = line.text_or("format", file.ends_with(".npy") ? "npy" : "raw");
  if (format != "npy" && format != "raw")
    throw usage_mistake("--format: '" + format + "' is neither npy nor raw");
  return format == "npy";
}

source read_npy(const command_line& line, const std::string& file) {
  for (const char* o : {"type", "shape"})
    if (line.has(o))
      throw usage_mistake(std::string("--") + o + " is for raw files; a .npy file says it itself");
  std::ifstream in(file, std::ios::binary);
  const storage::npy_header h = storage::read_npy_header(in, file);
  source s;
  s.offset = h.data_offset;
  s.array.element_type = h.element_type;
  s.array.element_size = h.element_size;
  s.array.extents = h.shape.empty() ? storage::index{1} : h.shape;
  if (h.fortran_order && h.shape.size() > 1) {
    if (!line.has("transpose"))
      throw usage_error(
          errc::type_mismatch,
          "'" + file +
              "' is in Fortran order; give --transpose to take its bytes as they are, "
              "with the dimensions reversed, or save it with np.ascontiguousarray()");
    std::reverse(s.array.extents.begin(), s.array.extents.end());
  }
  return s;
}

source read_raw(const command_line& line, const std::string& file) {
  if (!line.has("type") || !line.has("shape"))
    throw usage_mistake("'" + file + "' is raw bytes: say what they are with --type and --shape");
  source s;
  s.array.element_type = line.text("type");
  s.array.element_size = storage::element_size(s.array.element_type);
  if (s.array.element_size == 0)
    throw usage_mistake("--type: '" + s.array.element_type + "' is none of " +
                        storage::element_types);
  s.array.extents = parse_shape(line.text("shape"), "--shape");
  return s;
}

int run(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("format", po::value<std::string>()->value_name("npy|raw"),
                "of the file; otherwise npy where its name ends in .npy");
  line.option()("type", po::value<std::string>()->value_name("TYPE"),
                "element type of a raw file: f4 f8 c8 c16 i1..i8 u1..u8 structN");
  line.option()("shape", po::value<std::string>()->value_name("NxM"),
                "extents of a raw file, slowest first");
  line.option()("transpose", "take a Fortran-order .npy with its dimensions reversed");
  line.option()("tile", po::value<std::string>()->value_name("NxM"),
                "store in tiles of this shape instead of row-major");
  add_striping_options(line);
  line.option()("sparse", "reserve no space beforehand");
  line.option()("buffer", po::value<std::string>()->value_name("BYTES"),
                "memory for each of the two buffers; otherwise 32MiB");
  line.option()("quiet,q", "no progress bar");
  line.positional("FILE");
  line.positional("PATH");
  if (!line.parse(arguments)) return success;
  const std::string file = line.required("FILE"), path = line.required("PATH");
  const std::uint64_t buffer = std::max<std::uint64_t>(4096, line.bytes("buffer", 32_MiB));

  const input_file in(file);
  const source from = is_npy(line, file) ? read_npy(line, file) : read_raw(line, file);
  const std::uint64_t bytes = storage::array_bytes(from.array);
  if (const std::uint64_t present = in.size() - std::min(in.size(), from.offset); present != bytes)
    throw usage_error(errc::invalid_request, "'" + file + "' holds " + std::to_string(present) +
                                                 " bytes of data, but its shape needs " +
                                                 std::to_string(bytes));

  const ooc::store store = line.open_store();
  storage::new_file made;
  made.array = from.array;
  if (line.has("tile")) made.array.tile = parse_shape(line.text("tile"), "--tile");
  made.size = storage::array_file_bytes(made.array);
  made.sparse = line.has("sparse");
  made.striping = target_striping(line, made.array, made.size, store.nodes());

  auto& core = *store.core();
  const storage::opened_file target = core.make(path, made);
  try {
    std::optional<progress> bar;
    if (!line.has("quiet")) bar.emplace("import " + path, bytes);
    std::uint64_t at = from.offset;
    pump_slabs(
        made.array, buffer,
        [&](const storage::index&, const storage::index&, std::span<std::byte> slab) {
          in.read(at, slab);
          at += slab.size();
        },
        [&](const storage::index& lower, const storage::index& upper, std::span<std::byte> slab) {
          throw_if(target.file->write(storage::box_request(made.array, lower, upper), slab.data()));
          if (bar) bar->advance(slab.size());
        });
    throw_if(target.file->sync());
    if (bar) bar->finish();
  } catch (...) {
    core.abandon(target);
    throw;
  }
  core.commit(target);
  core.metadata().sync();
  return success;
}

}  // namespace

const command import_array{"import", "import [options] FILE PATH",
                           "Copies a .npy or raw file into the store.", run};

}  // namespace ooc::tool
