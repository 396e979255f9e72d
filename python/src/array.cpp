#include <deque>

#include "array_handle.hpp"
#include "oocarray/commit.hpp"
#include "oocarray/open_file.hpp"

namespace ooc::python {

namespace {

struct pinned {
  std::shared_ptr<array_state> state;
  std::optional<pin_guard<std::byte>> guard;
};

any_array::options_type options_from(const py::dict& d) {
  any_array::options_type o;
  o.order = option(d, "tiled_file", false) ? file_order::tiled : file_order::row_major;
  o.tile = option(d, "tile", sizes{});
  o.block = option<std::uint64_t>(d, "block", 0);
  o.stripes.nn = option<std::uint32_t>(d, "nodes", 0);
  o.stripes.sf = option<std::uint64_t>(d, "stripe", 0);
  if (d.contains("fill")) {
    const std::string bytes = d["fill"].cast<py::bytes>();
    const auto* const first = reinterpret_cast<const std::byte*>(bytes.data());
    o.fill = std::vector<std::byte>(first, first + bytes.size());
  }
  o.sparse = option(d, "sparse", false);
  o.max_extents = option(d, "max_extents", sizes{});
  o.commits = option(d, "commits", false);
  o.attributes = option(d, "attributes", std::map<std::string, std::string>());
  o.temporary = option(d, "temporary", false);
  o.replace = option(d, "replace", false);
  o.mode = option<std::uint32_t>(d, "mode", 0644);
  o.shared = option(d, "shared", false);
  o.wait_for_writer = std::chrono::milliseconds(static_cast<long>(option(d, "wait_for_writer", 0.0) * 1000));
  if (option(d, "unfinished", false)) o.unfinished = open_unfinished;
  o.group = option(d, "group", std::shared_ptr<process_group>());
  return o;
}

/// Every array there is, for who opens it once more; used with the GIL.
std::vector<std::weak_ptr<array_state>>& arrays() {
  static auto* const all = new std::vector<std::weak_ptr<array_state>>;
  return *all;
}

/// Without the GIL.
array_handle noted(std::shared_ptr<array_state> s) {
  const py::gil_scoped_acquire with_lock;
  std::erase_if(arrays(), [](const std::weak_ptr<array_state>& a) { return a.expired(); });
  arrays().push_back(s);
  return {std::move(s)};
}

std::vector<array_handle> open_arrays() {
  std::vector<array_handle> all;
  for (const std::weak_ptr<array_state>& a : arrays())
    if (auto s = a.lock(); s && s->array->is_open() && !s->closing) all.push_back({std::move(s)});
  return all;
}

array_handle make(const runtime_handle& rt, const store& s, const std::string& path, const std::string& how,
                  const std::string& type, std::uint32_t element_size, const sizes& shape, const py::dict& options) {
  const any_array::options_type o = options_from(options);
  const auto layout =
      option(options, "tiled_memory", false) ? any_array::memory_layout::tiled : any_array::memory_layout::right;
  const py::gil_scoped_release r;
  const element_format format{type, element_size};
  runtime& of = rt.get();
  const auto made = [&]() -> any_array {
    if (how == "create") return {of, s, path, create, format, shape, o, layout};
    if (how == "create_or_open") return {of, s, path, create_or_open, format, shape, o, layout};
    if (how == "read") return {of, s, path, open_read_only, o, layout};
    return {of, s, path, open, o, layout};
  };
  return noted(std::make_shared<array_state>(rt.weak(), made(), s.uuid(), o));
}

constexpr std::pair<std::string_view, chunk_filter> filters_by_name[] = {
    {"deflate", chunk_filter::deflate},
    {"shuffle", chunk_filter::shuffle},
    {"fletcher32", chunk_filter::fletcher32},
    {"gzip", chunk_filter::gzip},
    {"crc32c", chunk_filter::crc32c},
    {"zstd", chunk_filter::zstd},
    {"blosc", chunk_filter::blosc},
    {"lzf", chunk_filter::lzf},
    {"lz4", chunk_filter::lz4},
    {"hdf5_lz4", chunk_filter::hdf5_lz4},
    {"bitshuffle", chunk_filter::bitshuffle},
    {"bitshuffle_lz4", chunk_filter::bitshuffle_lz4},
    {"bitshuffle_zstd", chunk_filter::bitshuffle_zstd},
    {"bzip2", chunk_filter::bzip2},
    {"szip", chunk_filter::szip},
    {"scale_offset", chunk_filter::scale_offset}};

using table_of_numbers = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;

/// Files of chunks: what their names begin with, the separator, how many chunks a shard has along each dimension,
/// whether its index is first, and summed; instead, paths, bytes and time of change of each, and the file of each
/// chunk.
using files_of_chunks = std::tuple<std::string, char, sizes, bool, bool, std::vector<std::string>, table_of_numbers,
                                   std::vector<std::uint32_t>>;

/// Level, checksum, and of Blosc codec, shuffling, bytes of an element and of a block.
using packing_of_filter = std::tuple<int, bool, std::string, std::uint8_t, std::uint32_t, std::uint32_t>;

/// Where a dataset's chunks lie: its name, their extents, filters by name, the fill value's bytes; of each chunk
/// offset, bytes and filter mask; the order of its dimensions, its files, how each filter packs, and its parameters;
/// whether the fill value is undefined.
using chunks_in_file = std::tuple<std::string, sizes, std::vector<std::string>, py::bytes, table_of_numbers, sizes,
                                  std::optional<files_of_chunks>, std::vector<packing_of_filter>,
                                  std::vector<std::vector<std::uint32_t>>, bool>;

file_chunks chunks_from(const chunks_in_file& given) {
  const auto& [dataset, extents, filters, fill, table, order, files, packing, parameters, undefined] = given;
  file_chunks c{.dataset = dataset, .extents = extents, .filters = {}, .table = {}, .fill = {}, .stored_order = order};
  for (const std::string& name : filters) {
    const auto* const known = std::find_if(std::begin(filters_by_name), std::end(filters_by_name),
                                           [&](const auto& f) { return f.first == name; });
    if (known == std::end(filters_by_name))
      throw usage_error(errc::invalid_request,
                        "dataset '" + dataset + "': no filter of chunks is called '" + name + "'");
    c.filters.push_back(known->second);
  }
  const auto bytes = std::as_bytes(std::span(std::string_view(fill)));
  c.fill.assign(bytes.begin(), bytes.end());
  const auto rows = table.unchecked<2>();
  for (py::ssize_t i = 0; i < rows.shape(0); ++i)
    c.table.push_back({rows(i, 0), static_cast<std::uint32_t>(rows(i, 1)), static_cast<std::uint32_t>(rows(i, 2))});
  for (const auto& [level, checksum, codec, shuffle, element, block] : packing)
    c.packing.push_back({level, checksum, codec, static_cast<chunk_packing::shuffling>(shuffle), element, block});
  c.parameters = parameters;
  c.fill_is_undefined = undefined;
  if (!files) return c;
  const auto& [names, separator, chunks, index_first, index_summed, paths, states, file_of] = *files;
  c.files = chunk_files{.names = names,
                        .separator = separator,
                        .chunks = chunks,
                        .index_first = index_first,
                        .index_summed = index_summed,
                        .paths = paths,
                        .states = {},
                        .file_of = file_of};
  const auto each = states.unchecked<2>();
  for (py::ssize_t i = 0; i < each.shape(0); ++i)
    c.files->states.push_back({each(i, 0), static_cast<std::int64_t>(each(i, 1))});
  return c;
}

/// The filters that chunks may have in this build.
std::vector<std::string> chunk_filters() {
  std::vector<std::string> names;
  for (const auto& [name, filter] : filters_by_name)
    if (can_undo(filter)) names.emplace_back(name);
  return names;
}

/// Offset and bytes of each chunk of a shard.
py::array_t<std::uint64_t> shard_places(const py::bytes& index, bool summed) {
  const std::vector<file_chunk> all = chunks_of_shard(std::as_bytes(std::span(std::string_view(index))), summed);
  py::array_t<std::uint64_t> places({static_cast<py::ssize_t>(all.size()), py::ssize_t{2}});
  auto rows = places.mutable_unchecked<2>();
  for (py::ssize_t i = 0; i < rows.shape(0); ++i) {
    rows(i, 0) = all[static_cast<std::size_t>(i)].offset;
    rows(i, 1) = all[static_cast<std::size_t>(i)].bytes;
  }
  return places;
}

/// A raw file in place; what its header says Python has read.
array_handle open_in_place(const runtime_handle& rt, const std::string& path, bool writable, const std::string& type,
                           std::uint32_t element_size, const sizes& shape, std::uint64_t offset, bool column_major,
                           const std::optional<std::pair<std::uint64_t, std::uint64_t>>& read_from,
                           const std::optional<chunks_in_file>& chunks, const py::dict& options) {
  const any_array::options_type o = options_from(options);
  const auto layout =
      option(options, "tiled_memory", false) ? any_array::memory_layout::tiled : any_array::memory_layout::right;
  auto in_chunks = chunks ? std::optional(chunks_from(*chunks)) : std::nullopt;
  const py::gil_scoped_release r;
  const element_format format{type, element_size};
  const file_contents c{
      .format = file_format::raw,
      .extents = shape,
      .offset = offset,
      .order = column_major ? index_order::column_major : index_order::row_major,
      .chunks = std::move(in_chunks),
      .read_from = read_from ? std::optional(file_identity{read_from->first, read_from->second}) : std::nullopt};
  any_array made = writable ? open_any_file(rt.get(), path, ooc::open, format, c, o, layout)
                            : open_any_file(rt.get(), path, open_read_only, format, c, o, layout);
  return noted(std::make_shared<array_state>(rt.weak(), std::move(made), "", o));
}

py::tuple as_tuple(const sizes& n) { return py::tuple(py::cast(n)); }

/// Memory of the array as NumPy sees it; it counts as an export as long as it, or a view of it,
/// lives.
py::array exported(const std::shared_ptr<array_state>& state, const py::dtype& type, const std::byte* data,
                   const sizes& shape, const sizes& strides) {
  const py::object owner = py::cast(std::make_unique<memory_export>(state));
  // The interpreter may have installed a handler meanwhile.
  if (const auto rt = state->of.lock()) rt->reclaim_faults();
  py::array a(type, shape, strides, data, owner);
  if (!state->array->writable()) a.attr("flags").attr("writeable") = false;
  return a;
}

any_box box_of(sizes lower, sizes upper) { return {std::move(lower), std::move(upper)}; }

/// A box that will be touched at once: what cannot be read is an exception now, and not the end of the process then.
void bring_in(const array_handle& a, const any_box& b, bool write) {
  in_use(a, [&](any_array& array) {
    array.core().bring_in({b.lower, b.upper}, write ? access_mode::write : access_mode::read);
  });
}

void prefetch(const array_handle& a, const sizes& lower, const sizes& upper) {
  in_use(a, [&](any_array& array) { array.prefetch(box_of(lower, upper)); });
}

void overwrite(const array_handle& a, const sizes& lower, const sizes& upper, bool covered_blocks_only) {
  const auto which = covered_blocks_only ? detail::promised_blocks::covered : detail::promised_blocks::touched;
  in_use(a, [&](any_array& array) { array.core().overwrite({lower, upper}, which); });
}

durability how_safe(bool durable) { return durable ? durability::durable : durability::acknowledged; }

access_pattern pattern_of(const std::string& name) {
  if (name == "automatic") return access_pattern::automatic;
  if (name == "sequential") return access_pattern::sequential;
  if (name == "random") return access_pattern::random;
  throw usage_error(errc::invalid_request, "advise('" + name + "'): choose 'automatic', 'sequential' or 'random'");
}

// The base class of Array in Python.  Whoever asks for the buffer of an array mostly means to give
// it to the kernel, which cannot read it: so there is none.  NumPy asks too, and then takes
// __array__ for an answer.
int refuse_buffer(PyObject* self, Py_buffer* view, int) {
  view->obj = nullptr;
  PyObject* const path = PyObject_GetAttrString(self, "path");
  if (!path) return -1;
  PyErr_Format(PyExc_BufferError,
               "array '%U' gives its memory to NumPy only: system calls need it pinned, `with "
               "a.pin() as part:`, "
               "and other code takes np.asarray(a)",
               path);
  Py_DECREF(path);
  return -1;
}

void bind_base(py::module_& m) {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&refuse_buffer)}, {0, nullptr}};
  static PyType_Spec spec = {"oocarray._core.ArrayBase", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  m.attr("ArrayBase") = py::reinterpret_steal<py::object>(PyType_FromSpec(&spec));
}

/// Who is in the way of a change, and what to do about it.
std::string users_of(const array_state& s) {
  const std::size_t all = s.exports;
  if (all == s.calls)
    return "while calls of other threads use it (" + std::to_string(all) + " of them): wait until they have ended";
  return "while NumPy arrays refer to its memory (" + std::to_string(all - s.calls) +
         " of them): delete them first, with `del`, or let them go out of scope";
}

/// f() without the GIL; `doing`, of an array_state, is set meanwhile, so there are no new views and calls.
template <class F>
void alone(bool& doing, F f) {
  doing = true;
  try {
    const py::gil_scoped_release r;
    f();
  } catch (...) {
    doing = false;
    throw;
  }
  doing = false;
}

void close(const array_handle& a) {
  const std::shared_ptr<array_state> s = a.state;
  if (!s || !s->array->is_open()) return;
  any_array& array = s->get();
  s->check_at_rest();
  if (s->exports != 0) throw py::buffer_error("array '" + array.path() + "' cannot be closed " + users_of(*s));
  alone(s->closing, [&] { array.close(); });
}

void resize(const array_handle& a, const sizes& extents) {
  any_array& array = a.get();
  const sizes now = array.extents();
  bool shorter = false, moves = false;
  for (std::size_t k = 0; k < std::min(now.size(), extents.size()); ++k) {
    shorter = shorter || extents[k] < now[k];
    moves = moves || (k > 0 && extents[k] != now[k] && array.layout() == any_array::memory_layout::right);
  }
  if (!shorter && !moves) return in_use(a, [&](any_array& longer) { longer.resize(extents); });
  const std::shared_ptr<array_state> s = a.held();
  s->check_at_rest();
  if (s->exports != 0)
    throw py::buffer_error("array '" + array.path() + "' cannot " +
                           (moves ? "change another extent than the first " : "become shorter ") + users_of(*s) +
                           (moves ? ", or open it with layout='tiled', where elements stay where they are" : ""));
  alone(s->moving, [&] { array.resize(extents); });
}

void roll_back(const array_handle& a) {
  any_array& array = a.get();
  bool keeps_shape = array.max_extents() == array.extents();
  if (keeps_shape) in_use(a, [&](any_array& same) { keeps_shape = same.core().has_committed_extents(); });
  if (keeps_shape) return in_use(a, [](any_array& same) { same.roll_back(); });
  const std::shared_ptr<array_state> s = a.held();
  s->check_at_rest();
  if (s->exports != 0)
    throw py::buffer_error("array '" + array.path() + "' cannot be rolled back, which may change its shape, " +
                           users_of(*s));
  alone(s->moving, [&] { array.roll_back(); });
}

void commit_all(const std::vector<array_handle>& arrays, const std::map<std::string, std::string>& attributes) {
  std::vector<array_base*> all;
  std::deque<memory_export> kept;
  for (const array_handle& a : arrays) {
    kept.emplace_back(a.held());
    all.push_back(&a.get());
  }
  const py::gil_scoped_release r;
  commit(all, attributes);
}

}  // namespace

void bind_array(py::module_& m) {
  py::class_<memory_export>(m, "MemoryExport",
                            "Keeps the memory of an array in place for the NumPy arrays that refer to it.");
  py::class_<pinned>(m, "Pinned").def("release", [](pinned& p) {
    const py::gil_scoped_release r;
    p.guard.reset();
  });

  py::class_<process_group, std::shared_ptr<process_group>>(m, "ProcessGroup",
                                                            "The ranks that share an array; oocarray._mpi makes one.");
  bind_base(m);
  m.def("make", &make);
  m.def("commit", &commit_all);
  m.def("open_arrays", &open_arrays);
  m.def("open_file", &open_in_place);
  m.def("path_in_place", [](const std::string& path) { return text(detail::path_in_place(path)); });
  m.def("chunk_filters", &chunk_filters);
  m.def("shard_places", &shard_places);
  py::class_<array_handle>(m, "Array")
      .def("element_type", [](const array_handle& a) { return a.get().element_type(); })
      .def("element_size", [](const array_handle& a) { return a.get().element_size(); })
      .def("shape", [](const array_handle& a) { return as_tuple(a.held()->array->extents()); })
      .def("max_extents", [](const array_handle& a) { return as_tuple(a.get().max_extents()); })
      .def("path", [](const array_handle& a) { return text(a.state ? a.state->array->path() : a.path); })
      .def("current_path",
           [](const array_handle& a) { return text(in_use(a, [](any_array& b) { return b.current_path(); })); })
      .def("is_open", [](const array_handle& a) { return a.state && !a.state->closing && a.state->array->is_open(); })
      .def("writable", [](const array_handle& a) { return a.held()->array->writable(); })
      .def("block_bytes", [](const array_handle& a) { return a.get().block_bytes(); })
      .def("dirty_blocks", [](const array_handle& a) { return a.get().dirty_blocks(); })
      .def("exports", [](const array_handle& a) { return a.held()->exports.load(); })
      .def("uuid", [](const array_handle& a) { return a.held()->uuid; })
      .def("of_ranks", [](const array_handle& a) { return a.held()->of_ranks; })
      .def("shared", [](const array_handle& a) { return a.held()->shared; })
      .def("tiled", [](const array_handle& a) { return a.get().layout() == any_array::memory_layout::tiled; })
      .def("same", [](const array_handle& a, const array_handle& b) { return a.state && a.state == b.state; })
      .def("again", [](const array_handle& a) { return array_handle{a.held()}; })
      .def("let_go", &array_handle::let_go)
      .def("stripes",
           [](const array_handle& a) {
             const striping s = a.get().stripes();
             return py::make_tuple(s.sn, s.nn, s.sf);
           })
      .def("view",
           [](const array_handle& a, const py::dtype& type) {
             any_array& array = a.get();
             const std::byte* const data = array.data();
             return exported(a.held(), type, data, array.extents(), array.strides());
           })
      .def("tiles", [](const array_handle& a) { return a.get().tiles(); })
      .def("tile_shape", [](const array_handle& a) { return as_tuple(a.get().tile_shape()); })
      .def("tile",
           [](const array_handle& a, std::size_t k, const py::dtype& type, bool write) {
             const any_array::tile t = a.get().tile_at(k);
             bring_in(a, t.box, write);
             sizes shape(t.box.lower.size());
             for (std::size_t d = 0; d < shape.size(); ++d) shape[d] = t.box.upper[d] - t.box.lower[d];
             return py::make_tuple(as_tuple(t.box.lower), as_tuple(t.box.upper),
                                   exported(a.held(), type, t.data, shape, t.strides));
           })
      .def("prefetch_tile",
           [](const array_handle& a, std::size_t k) { in_use(a, [&](any_array& b) { b.prefetch_tile(k); }); })
      .def("writeback", [](const array_handle& a,
                           bool durable) { in_use(a, [&](any_array& b) { b.writeback(how_safe(durable)); }); })
      .def("sync",
           [](const array_handle& a, bool durable) { in_use(a, [&](any_array& b) { b.sync(how_safe(durable)); }); })
      .def("sync_halo",
           [](const array_handle& a, std::size_t rows) { in_use(a, [&](any_array& b) { b.sync_halo(rows); }); })
      .def("local_rows", [](const array_handle& a) { return a.get().local_rows(); })
      .def("invalidate",
           [](const array_handle& a, bool throw_away) {
             in_use(a, [&](any_array& b) { throw_away ? b.invalidate(discard) : b.invalidate(); });
           })
      .def("prefetch", &prefetch)
      .def("advise", [](const array_handle& a, const std::string& how) { a.get().advise(pattern_of(how)); })
      .def("overwrite", &overwrite, py::arg("lower"), py::arg("upper"), py::arg("covered_blocks_only") = false)
      .def("clear_overwrite", [](const array_handle& a) { in_use(a, [](any_array& b) { b.clear_overwrite(); }); })
      .def("pin",
           [](const array_handle& a, const sizes& lower, const sizes& upper, bool write) {
             pinned p{a.held(), {}};
             in_use(a, [&](any_array& b) {
               p.guard = b.pin(box_of(lower, upper), write ? access_mode::write : access_mode::read);
             });
             return p;
           })
      .def("attributes",
           [](const array_handle& a) { return text(in_use(a, [](any_array& b) { return b.attributes(); })); })
      .def("set_attribute",
           [](const array_handle& a, const std::string& key, const std::string& value) {
             in_use(a, [&](any_array& b) { b.set_attribute(key, value); });
           })
      .def("remove_attribute",
           [](const array_handle& a, const std::string& key) {
             in_use(a, [&](any_array& b) { b.remove_attribute(key); });
           })
      .def("resize", &resize)
      .def("roll_back", &roll_back)
      .def("last_commit", [](const array_handle& a) { return commit_as_tuple(a.get().last_commit()); })
      .def("close", &close)
      .def("set_finished", [](const array_handle& a) { in_use(a, [](any_array& b) { b.set_finished(); }); });
}

}  // namespace ooc::python
