#include "formats/zip_file.hpp"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "oocarray/error.hpp"
#include "oocarray/units.hpp"

namespace ooc::tool {

namespace {

// Numbers of the format, which PKWARE's APPNOTE.TXT describes.
constexpr std::uint32_t local_mark = 0x04034b50, central_mark = 0x02014b50, end_mark = 0x06054b50,
                        end64_mark = 0x06064b50, locator_mark = 0x07064b50;
constexpr std::uint16_t stored_method = 0, deflate_method = 8, zip64_extra = 1, encrypted_flag = 1;
constexpr std::uint32_t in_extra = 0xffffffff;  // the number stands in the extra field
constexpr std::size_t end_bytes = 22, locator_bytes = 20, end64_bytes = 56, central_bytes = 46, local_bytes = 30;

[[noreturn]] void no_archive(const std::string& archive, const std::string& why) {
  throw usage_error(errc::invalid_request, "'" + archive + "' is not a usable .npz (ZIP) file: " + why +
                                               "; copy it again where it was cut short");
}

std::string read_at(const input_file& in, std::uint64_t offset, std::size_t n) {
  std::string s(n, '\0');
  in.read(offset, std::as_writable_bytes(std::span(s)));
  return s;
}

template <class T>
T number_at(std::string_view bytes, std::size_t at) {
  T n = 0;
  for (std::size_t i = sizeof n; i-- > 0;) n = static_cast<T>(n << 8 | static_cast<unsigned char>(bytes[at + i]));
  return n;
}

struct directory {
  std::uint64_t begin = 0, bytes = 0;
};

directory directory_of(const std::string& archive, const input_file& in) {
  const std::uint64_t size = in.size();
  const std::size_t tail = static_cast<std::size_t>(std::min<std::uint64_t>(size, end_bytes + 0xffff));
  const std::string last = read_at(in, size - tail, tail);
  for (std::size_t at = tail < end_bytes ? 0 : tail - end_bytes + 1; at-- > 0;) {
    if (number_at<std::uint32_t>(last, at) != end_mark) continue;
    directory d{number_at<std::uint32_t>(last, at + 16), number_at<std::uint32_t>(last, at + 12)};
    if (at >= locator_bytes && number_at<std::uint32_t>(last, at - locator_bytes) == locator_mark) {
      const auto where = number_at<std::uint64_t>(last, at - locator_bytes + 8);
      if (where > size || size - where < end64_bytes) break;
      const std::string end64 = read_at(in, where, end64_bytes);
      if (number_at<std::uint32_t>(end64, 0) != end64_mark) break;
      d = {number_at<std::uint64_t>(end64, 48), number_at<std::uint64_t>(end64, 40)};
    }
    if (d.begin > size || d.bytes > size - d.begin) break;
    return d;
  }
  no_archive(archive, "its list of members is missing");
}

/// Takes the numbers that stand in the extra field from there, in their order.
void take_from_extra(std::string_view extra, std::initializer_list<std::uint64_t*> numbers) {
  while (extra.size() >= 4) {
    const auto id = number_at<std::uint16_t>(extra, 0);
    const std::size_t n = std::min<std::size_t>(number_at<std::uint16_t>(extra, 2), extra.size() - 4);
    std::string_view field = extra.substr(4, n);
    extra.remove_prefix(4 + n);
    if (id != zip64_extra) continue;
    for (std::uint64_t* const number : numbers) {
      if (*number != in_extra || field.size() < 8) continue;
      *number = number_at<std::uint64_t>(field, 0);
      field.remove_prefix(8);
    }
    return;
  }
}

/// Takes the entry at the beginning of the list; its `begin` is that of its header.
zip_member take_entry(const std::string& archive, std::string_view& list) {
  if (list.size() < central_bytes || number_at<std::uint32_t>(list, 0) != central_mark)
    no_archive(archive, "its list of members is damaged");
  zip_member m;
  const auto flags = number_at<std::uint16_t>(list, 8), method = number_at<std::uint16_t>(list, 10);
  m.crc = number_at<std::uint32_t>(list, 16);
  m.packed = number_at<std::uint32_t>(list, 20);
  m.size = number_at<std::uint32_t>(list, 24);
  m.begin = number_at<std::uint32_t>(list, 42);
  const std::size_t name = number_at<std::uint16_t>(list, 28), extra = number_at<std::uint16_t>(list, 30),
                    comment = number_at<std::uint16_t>(list, 32);
  if (list.size() < central_bytes + name + extra + comment) no_archive(archive, "its list of members is damaged");
  m.name = list.substr(central_bytes, name);
  take_from_extra(list.substr(central_bytes + name, extra), {&m.size, &m.packed, &m.begin});
  list.remove_prefix(central_bytes + name + extra + comment);
  m.deflated = method == deflate_method;
  if ((flags & encrypted_flag) != 0 || (method != stored_method && method != deflate_method))
    throw usage_error(errc::type_mismatch, "'" + archive + "': member '" + m.name +
                                               "' is encrypted, or packed in another way than np.savez and "
                                               "np.savez_compressed do; save it with one of them");
  return m;
}

}  // namespace

std::vector<zip_member> zip_members(const std::string& archive) {
  const input_file in(archive);
  if (in.is_stream())
    throw usage_error(errc::invalid_request, "'" + archive +
                                                 "': a .npz file has its list of members at its end, and "
                                                 "cannot come from a stream");
  const directory d = directory_of(archive, in);
  if (d.bytes > 1_GiB) no_archive(archive, "its list of members claims to be longer than 1 GiB");
  const std::string all = read_at(in, d.begin, static_cast<std::size_t>(d.bytes));
  std::vector<zip_member> members;
  for (std::string_view list = all; !list.empty();) {
    zip_member m = take_entry(archive, list);
    if (m.name.ends_with('/')) continue;
    const std::uint64_t size = in.size();
    if (m.begin > size || size - m.begin < local_bytes)
      no_archive(archive, "member '" + m.name + "' is beyond its end");
    const std::string header = read_at(in, m.begin, local_bytes);
    if (number_at<std::uint32_t>(header, 0) != local_mark) no_archive(archive, "member '" + m.name + "' has no header");
    m.begin += local_bytes + number_at<std::uint16_t>(header, 26) + number_at<std::uint16_t>(header, 28);
    if (m.begin > size || m.packed > size - m.begin || (!m.deflated && m.packed != m.size))
      no_archive(archive, "member '" + m.name + "' is beyond its end");
    members.push_back(std::move(m));
  }
  return members;
}

struct zip_reader::impl {
  impl(const std::string& archive, zip_member m)
      : what("'" + archive + "', member '" + m.name + "'"), in(archive), member(std::move(m)) {
    isal_inflate_init(&state);
  }

  /// More of what is packed.
  void feed() {
    const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(packed.size(), member.packed - taken));
    const std::span<std::byte> part(packed.data(), n);
    in.read(member.begin + taken, part);
    taken += n;
    state.next_in = reinterpret_cast<std::uint8_t*>(part.data());
    state.avail_in = static_cast<std::uint32_t>(n);
  }

  void inflate(std::span<std::byte> out) {
    constexpr std::size_t most = 1 << 30;  // of what the library counts in 32 bits
    while (!out.empty()) {
      const std::size_t n = std::min(out.size(), most);
      state.next_out = reinterpret_cast<std::uint8_t*>(out.data());
      state.avail_out = static_cast<std::uint32_t>(n);
      while (state.avail_out != 0) {
        if (state.avail_in == 0 && taken < member.packed) feed();
        const auto before = std::pair(state.avail_in, state.avail_out);  // it may hold some of both itself
        if (isal_inflate(&state) != ISAL_DECOMP_OK) damaged("cannot be unpacked");
        if (std::pair(state.avail_in, state.avail_out) == before) damaged("ends before its last byte");
      }
      out = out.subspan(n);
    }
  }

  [[noreturn]] void damaged(const std::string& how) const {
    throw io_error::in_full({EIO, std::generic_category()}, what + " " + how + "; take the file from its source again");
  }

  std::string what;
  input_file in;
  zip_member member;
  std::uint64_t taken = 0, given = 0;  ///< bytes of the packed and of the unpacked ones
  std::uint32_t crc = 0;
  std::array<std::byte, 64 * 1024> packed;
  inflate_state state;
};

zip_reader::zip_reader(const std::string& archive, zip_member member)
    : impl_(std::make_unique<impl>(archive, std::move(member))) {}

zip_reader::~zip_reader() = default;

void zip_reader::read(std::span<std::byte> out) {
  impl& m = *impl_;
  if (out.size() > m.member.size - m.given) m.damaged("ends before its last byte");
  if (m.member.deflated)
    m.inflate(out);
  else
    m.in.read(m.member.begin + m.given, out);
  m.given += out.size();
  m.crc = crc32_gzip_refl(m.crc, reinterpret_cast<const unsigned char*>(out.data()), out.size());
}

void zip_reader::finish() {
  impl& m = *impl_;
  if (m.given != m.member.size) m.damaged("holds more data than its shape needs");
  if (m.crc != m.member.crc) m.damaged("does not match its checksum");
}

}  // namespace ooc::tool
