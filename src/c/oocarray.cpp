// The functions of oocarray.h: any_array and its like, with codes in place of exceptions.
#include "oocarray/oocarray.h"

#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "c/codes.hpp"
#include "oocarray/any_array.hpp"
#include "oocarray/commit.hpp"
#include "oocarray/detail/indexed_elements.hpp"
#include "storage/layout/element_type.hpp"

struct ooc_runtime {
  ooc::runtime of_cpp;
};
struct ooc_store {
  ooc::store of_cpp;
};
struct ooc_array {
  ooc::any_array of_cpp;
};
struct ooc_pin {
  ooc::pin_guard<std::byte> of_cpp;
};

namespace {

using ooc::c::failed;
using ooc::c::given;
using ooc::c::guarded;

std::vector<std::size_t> numbers_of(const ooc::any_array& a, const std::size_t* numbers, const char* what) {
  return {given(numbers, what), numbers + a.rank()};
}

ooc::any_box box_of(const ooc::any_array& a, const std::size_t* lower, const std::size_t* upper) {
  return {numbers_of(a, lower, "lower"), numbers_of(a, upper, "upper")};
}

constexpr std::size_t most_dimensions = 8;

ooc::any_array::options_type options_of(const ooc_array_options* o, std::size_t rank, std::uint32_t element_size) {
  ooc::any_array::options_type to;
  if (rank == 0 || rank > most_dimensions)
    throw ooc::usage_error(ooc::errc::invalid_request, "an array has 1 to " + std::to_string(most_dimensions) +
                                                           " extents, not " + std::to_string(rank));
  if (!o) return to;
  if (o->tile) {
    to.order = ooc::file_order::tiled;
    to.tile.assign(o->tile, o->tile + rank);
  }
  if (o->max_extents) to.max_extents.assign(o->max_extents, o->max_extents + rank);
  if (o->fill) {
    const auto* bytes = static_cast<const std::byte*>(o->fill);
    to.fill = std::vector<std::byte>(bytes, bytes + element_size);
  }
  to.block = o->block;
  to.sparse = o->sparse != 0;
  to.commits = o->commits != 0;
  to.replace = o->replace != 0;
  if (o->group) to.group = o->group->of_cpp;
  return to;
}

int value_of(const std::map<std::string, std::string>& all, const char* key, char* value, std::size_t room,
             std::size_t* needed) {
  const auto found = all.find(given(key, "key"));
  if (found == all.end()) return failed(ENOENT, ("there is no attribute '" + std::string(key) + "'").c_str());
  const std::size_t bytes = found->second.size() + 1;
  if (needed) *needed = bytes;
  if (room < bytes || !value)
    return failed(ERANGE, ("attribute '" + std::string(key) + "' needs " + std::to_string(bytes) + " bytes").c_str());
  std::memcpy(value, found->second.c_str(), bytes);
  return 0;
}

ooc::durability how_safe(int durable) { return durable ? ooc::durability::durable : ooc::durability::acknowledged; }

}  // namespace

extern "C" {

// --- runtime and store

int ooc_runtime_create(uint64_t memory, ooc_runtime** rt) {
  return guarded([&] {
    ooc::runtime_options o;
    if (memory != 0) o.memory = memory;
    ooc_runtime*& made = *given(rt, "rt");
    made = new ooc_runtime{ooc::runtime(o)};
  });
}

void ooc_runtime_destroy(ooc_runtime* rt) { delete rt; }

int ooc_store_open(const char* url, ooc_store** s) {
  return guarded([&] {
    ooc_store*& made = *given(s, "s");
    made = new ooc_store{ooc::store::open(given(url, "url"))};
  });
}

void ooc_store_close(ooc_store* s) { delete s; }

int ooc_store_remove(ooc_store* s, const char* path) {
  return guarded([&] { given(s, "s")->of_cpp.remove(given(path, "path")); });
}

// --- arrays

int ooc_array_create(ooc_runtime* rt, ooc_store* s, const char* path, const char* type, size_t rank,
                     const size_t* extents, const ooc_array_options* options, ooc_array** a) {
  return guarded([&] {
    ooc_array*& made = *given(a, "a");
    const ooc::element_format format{given(type, "type"), ooc::storage::element_size(type)};
    if (format.size == 0)
      throw ooc::usage_error(ooc::errc::type_mismatch,
                             "'" + format.name + "' is no type of elements; there are: " + ooc::storage::element_types);
    made = new ooc_array{ooc::any_array(given(rt, "rt")->of_cpp, given(s, "s")->of_cpp, given(path, "path"),
                                        ooc::create, format, std::span(given(extents, "extents"), rank),
                                        options_of(options, rank, format.size))};
  });
}

int ooc_array_open(ooc_runtime* rt, ooc_store* s, const char* path, int mode, ooc_group* group, ooc_array** a) {
  return guarded([&] {
    if (mode != OOC_READ_ONLY && mode != OOC_READ_WRITE)
      throw ooc::usage_error(ooc::errc::invalid_request, "mode " + std::to_string(mode) + " is none");
    ooc_array*& made = *given(a, "a");
    ooc::runtime& r = given(rt, "rt")->of_cpp;
    const ooc::store& in = given(s, "s")->of_cpp;
    ooc::any_array::options_type options;
    if (group) options.group = group->of_cpp;
    made =
        new ooc_array{mode == OOC_READ_ONLY ? ooc::any_array(r, in, given(path, "path"), ooc::open_read_only, options)
                                            : ooc::any_array(r, in, given(path, "path"), ooc::open, options)};
  });
}

int ooc_array_close(ooc_array* a) {
  if (!a) return 0;
  const int error = guarded([&] { a->of_cpp.close(); });
  if (error != OOC_BUSY) delete a;
  return error;
}

void* ooc_array_data(const ooc_array* a) {
  void* data = nullptr;
  (void)guarded([&] { data = given(a, "a")->of_cpp.data(); });
  return data;
}

size_t ooc_array_rank(const ooc_array* a) { return a->of_cpp.rank(); }

void ooc_array_extents(const ooc_array* a, size_t* extents) {
  for (const std::uint64_t e : a->of_cpp.core().facts().extents) *extents++ = e;
}

const char* ooc_array_type(const ooc_array* a) { return a->of_cpp.element_type().c_str(); }
size_t ooc_array_element_size(const ooc_array* a) { return a->of_cpp.element_size(); }

int ooc_array_check_numbers(const ooc_array* a, size_t numbers) {
  return guarded([&] {
    if (!a) throw ooc::usage_error(ooc::errc::invalid_request, "the array has been closed, or was never opened");
    if (const std::size_t rank = a->of_cpp.rank(); numbers != rank)
      throw ooc::usage_error(ooc::errc::invalid_request, "array '" + a->of_cpp.path() + "' has " +
                                                             std::to_string(rank) + " dimensions, and a list " +
                                                             std::to_string(numbers) +
                                                             " numbers: give one for each dimension");
  });
}

int ooc_array_resize(ooc_array* a, const size_t* extents) {
  return guarded([&] { given(a, "a")->of_cpp.resize(numbers_of(a->of_cpp, extents, "extents")); });
}

int ooc_array_advise(ooc_array* a, int pattern) {
  return guarded([&] {
    if (pattern < OOC_AUTOMATIC || pattern > OOC_RANDOM)
      throw ooc::usage_error(ooc::errc::invalid_request, "pattern " + std::to_string(pattern) + " is none");
    given(a, "a")->of_cpp.advise(static_cast<ooc::access_pattern>(pattern));
  });
}

int ooc_array_prefetch(ooc_array* a, const size_t* lower, const size_t* upper) {
  return guarded([&] { given(a, "a")->of_cpp.prefetch(box_of(a->of_cpp, lower, upper)); });
}

int ooc_array_overwrite(ooc_array* a, const size_t* lower, const size_t* upper) {
  return guarded([&] { given(a, "a")->of_cpp.overwrite(box_of(a->of_cpp, lower, upper)); });
}

int ooc_array_pin(ooc_array* a, const size_t* lower, const size_t* upper, int write, ooc_pin** p) {
  return guarded([&] {
    ooc_pin*& made = *given(p, "p");
    const auto mode = write ? ooc::access_mode::write : ooc::access_mode::read;
    made = new ooc_pin{given(a, "a")->of_cpp.pin(box_of(a->of_cpp, lower, upper), mode)};
  });
}

void ooc_pin_release(ooc_pin* p) { delete p; }

int ooc_array_gather(const ooc_array* a, size_t count, const size_t* numbers, void* to) {
  return guarded([&] {
    if (count == 0) return;
    given(a, "a")->of_cpp.core().elements().gather({given(numbers, "numbers"), count, 1},
                                                   static_cast<std::byte*>(given(to, "to")), count);
  });
}

int ooc_array_scatter(ooc_array* a, size_t count, const size_t* numbers, const void* from) {
  return guarded([&] {
    if (count == 0) return;
    given(a, "a")->of_cpp.core().elements().scatter({given(numbers, "numbers"), count, 1},
                                                    static_cast<const std::byte*>(given(from, "from")), count);
  });
}

int ooc_array_writeback(ooc_array* a, int durable) {
  return guarded([&] { given(a, "a")->of_cpp.writeback(how_safe(durable)); });
}

int ooc_array_invalidate(ooc_array* a, int discard) {
  return guarded([&] {
    if (discard)
      given(a, "a")->of_cpp.invalidate(ooc::discard);
    else
      given(a, "a")->of_cpp.invalidate();
  });
}

int ooc_array_sync(ooc_array* a, int durable) {
  return guarded([&] { given(a, "a")->of_cpp.sync(how_safe(durable)); });
}

int ooc_array_sync_halo(ooc_array* a, size_t rows) {
  return guarded([&] { given(a, "a")->of_cpp.sync_halo(rows); });
}

int ooc_array_local_rows(const ooc_array* a, size_t* begin, size_t* end) {
  return guarded([&] { std::tie(*given(begin, "begin"), *given(end, "end")) = given(a, "a")->of_cpp.local_rows(); });
}

void ooc_group_destroy(ooc_group* g) { delete g; }

// --- attributes and commits

int ooc_array_set_attribute(ooc_array* a, const char* key, const char* value) {
  return guarded([&] { given(a, "a")->of_cpp.set_attribute(given(key, "key"), given(value, "value")); });
}

int ooc_array_attribute(const ooc_array* a, const char* key, char* value, size_t room, size_t* needed) {
  int result = 0;
  const int error = guarded([&] { result = value_of(given(a, "a")->of_cpp.attributes(), key, value, room, needed); });
  return error != 0 ? error : result;
}

int ooc_commit(size_t arrays, ooc_array* const* a, size_t attributes, const char* const* keys,
               const char* const* values) {
  return guarded([&] {
    std::vector<ooc::array_base*> all;
    for (std::size_t i = 0; i < arrays; ++i) all.push_back(&given(given(a, "a")[i], "an array")->of_cpp);
    std::map<std::string, std::string> texts;
    for (std::size_t i = 0; i < attributes; ++i)
      texts[given(given(keys, "keys")[i], "a key")] = given(given(values, "values")[i], "a value");
    ooc::commit(all, texts);
  });
}

int64_t ooc_array_last_commit(const ooc_array* a) {
  std::int64_t number = -1;
  (void)guarded([&] {
    if (const auto last = given(a, "a")->of_cpp.last_commit()) number = static_cast<std::int64_t>(last->number);
  });
  return number;
}

int ooc_array_commit_attribute(const ooc_array* a, const char* key, char* value, size_t room, size_t* needed) {
  int result = 0;
  const int error = guarded([&] {
    const auto last = given(a, "a")->of_cpp.last_commit();
    if (!last)
      throw ooc::usage_error(ooc::errc::invalid_request, "'" + a->of_cpp.path() + "' was made without commits");
    result = value_of(last->attributes, key, value, room, needed);
  });
  return error != 0 ? error : result;
}

int ooc_array_roll_back(ooc_array* a) {
  return guarded([&] { given(a, "a")->of_cpp.roll_back(); });
}

}  // extern "C"
