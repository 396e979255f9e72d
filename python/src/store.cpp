#include "bindings.hpp"
#include "oocarray/file.hpp"

namespace ooc::python {

namespace {

py::dict described(const store_entry& e) {
  py::dict d;
  d["path"] = text(e.path);
  d["folder"] = e.folder;
  d["owner"] = e.owner;
  d["group"] = e.group;
  d["mode"] = e.mode;
  d["created_ns"] = e.created_ns;
  d["changed_ns"] = e.changed_ns;
  d["size"] = e.size;
  d["element_type"] = e.element_type;
  d["element_size"] = e.element_size;
  d["shape"] = py::tuple(py::cast(e.extents));
  d["tile"] = py::tuple(py::cast(e.tile));
  d["codec"] = e.codec;
  d["packed_size"] = e.packed_size;
  d["max_extents"] = py::tuple(py::cast(e.max_extents));
  d["fill"] = py::bytes(reinterpret_cast<const char*>(e.fill.data()), e.fill.size());
  d["attributes"] = text(e.attributes);
  d["last_commit"] = commit_as_tuple(e.last_commit);
  return d;
}

py::dict counts(const io_stats& s) {
  py::dict d;
  d["read_requests"] = s.read_requests;
  d["write_requests"] = s.write_requests;
  d["read_regions"] = s.read_regions;
  d["write_regions"] = s.write_regions;
  d["bytes_read"] = s.bytes_read;
  d["bytes_written"] = s.bytes_written;
  d["device_bytes_read"] = s.device_bytes_read;
  d["device_bytes_written"] = s.device_bytes_written;
  return d;
}

}  // namespace

void bind_store(py::module_& m) {
  m.def(
      "open_store",
      [](const std::string& url, bool create, unsigned workers, std::uint64_t staging, double deadline,
         const std::string& key) {
        store_options o;
        o.create = create;
        o.workers = workers;
        o.staging = staging;
        o.deadline = std::chrono::milliseconds(static_cast<long>(deadline * 1000));
        o.key = key;
        return store::open(url, o);
      },
      without_gil());
  py::class_<store>(m, "Store")
      .def("url", [](const store& s) { return text(s.url()); })
      .def("uuid", &store::uuid)
      .def("nodes", &store::nodes)
      .def("stats", [](const store& s) { return counts(released([&] { return s.stats(); })); })
      .def("list",
           [](const store& s, const std::string& folder) {
             const auto all = released([&] { return s.list(folder); });
             py::list l;
             for (const store_entry& e : all) l.append(described(e));
             return l;
           })
      .def("entry",
           [](const store& s, const std::string& path) { return described(released([&] { return s.entry(path); })); })
      .def("read_strided",
           [](const store& s, const std::string& path, std::uint64_t offset, std::uint64_t run,
              const std::vector<std::pair<std::uint64_t, std::uint64_t>>& levels) {
             nested_request r;
             r.file_offset = offset;
             r.run = run;
             r.depth = static_cast<std::uint32_t>(levels.size());
             std::uint64_t packed = run;
             for (std::size_t k = levels.size(); k-- > 0;) {
               r.levels.at(k) = {levels[k].first, levels[k].second, packed};
               packed *= levels[k].first;
             }
             py::bytearray all(nullptr, packed);
             const std::span out(reinterpret_cast<std::byte*>(PyByteArray_AS_STRING(all.ptr())), packed);
             released([&] { return file::open(s, path).read(r, out), 0; });
             return all;
           })
      .def("exists", &store::exists, without_gil())
      .def("remove", &store::remove, without_gil())
      .def("remove_all", &store::remove_all, without_gil())
      .def("rename", &store::rename, without_gil())
      .def(
          "mkdir",
          [](const store& s, const std::string& path, bool parents, std::uint32_t mode) {
            s.mkdir(path, {.parents = parents, .mode = mode});
          },
          without_gil())
      .def("snapshot",
           [](const store& s, const std::vector<std::string>& paths, const std::string& name, bool copy) {
             py::list made;
             for (const store_entry& e : released([&] { return s.snapshot(paths, name, {.copy = copy}); }))
               made.append(text(e.path));
             return made;
           })
      .def(
          "pack",
          [](const store& s, const std::string& path, const std::string& codec, bool shuffle, std::uint64_t chunk) {
            return s.pack(path, {.codec = codec, .shuffle = shuffle, .chunk = chunk});
          },
          without_gil())
      .def(
          "unpack", [](const store& s, const std::string& path) { s.unpack(path); }, without_gil())
      .def("attributes",
           [](const store& s, const std::string& path) { return text(released([&] { return s.attributes(path); })); })
      .def("set_attribute", &store::set_attribute, without_gil())
      .def("remove_attribute", &store::remove_attribute, without_gil());
}

}  // namespace ooc::python
