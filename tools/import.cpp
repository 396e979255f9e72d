#include <algorithm>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>

#include "command.hpp"
#include "entry_text.hpp"
#include "oocarray/error.hpp"
#include "plain_file.hpp"
#include "progress.hpp"
#include "slab_pump.hpp"
#include "storage/layout/element_type.hpp"
#include "storage/layout/npy.hpp"
#include "storage/service/store_core.hpp"
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

int run_import(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("format", po::value<std::string>()->value_name("npy|raw"),
                "of the file; otherwise npy where its name ends in .npy");
  line.option()("type", po::value<std::string>()->value_name("TYPE"),
                "element type of a raw file: b1 f2 f4 f8 c8 c16 i1..i8 u1..u8 structN");
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
  const std::string file = line.required("FILE"), name = line.required("PATH");
  const std::uint64_t buffer = std::max<std::uint64_t>(4096, line.bytes("buffer", 32_MiB));

  const input_file in(file);
  const source from = is_npy(line, file) ? read_npy(line, file, in) : read_raw(line, file);
  require_array(file, from.array.extents);
  const std::uint64_t bytes = storage::array_bytes(from.array);
  if (in.is_stream()) {
    // How much there is shows at its end.
  } else if (const std::uint64_t present = in.size() - std::min(in.size(), from.offset); present != bytes)
    throw usage_error(errc::invalid_request, "'" + file + "' holds " + std::to_string(present) +
                                                 " bytes of data, but its shape needs " +
                                                 std::to_string(bytes));

  const auto [store, path] = line.locate(name);
  storage::new_file made;
  made.array = from.array;
  if (line.has("tile")) made.array.tile = parse_shape(line.text("tile"), "--tile");
  made.size = storage::array_file_bytes(made.array);
  made.sparse = line.has("sparse");
  made.striping = target_striping(line, made.array, made.size, store.nodes());

  catch_interrupts();
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
    if (in.is_stream()) in.expect_end();
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
                           "Copies a .npy or raw file into the store.", run_import};

}  // namespace ooc::tool
