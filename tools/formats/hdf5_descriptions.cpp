#include "formats/hdf5_descriptions.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "oocarray/error.hpp"

namespace ooc::tool::hdf5 {

namespace {

using storage::element_description;
using storage::element_field;

constexpr const char* tag_mark = "NUMPY:";

[[noreturn]] void refuse_described(const std::string& what, const std::string& is) {
  throw usage_error(errc::type_mismatch, what + " holds " + is);
}

element_type element_described_as(element_description d, handle in_memory) {
  const storage::recorded_element is = storage::recorded(d);
  return {is.name, is.size, std::move(in_memory), is.description};
}

element_description description_of_element(const element_type& e) {
  return e.description.empty() ? storage::description_named(e.name) : storage::description_of(e.description);
}

/// In a record each member has the place that it has in the file.
void require_size(hid_t type, const element_type& e, const std::string& what) {
  if (H5Tget_size(type) != e.size)
    refuse_described(what, "numbers of a format of their own, of " + std::to_string(H5Tget_size(type)) +
                               " bytes, which no record can have; convert them (h5py: astype())");
}

struct compound_member {
  std::string name;
  std::size_t offset = 0;
  element_field field;
  handle type;  ///< in memory
};

compound_member member_of(hid_t type, unsigned i, const std::string& what) {
  compound_member m;
  char* name = H5Tget_member_name(type, i);
  m.name = name ? name : "";
  H5free_memory(name);
  m.offset = H5Tget_member_offset(type, i);
  m.field.name = m.name;
  const handle of(H5Tget_member_type(type, i), H5Tclose);
  const std::string inner = what + ": member '" + m.name + "'";
  if (H5Tget_class(of) != H5T_ARRAY) {
    element_type e = element_of(of, inner);
    require_size(of, e, inner);
    m.field.element = description_of_element(e);
    m.type = std::move(e.type);
    return m;
  }
  std::array<hsize_t, H5S_MAX_RANK> n{};
  const int rank = H5Tget_array_dims2(of, n.data());
  m.field.shape.assign(n.begin(), n.begin() + rank);
  const handle base(H5Tget_super(of), H5Tclose);
  element_type e = element_of(base, inner);
  require_size(base, e, inner);
  m.field.element = description_of_element(e);
  m.type = handle(H5Tarray_create2(e.type, static_cast<unsigned>(rank), n.data()), H5Tclose);
  return m;
}

element_field padding(std::uint64_t bytes) {
  element_field f;
  f.element.type = "V" + std::to_string(bytes);
  return f;
}

/// Its members where they are, in the byte order of this machine.
element_type record_of(hid_t type, const std::string& what) {
  std::vector<compound_member> members;
  for (int i = 0; i < H5Tget_nmembers(type); ++i) members.push_back(member_of(type, static_cast<unsigned>(i), what));
  std::ranges::sort(members, {}, &compound_member::offset);
  const std::size_t size = H5Tget_size(type);
  handle in_memory(H5Tcreate(H5T_COMPOUND, size), H5Tclose);
  element_description d;
  std::size_t at = 0;
  for (compound_member& m : members) {
    if (m.offset < at) refuse_described(what, "records whose members overlap, which no array can be");
    if (m.offset > at) d.fields.push_back(padding(m.offset - at));
    H5Tinsert(in_memory, m.name.c_str(), m.offset, m.type);
    at = m.offset + m.field.size();
    d.fields.push_back(std::move(m.field));
  }
  if (at < size) d.fields.push_back(padding(size - at));
  if (size > (1u << 16))
    refuse_described(what, "records of " + std::to_string(size) + " bytes; at most 65536 are possible");
  return element_described_as(std::move(d), std::move(in_memory));
}

/// `like` with zeros behind its text, as NumPy has them.
handle padded_string(hid_t like, std::size_t size) {
  handle t(H5Tcopy(like), H5Tclose);
  H5Tset_size(t, size);
  H5Tset_strpad(t, H5T_STR_NULLPAD);
  return t;
}

handle opaque_of(std::size_t size, const std::string& tag) {
  handle t(H5Tcreate(H5T_OPAQUE, size), H5Tclose);
  H5Tset_tag(t, tag.c_str());
  return t;
}

element_type opaque_element(hid_t type) {
  char* text = H5Tget_tag(type);
  const std::string tag = text ? text : "";
  H5free_memory(text);
  handle same(H5Tcopy(type), H5Tclose);
  element_description d;
  d.type = "V" + std::to_string(H5Tget_size(type));
  if (tag.starts_with(tag_mark)) {
    const std::string said = tag.substr(std::strlen(tag_mark));
    try {
      element_description tagged = storage::description_of(said.starts_with('[') ? said : "'" + said + "'");
      if (tagged.size() == H5Tget_size(type)) d = std::move(tagged);
    } catch (const storage::no_element&) {
      // Bytes with a tag that is somebody else's matter.
    }
  }
  return element_described_as(std::move(d), std::move(same));
}

handle in_order(handle t, bool swapped) {
  constexpr bool little = std::endian::native == std::endian::little;
  if (swapped) H5Tset_order(t, little ? H5T_ORDER_BE : H5T_ORDER_LE);
  return t;
}

handle complex_in_order(const element_description& d, const std::string& what) {
  const std::size_t n = d.size() / 2;
  const handle part =
      in_order(element_named("f" + std::to_string(n), static_cast<std::uint32_t>(n), what).type, d.swapped);
  handle t(H5Tcreate(H5T_COMPOUND, 2 * n), H5Tclose);
  H5Tinsert(t, "r", 0, part);
  H5Tinsert(t, "i", n, part);
  return t;
}

handle record_described(const element_description& d, const std::string& what) {
  handle t(H5Tcreate(H5T_COMPOUND, d.size()), H5Tclose);
  std::size_t at = 0;
  for (const element_field& f : d.fields) {
    if (!f.name.empty()) {
      handle of = type_described(f.element, what);
      if (!f.shape.empty()) {
        const std::vector<hsize_t> n(f.shape.begin(), f.shape.end());
        of = handle(H5Tarray_create2(of, static_cast<unsigned>(n.size()), n.data()), H5Tclose);
      }
      if (H5Tinsert(t, f.name.c_str(), at, of) < 0)
        refuse_described(what, "records that HDF5 cannot have: " + last_error() + "; export it as .npy");
    }
    at += f.size();
  }
  if (H5Tget_nmembers(t) == 0) return opaque_of(d.size(), "");
  return t;
}

}  // namespace

element_type described_element_of(hid_t type, const std::string& what) {
  switch (H5Tget_class(type)) {
    case H5T_COMPOUND: return record_of(type, what);
    case H5T_OPAQUE: return opaque_element(type);
    case H5T_STRING: {
      if (H5Tis_variable_str(type) > 0)
        refuse_described(what,
                         "strings of variable length, which no array can be; give them a fixed size (h5py: "
                         "astype('S20'))");
      element_description d;
      d.type = "S" + std::to_string(H5Tget_size(type));
      return element_described_as(std::move(d), padded_string(type, H5Tget_size(type)));
    }
    default: refuse_described(what, "elements that no array can be");
  }
}

bool is_stored_as(hid_t stored, hid_t in_memory) {
  if (H5Tequal(stored, in_memory) > 0) return true;
  switch (H5Tget_class(stored)) {
    case H5T_ENUM: return H5Tequal(handle(H5Tget_super(stored), H5Tclose), in_memory) > 0;
    case H5T_ARRAY:
      return is_stored_as(handle(H5Tget_super(stored), H5Tclose), handle(H5Tget_super(in_memory), H5Tclose));
    case H5T_STRING: return H5Tget_size(stored) == 1 && H5Tget_strpad(stored) == H5T_STR_NULLTERM;  // NetCDF's char
    case H5T_COMPOUND: break;
    default: return false;
  }
  for (int i = 0; i < H5Tget_nmembers(stored); ++i) {
    const auto of = static_cast<unsigned>(i);
    char* const name = H5Tget_member_name(stored, of);
    const int here = name ? H5Tget_member_index(in_memory, name) : -1;
    H5free_memory(name);
    if (here < 0 || !is_stored_as(handle(H5Tget_member_type(stored, of), H5Tclose),
                                  handle(H5Tget_member_type(in_memory, static_cast<unsigned>(here)), H5Tclose)))
      return false;
  }
  return true;
}

handle type_described(const element_description& d, const std::string& what) {
  if (d.type.empty()) return record_described(d, what);
  const std::uint64_t bytes = d.size();
  switch (d.kind()) {
    case 'S': return padded_string(H5T_C_S1, bytes);
    case 'V': return opaque_of(bytes, "");  // as h5py does: only opaque bytes of the same tag are converted
    case 'U':
    case 'M':
    case 'm': {
      const std::string text = d.text();  // in quotes
      return opaque_of(bytes, tag_mark + text.substr(1, text.size() - 2));
    }
    case 'c': return complex_in_order(d, what);
    default: return in_order(element_named(d.type, static_cast<std::uint32_t>(bytes), what).type, d.swapped);
  }
}

}  // namespace ooc::tool::hdf5
