#include "storage/chunked/scale_offset.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstring>
#include <type_traits>

namespace ooc::storage {
namespace {

/// What H5Pget_filter2 gives as cd_values, in the order in which it does.
struct scale_offset {
  std::uint32_t method;  ///< 0: floating-point numbers times ten to the power of `scale`; 2: whole numbers
  std::uint32_t scale;   ///< of whole numbers the bits that were asked for; 0: as few as they need
  std::uint32_t elements;
  std::uint32_t is_floating;
  std::uint32_t size;  ///< of an element
  std::uint32_t is_signed;
  std::uint32_t is_big_endian;
  std::uint32_t has_fill;
  std::uint32_t fill[12];
};

constexpr std::size_t header_bytes = 21;

/// Numbers of so many bits each, the greatest bit first.
class bit_reader {
 public:
  bit_reader(const std::byte* from, unsigned bits) : from_(from), bits_(bits) {}
  std::uint64_t next() {
    std::uint64_t value = 0;
    for (unsigned wanted = bits_; wanted > 0;) {
      const unsigned taken = std::min(wanted, 8 - used_);
      const auto rest = static_cast<unsigned>(*from_) & 0xffU >> used_;
      value = value << taken | rest >> (8 - used_ - taken);
      used_ += taken;
      wanted -= taken;
      if (used_ == 8) {
        ++from_;
        used_ = 0;
      }
    }
    return value;
  }

 private:
  const std::byte* from_;
  const unsigned bits_;
  unsigned used_ = 0;  // of the first byte
};

template <class T>
void put(T value, bool big_endian, std::byte* to) {
  std::memcpy(to, &value, sizeof value);
  if (big_endian) std::reverse(to, to + sizeof value);
}

/// `bits`: of each number; fewer than T has.  `least`: the bits of the least of them.
template <class T>
void unpack_numbers(const scale_offset& p, const std::byte* from, unsigned bits, std::uint64_t least, std::byte* to) {
  using whole = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  const std::uint64_t stands_for_fill = (std::uint64_t{1} << bits) - 1;
  T fill{}, added{};
  std::memcpy(&fill, p.fill, sizeof fill);
  std::memcpy(&added, &least, sizeof added);
  T power{1};
  if constexpr (std::floating_point<T>) power = std::pow(T{10}, static_cast<T>(static_cast<int>(p.scale)));
  bit_reader packed(from, bits);
  for (std::uint32_t i = 0; i < p.elements; ++i, to += sizeof(T)) {
    const std::uint64_t n = packed.next();
    T value = fill;
    if (p.has_fill == 0 || n != stands_for_fill) {
      if constexpr (std::floating_point<T>)
        value = static_cast<T>(static_cast<whole>(n)) / power + added;
      else
        value = static_cast<T>(n + added);
    }
    put(value, p.is_big_endian != 0, to);
  }
}

using unpacker = void (*)(const scale_offset&, const std::byte*, unsigned, std::uint64_t, std::byte*);

/// Signed numbers are those without a sign, as they wrap.
unpacker unpacker_for(const scale_offset& p) {
  if (p.is_floating != 0) {
    if (p.method != 0) return nullptr;
    return p.size == 4 ? unpack_numbers<float> : p.size == 8 ? unpack_numbers<double> : nullptr;
  }
  if (p.method != 2) return nullptr;
  switch (p.size) {
    case 1: return unpack_numbers<std::uint8_t>;
    case 2: return unpack_numbers<std::uint16_t>;
    case 4: return unpack_numbers<std::uint32_t>;
    case 8: return unpack_numbers<std::uint64_t>;
    default: return nullptr;
  }
}

template <class T>
T little_endian(const std::byte* from) {
  static_assert(std::endian::native == std::endian::little);
  T value{};
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

std::string undo_scale_offset(std::span<const std::uint32_t> parameters, std::span<const std::byte>& now,
                              std::span<std::byte> next) {
  const std::string not_undone = "cannot be unpacked (scale-offset)";
  scale_offset p{};
  if (parameters.size_bytes() != sizeof p) return not_undone + ", as its parameters are incomplete";
  std::memcpy(&p, parameters.data(), sizeof p);
  const unpacker unpack = unpacker_for(p);
  if (unpack == nullptr) return not_undone + ", as its parameters are none that HDF5 writes";
  if (p.is_floating == 0 && p.scale == 8 * p.size) return "";  // all bits were asked for: it did nothing
  const std::uint64_t bytes = std::uint64_t{p.elements} * p.size;
  if (bytes > next.size()) return "unpacks to more than a chunk (scale-offset)";
  if (now.size() < header_bytes) return "is too short (scale-offset)";
  const auto bits = little_endian<std::uint32_t>(now.data());
  const std::span<const std::byte> packed = now.subspan(header_bytes);
  if (bits > 8 * p.size) return not_undone;
  if (packed.size() < (std::uint64_t{p.elements} * bits + 7) / 8) return "is cut short (scale-offset)";
  if (bits == 8 * p.size) {  // as they were, the least byte first
    std::memcpy(next.data(), packed.data(), bytes);
    for (std::byte* e = next.data(); p.is_big_endian != 0 && e != next.data() + bytes; e += p.size)
      std::reverse(e, e + p.size);
  } else {
    unpack(p, packed.data(), bits, little_endian<std::uint64_t>(now.data() + 5), next.data());
  }
  now = next.first(bytes);
  return "";
}

}  // namespace ooc::storage
