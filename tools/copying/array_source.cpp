#include "copying/array_source.hpp"

#include <algorithm>
#include <fstream>
#include <span>
#include <sstream>
#include <utility>

#include "base/entry_text.hpp"
#include "base/interrupt.hpp"
#include "copying/slab_pump.hpp"
#include "copying/turned_source.hpp"
#include "formats/byte_order.hpp"
#include "formats/file_format.hpp"
#include "formats/hdf5_file.hpp"
#include "formats/plain_file.hpp"
#include "formats/zip_file.hpp"
#include "oocarray/error.hpp"
#include "oocarray/units.hpp"
#include "storage/layout/element_description.hpp"
#include "storage/layout/element_type.hpp"
#include "storage/layout/npy.hpp"

namespace ooc::tool {

namespace {

/// Bytes one after the other.
struct byte_stream {
  virtual ~byte_stream() = default;
  virtual void read(std::span<std::byte> out) = 0;
  virtual void finish() = 0;  ///< throws where there is more, or a checksum is another
  virtual bool has_checksum() const { return false; }
};

class file_bytes : public byte_stream {
 public:
  /// `more`: what follows is left out.
  file_bytes(std::unique_ptr<input_file> in, std::uint64_t offset, bool more)
      : in_(std::move(in)), at_(offset), more_(more) {}
  void read(std::span<std::byte> out) override {
    in_->read(at_, out);
    at_ += out.size();
  }
  void finish() override {
    if (in_->is_stream() && !more_) in_->expect_end();
  }

 private:
  std::unique_ptr<input_file> in_;
  std::uint64_t at_;
  bool more_;
};

class member_bytes : public byte_stream {
 public:
  member_bytes(const std::string& archive, const zip_member& m) : in_(archive, m) {}
  void read(std::span<std::byte> out) override { in_.read(out); }
  void finish() override { in_.finish(); }
  bool has_checksum() const override { return true; }

 private:
  zip_reader in_;
};

class row_major_source : public array_source {
 public:
  row_major_source(std::unique_ptr<byte_stream> in, std::uint32_t swap_unit)
      : in_(std::move(in)), swap_unit_(swap_unit) {}

  void copy(const box&, array_target& to, std::uint64_t buffer,
            const std::function<void(std::uint64_t)>& advance) override {
    pump_slabs(
        to.copied(), buffer,
        [&](const storage::index&, const storage::index&, std::span<std::byte> slab) {
          in_->read(slab);
          swap_bytes(slab, swap_unit_);
        },
        [&](const storage::index& lower, const storage::index& upper, std::span<std::byte> slab) {
          to.write(lower, upper, slab);
          advance(slab.size());
        });
    in_->finish();
  }

 private:
  std::unique_ptr<byte_stream> in_;
  std::uint32_t swap_unit_;
};

class hdf5_source : public array_source {
 public:
  hdf5_source(const command_line& line, const std::string& file, const std::string& dataset)
      : in_(file, dataset), missing_as_fill_(line.has("missing-as-fill")) {
    in_.check_memory(line.has("memory") ? detail::memory_limit{line.bytes("memory", 0), "of --memory"}
                                        : detail::available_memory());
    array = in_.array();
    description = in_.description();
    fill = in_.fill();
    attributes = in_.attributes();
    left_out = in_.left_out();
    if (array.element_type.starts_with("struct") && attributes.erase(storage::dtype_attribute) != 0)
      left_out.push_back("attribute 'dtype' has the name of the one that describes the elements");
  }

  void check(const box& part) override { in_.check_sources(part.lower, part.upper, missing_as_fill_); }

  void copy(const box& part, array_target& to, std::uint64_t buffer,
            const std::function<void(std::uint64_t)>& advance) override {
    const auto moved = [&](storage::index at) {
      for (std::size_t d = 0; d < at.size(); ++d) at[d] -= part.lower[d];
      return at;
    };
    // In pieces of the dataset where it has some: each is unpacked once.
    pump(
        std::max<std::uint64_t>(array.element_size, std::min(buffer, storage::array_bytes(to.copied()))),
        [&](const auto& step) { for_each_piece(part, in_.chunk(), array.element_size, buffer, step); },
        [&](const storage::index& lower, const storage::index& upper, std::span<std::byte> slab) {
          in_.read(lower, upper, slab);
        },
        [&](const storage::index& lower, const storage::index& upper, std::span<std::byte> slab) {
          to.write(moved(lower), moved(upper), slab);
          advance(slab.size());
        });
    check(part);  // once more, as libhdf5 would not have said that a source has gone meanwhile
    if (std::string filled = in_.filled(); !filled.empty()) notes.push_back(std::move(filled));
  }

 private:
  hdf5_input in_;
  bool missing_as_fill_;
};

/// The header of a .npy file that comes as a stream, as far as its first bytes say how long it is.
std::string npy_header_of(const std::function<void(std::span<std::byte>)>& read) {
  std::string text(10, '\0');
  const auto take = [&](std::size_t at) { read(std::as_writable_bytes(std::span(text).subspan(at))); };
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

/// The data that are there must be as long as the shape needs; with `more`, or longer.
void check_length(const std::string& file, const input_file& in, std::uint64_t offset, std::uint64_t bytes, bool more) {
  if (in.is_stream()) return;  // how much there is shows at its end
  const std::uint64_t present = in.size() - std::min(in.size(), offset);
  if (present == bytes || (more && present > bytes)) return;
  throw usage_error(errc::invalid_request, "'" + file + "' holds " + std::to_string(present) +
                                               " bytes of data, but its shape needs " + std::to_string(bytes) +
                                               "; give its shape, or copy it again where it was cut short");
}

void refuse_raw_options(const command_line& line) {
  for (const char* o : {"type", "shape", "offset"})
    if (line.has(o)) throw usage_mistake(std::string("--") + o + " is for raw files; a .npy file says it itself");
}

/// Reads the `left` bytes of a stream that has a checksum, which shows at its end.
void read_to_checksum(byte_stream& in, std::uint64_t left) {
  std::vector<std::byte> passed(std::min<std::uint64_t>(left, 1_MiB));
  for (; left > 0; left -= passed.size()) {
    check_interrupted();
    passed.resize(std::min<std::uint64_t>(left, passed.size()));
    in.read(passed);
  }
  in.finish();
}

/// `h.data_offset` is in `file`; `bytes` begin behind the header.
std::unique_ptr<array_source> npy_source(const command_line& line, const std::string& file,
                                         const storage::npy_header& h, bool is_stream,
                                         std::unique_ptr<byte_stream> bytes) {
  const bool by_columns = h.fortran_order && h.shape.size() > 1 && h.data_bytes != 0;
  std::unique_ptr<array_source> s;
  if (by_columns && !line.has("transpose")) {
    if (is_stream)
      throw usage_error(errc::type_mismatch,
                        "'" + file +
                            "' is in Fortran order, and a stream, or what is compressed, comes in one direction "
                            "only; import it from a file, or give --transpose to take its dimensions reversed");
    std::function<void()> verify_first;  // the copy itself reads the file past `bytes`
    if (bytes->has_checksum())
      verify_first = [in = std::shared_ptr<byte_stream>(std::move(bytes)), n = h.data_bytes] {
        read_to_checksum(*in, n);
      };
    s = std::make_unique<turned_source>(file, h, std::move(verify_first));
  } else {
    s = std::make_unique<row_major_source>(std::move(bytes), h.swap_unit);
  }
  s->array.element_type = h.element_type;
  s->array.element_size = h.element_size;
  s->array.extents = h.shape.empty() ? storage::index{1} : h.shape;
  s->description = h.description;
  if (by_columns && line.has("transpose")) std::reverse(s->array.extents.begin(), s->array.extents.end());
  return s;
}

std::unique_ptr<array_source> open_npy(const command_line& line, const std::string& file) {
  refuse_raw_options(line);
  auto opened = std::make_unique<input_file>(file);
  std::ifstream plain;
  std::istringstream head;
  if (opened->is_stream())
    head.str(npy_header_of([&](std::span<std::byte> out) { opened->read(0, out); }));
  else
    plain.open(file, std::ios::binary);
  std::istream& in = opened->is_stream() ? static_cast<std::istream&>(head) : plain;
  const storage::npy_header h = storage::read_npy_header(in, file);
  check_length(file, *opened, h.data_offset, h.data_bytes, false);
  const bool is_stream = opened->is_stream();
  return npy_source(line, file, h, is_stream, std::make_unique<file_bytes>(std::move(opened), h.data_offset, false));
}

/// "a.npy" is the array `a`, as np.load() has it.
std::string array_name(const std::string& member) {
  return member.ends_with(".npy") ? member.substr(0, member.size() - 4) : member;
}

zip_member chosen_member(const std::string& file, const std::string& wanted) {
  const auto members = zip_members(file);
  std::string names;
  for (const zip_member& m : members) {
    if (members.size() == 1 && wanted.empty()) return m;
    if (!wanted.empty() && (m.name == wanted || array_name(m.name) == wanted)) return m;
    names += (names.empty() ? "" : ", ") + array_name(m.name);
  }
  if (names.empty()) throw usage_error(errc::invalid_request, "'" + file + "' holds no arrays");
  if (wanted.empty())
    throw usage_error(errc::invalid_request,
                      "'" + file + "' holds several arrays; say which one with --dataset: " + names);
  throw usage_error({ENOENT, std::generic_category()}, "'" + file + "' has no array '" + wanted + "'; it has " + names);
}

std::unique_ptr<array_source> open_npz(const command_line& line, const std::string& file, const std::string& dataset) {
  refuse_raw_options(line);
  const zip_member m = chosen_member(file, dataset);
  const std::string what = file + ", member " + m.name;
  auto bytes = std::make_unique<member_bytes>(file, m);
  std::uint64_t left = m.size;
  std::istringstream head(npy_header_of([&](std::span<std::byte> out) {
    if (out.size() > left)
      throw usage_error(errc::invalid_request,
                        "'" + what + "' has " + std::to_string(m.size) + " bytes, and is no .npy file");
    left -= out.size();
    bytes->read(out);
  }));
  storage::npy_header h = storage::read_npy_header(head, what);
  if (m.size < h.data_offset || m.size - h.data_offset != h.data_bytes)
    throw usage_error(errc::invalid_request, "'" + what + "' holds " + std::to_string(m.size) +
                                                 " bytes with its header, and its shape needs " +
                                                 std::to_string(h.data_offset + h.data_bytes) + "; save it again");
  h.data_offset += m.begin;
  return npy_source(line, file, h, m.deflated, std::move(bytes));
}

/// "f8" or, as NumPy writes it, ">f8", "M8[ns]", "[('x', '<f4')]".
storage::element_description type_of_option(const std::string& text) {
  if (storage::element_size(text) != 0) return storage::description_named(text);
  try {
    return storage::description_of(text.starts_with('[') ? text : "'" + text + "'");
  } catch (const storage::no_element&) {
    throw usage_mistake("--type: '" + text + "' is none of " + storage::element_types +
                        ", and no type of NumPy, as >f8, S4, M8[ns] or [('x', '<f4'), ('n', '<i4')]");
  }
}

std::unique_ptr<array_source> open_raw(const command_line& line, const std::string& file) {
  if (!line.has("type") || !line.has("shape"))
    throw usage_mistake("'" + file + "' is raw bytes: say what they are with --type and --shape");
  if (line.has("transpose"))
    throw usage_mistake(
        "--transpose is for .npy files, which say their order; for raw bytes in Fortran order give "
        "--shape its numbers reversed");
  storage::element_description type = type_of_option(line.text("type"));
  const std::uint32_t swap_unit = type.swapped ? type.unit() : 0;
  type.swapped = false;
  const storage::recorded_element is = storage::recorded(type);
  const std::uint64_t offset = line.bytes("offset", 0);
  auto in = std::make_unique<input_file>(file);
  storage::array_description array;
  array.element_type = is.name;
  array.element_size = is.size;
  array.extents = parse_shape(line.text("shape"), "--shape");
  const bool more = line.has("offset");
  check_length(file, *in, offset, storage::array_bytes(array), more);
  if (in->is_stream()) in->skip(offset);
  auto s = std::make_unique<row_major_source>(std::make_unique<file_bytes>(std::move(in), offset, more), swap_unit);
  s->array = array;
  s->description = is.description;
  return s;
}

std::unique_ptr<array_source> open_hdf5(const command_line& line, const std::string& file, const std::string& dataset) {
  for (const char* o : {"type", "shape", "offset", "transpose"})
    if (line.has(o))
      throw usage_mistake(std::string("--") + o + " is not for HDF5 files, which say themselves what they hold");
  return std::make_unique<hdf5_source>(line, file, dataset);
}

/// Extents with which no ooc_array could be opened are refused.
void require_array(const std::string& file, const std::vector<std::uint64_t>& extents) {
  constexpr std::size_t max_dimensions = 8;
  if (extents.size() > max_dimensions)
    throw usage_error(errc::invalid_request,
                      "'" + file + "': " + shape_text(extents) + " has " + std::to_string(extents.size()) +
                          " dimensions, and an array has at most 8; give it fewer (a.reshape(...))");
  if (std::find(extents.begin() + 1, extents.end(), 0u) != extents.end())
    throw usage_error(errc::invalid_request, "'" + file + "': an array of " + shape_text(extents) +
                                                 " has no elements; only the first extent may be 0");
}

}  // namespace

void add_source_options(command_line& line) {
  line.option()("format", po::value<std::string>()->value_name("npy|npz|raw|hdf5"),
                "of the file; otherwise by the end of its name (.npy, .npz, .h5, .hdf5, .nc), or HDF5's signature");
  line.option()("dataset", po::value<std::string>()->value_name("NAME"),
                "of an HDF5 file, or the array of a .npz file; otherwise the only one in it");
  line.option()("box", po::value<std::string>()->value_name("L:U,..."),
                "only these elements of an HDF5 dataset, for instance 10:20,:");
  line.option()("missing-as-fill",
                "where an HDF5 dataset takes elements from files that are missing or too short: the fill value");
  line.option()(
      "memory", po::value<std::string>()->value_name("BYTES"),
      "what unpacking a chunk of HDF5 may take; otherwise what the machine has available, or the cgroup may have");
  line.option()("type", po::value<std::string>()->value_name("TYPE"),
                "element type of a raw file: b1 f2..f16 c8..c32 i1..i8 u1..u8 structN, or NumPy's: >f4, S4, M8[ns]");
  line.option()("shape", po::value<std::string>()->value_name("NxM"), "extents of a raw file, slowest first");
  line.option()("offset", po::value<std::string>()->value_name("BYTES"),
                "where the elements of a raw file begin; what follows them is left out, and without it refused");
  line.option()("transpose", "take a Fortran-order .npy as its bytes lie, with its dimensions reversed");
}

std::vector<std::string> arrays_in(const command_line& line, const std::string& file) {
  const file_format format = format_of_input(line, file);
  if (format == file_format::hdf5) return hdf5_dataset_names(file);
  std::vector<std::string> names;
  if (format == file_format::npz)
    for (const zip_member& m : zip_members(file)) names.push_back(array_name(m.name));
  return names;
}

std::unique_ptr<array_source> open_array_source(const command_line& line, const std::string& file,
                                                const std::string& dataset) {
  const file_format format = format_of_input(line, file);
  if (format != file_format::hdf5)
    for (const char* o : {"box", "missing-as-fill", "memory"})
      if (line.has(o)) throw usage_mistake(std::string("--") + o + " is for HDF5 files");
  if (format != file_format::hdf5 && format != file_format::npz && line.has("dataset"))
    throw usage_mistake("--dataset is for HDF5 files and .npz files");
  auto s = format == file_format::hdf5  ? open_hdf5(line, file, dataset)
           : format == file_format::npz ? open_npz(line, file, dataset)
           : format == file_format::npy ? open_npy(line, file)
                                        : open_raw(line, file);
  require_array(file, s->array.extents);
  return s;
}

}  // namespace ooc::tool
