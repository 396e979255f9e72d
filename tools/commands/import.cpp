#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <sstream>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "base/named_path.hpp"
#include "copying/box_walk.hpp"
#include "copying/slab_pump.hpp"
#include "copying/target_striping.hpp"
#include "formats/file_format.hpp"
#include "formats/hdf5_file.hpp"
#include "formats/plain_file.hpp"
#include "oocarray/error.hpp"
#include "progress/progress.hpp"
#include "storage/layout/element_type.hpp"
#include "storage/layout/npy.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

/// Where the elements lie in the source file and what they are.
struct source {
  storage::array_description array;
  std::uint64_t offset = 0;
  std::unique_ptr<hdf5_input> hdf5;
  box part;  ///< of the dataset
};

/// The header of a .npy stream, as far as its first bytes say how long it is.
std::string npy_header_of(const input_file& in) {
  std::string text(10, '\0');
  const auto take = [&](std::size_t at) {
    in.read(0, std::as_writable_bytes(std::span(text).subspan(at)));
  };
  take(0);
  const auto byte = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(text[i])}; };
  if (!text.starts_with("\x93NUMPY")) return text;  // for read_npy_header() to refuse
  std::size_t length = byte(8) | byte(9) << 8;
  if (byte(6) > 1) {
    text.resize(12);
    take(10);
    length |= byte(10) << 16 | byte(11) << 24;
  }
  constexpr std::size_t longest = 1 << 20;
  const std::size_t so_far = text.size();
  text.resize(so_far + std::min(length, longest));
  take(so_far);
  return text;
}

source read_npy(const command_line& line, const std::string& file, const input_file& opened) {
  for (const char* o : {"type", "shape"})
    if (line.has(o))
      throw usage_mistake(std::string("--") + o + " is for raw files; a .npy file says it itself");
  std::ifstream plain;
  std::istringstream head;
  if (opened.is_stream())
    head.str(npy_header_of(opened));
  else
    plain.open(file, std::ios::binary);
  std::istream& in = opened.is_stream() ? static_cast<std::istream&>(head) : plain;
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

source read_hdf5(const command_line& line, const std::string& file) {
  for (const char* o : {"type", "shape", "transpose"})
    if (line.has(o))
      throw usage_mistake(std::string("--") + o + " is not for HDF5 files, which say themselves what they hold");
  source s;
  s.hdf5 = std::make_unique<hdf5_input>(file, line.text_or("dataset", ""));
  s.array = s.hdf5->array();
  return s;
}

/// What an ooc_array could not open is no array.
void require_array(const std::string& file, const std::vector<std::uint64_t>& extents) {
  constexpr std::size_t max_dimensions = 8;
  if (extents.size() > max_dimensions)
    throw usage_error(errc::invalid_request,
                      "'" + file + "': " + shape_text(extents) + " has " +
                          std::to_string(extents.size()) +
                          " dimensions, and an array has at most 8; give it fewer (a.reshape(...))");
  if (std::find(extents.begin(), extents.end(), 0u) != extents.end())
    throw usage_error(errc::invalid_request,
                      "'" + file + "': an array of " + shape_text(extents) +
                          " has no elements, and every extent must be at least 1");
}

storage::index moved_back(storage::index at, const storage::index& back_by) {
  for (std::size_t d = 0; d < at.size(); ++d) at[d] -= back_by[d];
  return at;
}

int run_import(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("format", po::value<std::string>()->value_name("npy|raw|hdf5"),
                "of the file; otherwise by the end of its name (.npy, .h5, .hdf5, .nc), or HDF5's signature");
  line.option()("dataset", po::value<std::string>()->value_name("NAME"),
                "of an HDF5 file; otherwise the only one in it");
  line.option()("box", po::value<std::string>()->value_name("L:U,..."),
                "only these elements of an HDF5 dataset, for instance 10:20,:");
  line.option()("missing-as-fill",
                "where an HDF5 dataset takes elements from files that are missing or too short: the fill value");
  line.option()("memory", po::value<std::string>()->value_name("BYTES"),
                "what unpacking a chunk of HDF5 may take; otherwise what the machine has available, or the cgroup may have");
  line.option()("type", po::value<std::string>()->value_name("TYPE"),
                "element type of a raw file: b1 f2 f4 f8 c8 c16 i1..i8 u1..u8 structN");
  line.option()("shape", po::value<std::string>()->value_name("NxM"),
                "extents of a raw file, slowest first");
  line.option()("transpose", "take a Fortran-order .npy with its dimensions reversed");
  line.option()("tile", po::value<std::string>()->value_name("NxM"),
                "store in tiles of this shape instead of row-major");
  line.option()("max-extents", po::value<std::string>()->value_name("NxM"),
                "what resize() may make of the extents: with --tile a number for each dimension, else one for the first");
  add_striping_options(line);
  line.option()("sparse", "reserve no space beforehand");
  line.option()("buffer", po::value<std::string>()->value_name("BYTES"),
                "memory for each of the two buffers; otherwise 32MiB");
  line.option()("quiet,q", "no progress bar");
  line.positional("FILE");
  line.positional("PATH");
  if (!line.parse(arguments)) return success;
  const std::string file = line.required("FILE"), name = line.required("PATH");
  const std::uint64_t buffer = std::max<std::uint64_t>(4096, line.bytes("buffer", 32_MiB));

  const file_format format = format_of_input(line, file);
  if (format != file_format::hdf5)
    for (const char* o : {"dataset", "box", "missing-as-fill", "memory"})
      if (line.has(o)) throw usage_mistake(std::string("--") + o + " is for HDF5 files");
  std::optional<input_file> in;
  if (format != file_format::hdf5) in.emplace(file);
  source from = format == file_format::hdf5  ? read_hdf5(line, file)
                : format == file_format::npy ? read_npy(line, file, *in)
                                             : read_raw(line, file);
  require_array(file, from.array.extents);
  from.part = parse_box(line.text_or("box", ""), from.array.extents);
  from.array.extents = from.part.extents();
  if (from.hdf5) {
    from.hdf5->check_memory(line.has("memory") ? memory_limit{line.bytes("memory", 0), "of --memory"} : available_memory());
    from.hdf5->check_sources(from.part.lower, from.part.upper, line.has("missing-as-fill"));
  }
  const std::uint64_t bytes = storage::array_bytes(from.array);
  if (!in || in->is_stream()) {
    // How much there is of a stream shows at its end.
  } else if (const std::uint64_t present = in->size() - std::min(in->size(), from.offset); present != bytes)
    throw usage_error(errc::invalid_request, "'" + file + "' holds " + std::to_string(present) +
                                                 " bytes of data, but its shape needs " +
                                                 std::to_string(bytes) +
                                                 "; give its shape, or copy it again where it was cut short");

  const auto [store, path] = line.locate(name);
  storage::new_file made;
  made.array = from.array;
  if (line.has("tile")) made.array.tile = parse_shape(line.text("tile"), "--tile");
  if (line.has("max-extents")) {
    made.array.max_extents = parse_shape(line.text("max-extents"), "--max-extents");
    if (made.array.max_extents.size() != (made.array.tile.empty() ? 1 : made.array.extents.size()))
      throw usage_mistake("--max-extents: '" + line.text("max-extents") +
                          "' must have a number for each dimension with --tile, and else one, for the first");
    if (has_reserved_grid(made.array)) made.array.reached = made.array.extents;
  }
  made.size = storage::array_file_bytes(made.array);
  made.sparse = line.has("sparse") || has_reserved_grid(made.array);
  std::map<std::string, std::string> attributes;
  if (from.hdf5) {
    made.fill = from.hdf5->fill();
    attributes = from.hdf5->attributes();
    for (const std::string& what : from.hdf5->left_out())
      std::cerr << "note: " << printable(what) << ": it is left out\n";
  }
  made.striping = target_striping(line, made.array, made.size, store.nodes());

  catch_interrupts();
  auto& core = *store.core();
  // What has attributes gets its name when it has them.
  const std::string passing = attributes.empty() ? path : passing_path(trimmed(path));
  if (!attributes.empty() && store.exists(path))
    throw usage_error({EEXIST, std::generic_category()}, "'" + path +
                          "' exists already; remove it first, or take another name");
  const storage::opened_file target = core.make(passing, made);
  try {
    std::optional<progress> bar;
    if (!line.has("quiet")) bar.emplace("import " + path, bytes);
    const slab_step drain = [&](const storage::index& lower, const storage::index& upper, std::span<std::byte> slab) {
      throw_if(target.file->write(storage::box_request(made.array, moved_back(lower, from.part.lower),
                                                       moved_back(upper, from.part.lower)),
                                  slab.data()));
      if (bar) bar->advance(slab.size());
    };
    if (from.hdf5) {
      // In pieces of the dataset where it has some: each is unpacked once.
      pump(
          std::max<std::uint64_t>(from.array.element_size, std::min(buffer, bytes)),
          [&](const auto& step) {
            for_each_piece(from.part, from.hdf5->chunk(), from.array.element_size, buffer, step);
          },
          [&](const storage::index& lower, const storage::index& upper, std::span<std::byte> slab) {
            from.hdf5->read(lower, upper, slab);
          },
          drain);
      // Once more, as libhdf5 would not have said that a source has gone meanwhile.
      from.hdf5->check_sources(from.part.lower, from.part.upper, line.has("missing-as-fill"));
      if (const std::string filled = from.hdf5->filled(); !filled.empty()) std::cerr << "note: " << printable(filled) << "\n";
    } else {
      std::uint64_t at = from.offset;
      pump_slabs(
          made.array, buffer,
          [&](const storage::index&, const storage::index&, std::span<std::byte> slab) {
            in->read(at, slab);
            at += slab.size();
          },
          drain);
      if (in->is_stream()) in->expect_end();
    }
    throw_if(target.file->sync());
    if (bar) bar->finish();
  } catch (...) {
    core.abandon(target);
    throw;
  }
  core.commit(target);
  if (!attributes.empty()) {
    try {
      for (const auto& [key, value] : attributes) core.metadata().set_attribute(passing, key, value);
      core.metadata().rename(passing, path);
    } catch (...) {
      core.remove(passing);
      throw;
    }
  }
  core.sync_entry(target);
  return success;
}

}  // namespace

const command import_array{"import", "import [options] FILE PATH",
                           "Copies a .npy, raw or HDF5 (NetCDF-4) file into the store.", run_import};

}  // namespace ooc::tool
