#include "formats/hdf5_types.hpp"

#include <cstring>

#include "formats/hdf5_descriptions.hpp"
#include "oocarray/error.hpp"

namespace ooc::tool::hdf5 {

namespace {

handle half() {
  handle t(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  H5Tset_fields(t, 15, 10, 5, 0, 10);
  H5Tset_size(t, 2);
  H5Tset_ebias(t, 15);
  return t;
}

bool is_half(hid_t type) {
  std::size_t sign = 0, exponent = 0, exponent_size = 0, mantissa = 0, mantissa_size = 0;
  H5Tget_fields(type, &sign, &exponent, &exponent_size, &mantissa, &mantissa_size);
  return sign == 15 && exponent == 10 && exponent_size == 5 && mantissa == 0 && mantissa_size == 10 &&
         H5Tget_ebias(type) == 15;
}

std::string member(hid_t type, unsigned i) {
  char* text = H5Tget_member_name(type, i);
  const std::string name = text ? text : "";
  H5free_memory(text);
  return name;
}

/// As h5py and NumPy write booleans.
bool is_boolean(hid_t type) {
  if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return false;
  std::uint8_t no = 1, yes = 0;
  return member(type, 0) == "FALSE" && member(type, 1) == "TRUE" && H5Tget_member_value(type, 0, &no) >= 0 &&
         H5Tget_member_value(type, 1, &yes) >= 0 && no == 0 && yes == 1;
}

/// Whether every value of a float type is one of the IEEE type too.
bool fits(hid_t type, hid_t ieee) {
  struct fields {
    std::size_t sign = 0, exponent = 0, exponent_size = 0, mantissa = 0, mantissa_size = 0;
    long long bias = 0;
    explicit fields(hid_t t) {
      H5Tget_fields(t, &sign, &exponent, &exponent_size, &mantissa, &mantissa_size);
      bias = static_cast<long long>(H5Tget_ebias(t));
    }
    long long largest() const { return (1LL << exponent_size) - 2 - bias; }
    long long smallest() const { return 1 - bias; }
  };
  const fields a(type), b(ieee);
  const bool plain = H5Tget_norm(type) == H5T_NORM_IMPLIED && H5Tget_order(type) != H5T_ORDER_VAX;
  return plain && a.exponent_size <= b.exponent_size && a.mantissa_size <= b.mantissa_size &&
         a.largest() <= b.largest() && a.smallest() >= b.smallest();
}

/// The smallest of our float types, not smaller than it is itself, that holds all values of a float type; -1: none.
hid_t float_for(hid_t type) {
  for (const hid_t ours : {H5T_IEEE_F32LE, H5T_IEEE_F64LE})
    if (H5Tget_size(type) <= H5Tget_size(ours) && fits(type, ours)) return ours;
  return -1;
}

handle complex_of(hid_t part) {
  const std::size_t n = H5Tget_size(part);
  handle t(H5Tcreate(H5T_COMPOUND, 2 * n), H5Tclose);
  H5Tinsert(t, "r", 0, part);
  H5Tinsert(t, "i", n, part);
  return t;
}

hid_t integer(bool is_signed, std::size_t size) {
  switch (size) {
    case 1: return is_signed ? H5T_STD_I8LE : H5T_STD_U8LE;
    case 2: return is_signed ? H5T_STD_I16LE : H5T_STD_U16LE;
    case 4: return is_signed ? H5T_STD_I32LE : H5T_STD_U32LE;
    case 8: return is_signed ? H5T_STD_I64LE : H5T_STD_U64LE;
    default: return -1;
  }
}

/// For integers of fewer bits than their bytes have: where the order of the bytes differs, libhdf5 swaps these alone,
/// and loses the sign.  Without that shortcut it converts the values.
void convert_by_value(hid_t integers) {
  if (H5Tget_precision(integers) == 8 * H5Tget_size(integers)) return;
  for (const char* shortcut : {"ibo", "ibo(opt)"}) H5Tunregister(H5T_PERS_SOFT, shortcut, -1, -1, nullptr);
}

hid_t bits(std::size_t size) {
  return size == 1   ? H5T_STD_B8LE
         : size == 2 ? H5T_STD_B16LE
         : size == 4 ? H5T_STD_B32LE
         : size == 8 ? H5T_STD_B64LE
                     : -1;
}

[[noreturn]] void refuse(const std::string& what, const std::string& is) {
  throw usage_error(
      errc::type_mismatch,
      what + " holds " + is +
          ", which no array can be; integers and bit fields of 1 to 8 bytes, floats of 2, 4, 8 and 16, complex "
          "numbers, "
          "booleans, strings of fixed size, opaque bytes and records of them can: convert it (h5py: astype())");
}

const char* class_name(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_REFERENCE: return "references";
    case H5T_VLEN: return "sequences of variable length";
    case H5T_ARRAY: return "arrays as elements";
    case H5T_TIME: return "times";
    case H5T_FLOAT: return "floats of a format of its own";
    case H5T_INTEGER: return "integers of a size of their own";
    default: return "elements of an unknown kind";
  }
}

}  // namespace

bool is_long_double(hid_t type) {
  return sizeof(long double) == 16 && H5Tget_class(type) == H5T_FLOAT && H5Tequal(type, H5T_NATIVE_LDOUBLE) > 0;
}

void be_quiet() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

element_type element_of(hid_t type, const std::string& what) {
  const std::size_t size = H5Tget_size(type);
  const auto named = [&](std::string prefix, handle in_memory) {
    return element_type{prefix + std::to_string(size), static_cast<std::uint32_t>(size), std::move(in_memory)};
  };
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: {
      const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
      convert_by_value(type);
      if (const hid_t t = integer(is_signed, size); t >= 0)
        return named(is_signed ? "i" : "u", handle(H5Tcopy(t), H5Tclose));
      break;
    }
    case H5T_BITFIELD:
      if (const hid_t t = bits(size); t >= 0) return named("u", handle(H5Tcopy(t), H5Tclose));
      break;
    case H5T_FLOAT:
      if (size == 2 && is_half(type)) return named("f", half());
      if (is_long_double(type)) return named("f", handle(H5Tcopy(H5T_NATIVE_LDOUBLE), H5Tclose));
      if (const hid_t t = float_for(type); t >= 0) {
        const std::size_t bytes = H5Tget_size(t);
        return {"f" + std::to_string(bytes), static_cast<std::uint32_t>(bytes), handle(H5Tcopy(t), H5Tclose)};
      }
      break;
    case H5T_ENUM: {
      const handle base(H5Tget_super(type), H5Tclose);
      if (!(H5Tget_class(base) == H5T_INTEGER && integer(true, size) >= 0)) break;
      const bool is_signed = H5Tget_sign(base) == H5T_SGN_2;
      convert_by_value(base);
      // As integers: between enumerations libhdf5 turns values without a name into -1.
      return named(is_boolean(type) ? "b" : is_signed ? "i" : "u", handle(H5Tcopy(integer(is_signed, size)), H5Tclose));
    }
    case H5T_COMPOUND: {
      if (H5Tget_nmembers(type) != 2) return described_element_of(type, what);
      const std::string names = member(type, 0) + "," + member(type, 1);
      const handle a(H5Tget_member_type(type, 0), H5Tclose), b(H5Tget_member_type(type, 1), H5Tclose);
      const std::size_t part = H5Tget_size(a);
      const bool plain = (part == 4 || part == 8) && fits(a, part == 4 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE);
      const bool complex = H5Tget_class(a) == H5T_FLOAT && H5Tequal(a, b) > 0 && (plain || is_long_double(a)) &&
                           H5Tget_size(type) == 2 * part &&
                           (names == "r,i" || names == "real,imag" || names == "re,im");
      if (!complex) return described_element_of(type, what);
      handle t(H5Tcreate(H5T_COMPOUND, 2 * part), H5Tclose);
      const hid_t native = part == 4 ? H5T_IEEE_F32LE : part == 8 ? H5T_IEEE_F64LE : H5T_NATIVE_LDOUBLE;
      H5Tinsert(t, member(type, 0).c_str(), 0, native);
      H5Tinsert(t, member(type, 1).c_str(), part, native);
      return {"c" + std::to_string(2 * part), static_cast<std::uint32_t>(2 * part), std::move(t)};
    }
    case H5T_OPAQUE:
    case H5T_STRING: return described_element_of(type, what);
    default: break;
  }
  refuse(what, class_name(type));
}

element_type element_named(const std::string& name, std::uint32_t size, const std::string& what) {
  const auto made = [&](handle t) { return element_type{name, size, std::move(t)}; };
  const char kind = name.empty() ? '?' : name[0];
  if (name == "b1") {
    handle t(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
    const std::int8_t no = 0, yes = 1;
    H5Tenum_insert(t, "FALSE", &no);
    H5Tenum_insert(t, "TRUE", &yes);
    return made(std::move(t));
  }
  if (name == "f2") return made(half());
  if (name == "f4") return made(handle(H5Tcopy(H5T_IEEE_F32LE), H5Tclose));
  if (name == "f8") return made(handle(H5Tcopy(H5T_IEEE_F64LE), H5Tclose));
  if (name == "f16" && sizeof(long double) == 16) return made(handle(H5Tcopy(H5T_NATIVE_LDOUBLE), H5Tclose));
  if (name == "c32" && sizeof(long double) == 16) return made(complex_of(H5T_NATIVE_LDOUBLE));
  if (name == "c8") return made(complex_of(H5T_IEEE_F32LE));
  if (name == "c16") return made(complex_of(H5T_IEEE_F64LE));
  if (name.starts_with("struct") || name.empty()) {
    handle t(H5Tcreate(H5T_OPAQUE, size), H5Tclose);
    H5Tset_tag(t, "");  // as h5py does: only opaque bytes of the same tag are converted
    return made(std::move(t));
  }
  if ((kind == 'i' || kind == 'u') && integer(kind == 'i', size) >= 0)
    return made(handle(H5Tcopy(integer(kind == 'i', size)), H5Tclose));
  throw usage_error(errc::type_mismatch, what + " has elements of the type " + name +
                                             ", which no HDF5 type stands for here; export it as .npy, or raw");
}

}  // namespace ooc::tool::hdf5
