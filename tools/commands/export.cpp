#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "base/named_path.hpp"
#include "copying/array_to_read.hpp"
#include "copying/box_walk.hpp"
#include "copying/salvage.hpp"
#include "copying/slab_pump.hpp"
#include "formats/file_format.hpp"
#include "formats/hdf5_file.hpp"
#include "formats/netcdf_types.hpp"
#include "formats/plain_file.hpp"
#include "oocarray/error.hpp"
#include "progress/progress.hpp"
#include "storage/layout/element_description.hpp"
#include "storage/layout/element_type.hpp"
#include "storage/layout/npy.hpp"
#include "storage/layout/placement.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

storage::index moved(storage::index at, const storage::index& by) {
  for (std::size_t d = 0; d < at.size(); ++d) at[d] += by[d];
  return at;
}

/// Pieces of about 1 MiB, of whole rows where they fit.
storage::index usual_chunk(const storage::array_description& a) {
  storage::index chunk(a.extents.size(), 1);
  std::uint64_t bytes = a.element_size;
  for (std::size_t d = chunk.size(); d-- > 0 && bytes < 1_MiB;) {
    chunk[d] = std::max<std::uint64_t>(1, std::min(1_MiB / bytes, a.extents[d]));
    bytes *= chunk[d];
  }
  return chunk;
}

/// The description in the attribute `dtype` of elements that are so many bytes; empty: there is none.  `type`: of the
/// elements, without a name of the user's.
std::string description_in(const storage::entry& e, const std::string& type) {
  const auto found = e.attributes.find(storage::dtype_attribute);
  if (!type.starts_with("struct") || found == e.attributes.end()) return "";
  try {
    const storage::element_description d = storage::description_of(found->second);
    if (d.size() == e.array.element_size) return d.text();
    throw storage::no_element("it describes elements of " + std::to_string(d.size()) + " bytes, and there are " +
                              std::to_string(e.array.element_size));
  } catch (const storage::no_element& why) {
    throw usage_error(errc::type_mismatch, "'" + e.path + "', attribute 'dtype': " + why.what() +
                                               "; set it right, or remove it to export bytes (`ooc attr rm " + e.path +
                                               " dtype`)");
  }
}

hdf5_dataset dataset_of(const command_line& line, const storage::entry& e, const storage::array_description& part) {
  hdf5_dataset d;
  d.name = trimmed(line.text_or("dataset", last_name(e.path)));
  d.array = part;
  d.fill = e.fill;
  d.attributes = e.attributes;
  d.deflate = line.number("deflate", 0);
  if (line.has("deflate") && (d.deflate < 1 || d.deflate > 9))
    throw usage_mistake("--deflate: " + std::to_string(d.deflate) + " is not 1 to 9");
  if (line.has("chunk"))
    d.chunk = parse_shape(line.text("chunk"), "--chunk");
  else if (d.deflate != 0)
    d.chunk = usual_chunk(part);
  bool fits = d.chunk.empty() || d.chunk.size() == part.extents.size();
  for (const std::uint64_t n : d.chunk) fits = fits && n != 0;
  if (!fits)
    throw usage_mistake("--chunk: '" + line.text("chunk") + "' is no shape of a piece of " + shape_text(part.extents));
  if (storage::array_bytes(part) == 0) d.chunk.clear();  // there are no pieces of nothing
  std::uint64_t bytes = part.element_size;
  for (std::size_t i = 0; i < d.chunk.size(); ++i) {
    d.chunk[i] = std::min(d.chunk[i], part.extents[i]);
    bytes *= d.chunk[i];
  }
  if (!d.chunk.empty() && bytes >= 4_GiB)
    throw usage_mistake("--chunk: pieces of " + std::to_string(bytes) +
                        " bytes are too large; HDF5 takes less than 4 GiB");
  return d;
}

using box_reader = std::function<failure(const storage::index&, const storage::index&, std::byte*)>;

/// How the rows of what is exported lie in the file.
struct row_place {
  std::uint64_t first;  ///< where they begin in the rows of the array
  std::uint64_t tile;   ///< elements of a row that lie together; 0: all
};

row_place place_of_rows(const array_to_read& from, std::uint64_t first) {
  if (from.in_place && from.in_place->chunks) return {first, from.in_place->chunks->extents.back()};
  const auto& tile = from.file.meta.array.tile;
  return {first, tile.empty() ? 0 : tile.back()};
}

/// A box of which not all can be read, row by row.
void read_what_is_left(salvage& rescue, const storage::array_description& part, const row_place& rows,
                       const storage::index& lower, const storage::index& upper, std::byte* out,
                       const box_reader& read) {
  const std::size_t last = lower.size() - 1;
  const std::uint64_t row = upper[last] - lower[last];
  storage::index at = lower;
  for (std::byte* memory = out;; memory += row * rescue.element_size()) {
    std::uint64_t number = 0;  // of the row's first element, in the order of what is exported
    for (std::size_t d = 0; d <= last; ++d) number = number * part.extents[d] + at[d];
    rescue.read(rows.first + lower[last], rows.first + upper[last], rows.tile, number, memory,
                [&](std::uint64_t begin, std::uint64_t end, std::byte* to) {
                  storage::index from = at, until = at;
                  from[last] = begin - rows.first;
                  until[last] = end - rows.first;
                  for (std::size_t d = 0; d < last; ++d) ++until[d];
                  return read(from, until, to);
                });
    std::size_t d = last;
    while (d-- > 0) {
      if (++at[d] < upper[d]) break;
      at[d] = lower[d];
    }
    if (d == static_cast<std::size_t>(-1)) return;
  }
}

/// What of an array goes into the file, and how it is read.
class part_to_export {
 public:
  part_to_export(const command_line& line, const std::string& path)
      : from_(open_to_read(line, path)), array_(from_.file.meta.array), is_array_(!array_.extents.empty()) {
    const storage::entry& e = from_.file.meta;
    if (!is_array_) {  // a plain file: its bytes
      array_ = {};
      array_.element_type = "u1";
      array_.extents = {e.size};
    }
    if (storage::element_size(array_.element_type) != array_.element_size)  // none, or a name of the user's
      array_.element_type = "struct" + std::to_string(array_.element_size);
    description_ = description_in(e, array_.element_type);
    if (storage::array_file_bytes(array_) > e.size)
      throw integrity_error(errc::corrupt, "'" + e.path + "': its entry describes more data than the file has");
    wanted_ = parse_box(line.text_or("box", ""), array_.extents);
    part_ = array_;
    part_.extents = wanted_.extents();
    part_.max_extents.clear();
    if (line.has("box")) part_.tile.clear();
    rescue_ = salvage::of(line, e);
  }
  const storage::entry& entry() const { return from_.file.meta; }
  bool is_array() const { return is_array_; }
  const storage::array_description& part() const { return part_; }
  /// Of the elements as the store has it; empty: none.
  const std::string& description() const { return description_; }
  std::uint64_t bytes() const { return storage::array_bytes(part_); }

  /// Reads a box of the part.
  void fill(const storage::index& lower, const storage::index& upper, std::span<std::byte> slab) {
    const failure f = read(lower, upper, slab.data());
    if (f && rescue_)
      read_what_is_left(*rescue_, part_, place_of_rows(from_, wanted_.lower.back()), lower, upper, slab.data(),
                        [this](const auto& from, const auto& to, std::byte* memory) { return read(from, to, memory); });
    else
      throw_if(f);
  }
  /// What could not be read is told; returns the status of the command.
  int report_lost(const std::string& path) const {
    return rescue_ && rescue_->lost_any() ? complain(rescue_->report(path)) : success;
  }
  /// Attributes of the folder that the array is in, but for the store's own.
  std::map<std::string, std::string> attributes_of_folder() const {
    if (from_.in_place) return {};
    auto all = from_.store.core()->metadata().lookup(folder_of(entry().path)).attributes;
    std::erase_if(all, [](const auto& a) { return storage::is_of_store(a.first); });
    return all;
  }

 private:
  failure read(const storage::index& lower, const storage::index& upper, std::byte* memory) const {
    return from_.file.file->read(storage::box_request(array_, moved(lower, wanted_.lower), moved(upper, wanted_.lower)),
                                 memory);
  }

  const array_to_read from_;
  storage::array_description array_;  ///< all of it
  const bool is_array_;
  std::string description_;
  box wanted_;
  storage::array_description part_;  ///< what goes into the file
  std::optional<salvage> rescue_;
};

using count_bytes = std::function<void(std::uint64_t)>;

hdf5_dataset dataset_in(const command_line& line, const std::string& file, const part_to_export& from) {
  storage::array_description part = from.part();
  part.tile.clear();
  hdf5_dataset d = dataset_of(line, from.entry(), part);
  d.description = from.description();
  d.of_group = from.attributes_of_folder();
  if (part.element_type.starts_with("struct")) d.attributes.erase(storage::dtype_attribute);  // is the type
  if (!line.has("format") && names_netcdf(file)) fit_netcdf(file, d);
  return d;
}

/// In pieces of the file where it has some: each is packed once.
void write_hdf5(hdf5_output& out, const hdf5_dataset& d, part_to_export& from, std::uint64_t buffer,
                const count_bytes& count) {
  const std::uint64_t element = d.array.element_size;
  const box all{storage::index(d.array.extents.size(), 0), d.array.extents};
  pump(
      std::max(element, std::min(buffer, from.bytes())),
      [&](const auto& step) { for_each_piece(all, d.chunk, element, buffer, step); },
      [&](const auto& lower, const auto& upper, std::span<std::byte> slab) { from.fill(lower, upper, slab); },
      [&](const auto& lower, const auto& upper, std::span<std::byte> slab) {
        out.write(lower, upper, slab);
        count(slab.size());
      });
  out.finish();
}

/// Row-major, in slabs of whole tiles.
void write_rows(file_format format, output_file& out, part_to_export& from, std::uint64_t buffer,
                const count_bytes& count) {
  if (format == file_format::npy) {
    const std::string header =
        storage::format_npy_header(from.part().element_type, from.part().extents, from.description());
    out.append(std::as_bytes(std::span(header)));
  }
  pump_slabs(
      from.part(), buffer,
      [&](const auto& lower, const auto& upper, std::span<std::byte> slab) { from.fill(lower, upper, slab); },
      [&](const auto&, const auto&, std::span<std::byte> slab) {
        out.append(slab);
        count(slab.size());
      });
}

int run_export(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("format", po::value<std::string>()->value_name("npy|raw|hdf5"),
                "of the file; otherwise by the end of its name (.npy, .h5, .hdf5, .nc)");
  line.option()("dataset", po::value<std::string>()->value_name("NAME"),
                "of the HDF5 dataset; otherwise the last name in PATH");
  line.option()("chunk", po::value<std::string>()->value_name("NxM"),
                "HDF5: store in pieces of this shape; otherwise contiguous");
  line.option()("deflate", po::value<std::uint32_t>()->value_name("1..9"), "HDF5: compress the pieces");
  line.option()("box", po::value<std::string>()->value_name("L:U,..."), "only these elements, for instance 10:20,:");
  add_salvage_option(line);
  line.option()("force,f", "replace the file if it is there");
  line.option()("buffer", po::value<std::string>()->value_name("BYTES"),
                "memory for each of the two buffers; otherwise 32MiB");
  line.option()("quiet,q", "no progress bar");
  line.positional("PATH");
  line.positional("FILE");
  if (!line.parse(arguments)) return success;
  const std::string path = line.required("PATH"), file = line.required("FILE");
  const file_format format = format_of(line, file);
  const std::uint64_t buffer = std::max<std::uint64_t>(4096, line.bytes("buffer", 32_MiB));
  part_to_export from(line, path);
  if (format == file_format::npz)
    throw usage_mistake("'" + file + "': .npz files are read only; export each array to a .npy file");
  if (format != file_format::hdf5)
    for (const char* o : {"dataset", "chunk", "deflate"})
      if (line.has(o)) throw usage_mistake(std::string("--") + o + " is for HDF5 files");
  catch_interrupts();
  output_file out(file, line.has("force"));
  if (format == file_format::hdf5 && out.path().empty())
    throw usage_mistake("'" + file + "': an HDF5 file cannot be written to a stream");
  if (from.is_array() && format == file_format::raw && !out.path().empty()) require_written_format(line, file);
  std::optional<hdf5_dataset> dataset;
  std::optional<hdf5_output> made;
  if (format == file_format::hdf5) {
    dataset = dataset_in(line, file, from);
    made.emplace(out.path(), file, *dataset);
  }
  std::optional<progress> bar;
  if (!line.has("quiet")) bar.emplace("export " + path, from.bytes());
  const count_bytes count = [&](std::uint64_t bytes) {
    if (bar) bar->advance(bytes);
  };
  if (made)
    write_hdf5(*made, *dataset, from, buffer, count);
  else
    write_rows(format, out, from, buffer, count);
  out.publish();
  if (bar) bar->finish();
  return from.report_lost(path);
}

}  // namespace

const command export_array{
    "export", "export [options] PATH FILE",
    "Copies an array, or a box of it, out of the store: to a .npy, raw (row-major) or HDF5 file.\n"
    "PATH may also name a file, which is used in place: ./a.npy, ./run.h5/g/x, file:/data/run.h5/g/x.",
    run_export};

}  // namespace ooc::tool
