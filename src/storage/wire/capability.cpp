#include "storage/wire/capability.hpp"

#include <sodium.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "storage/wire/secret_file.hpp"
#include "storage/wire/sodium.hpp"

namespace ooc::wire {

namespace {

static_assert(std::endian::native == std::endian::little, "capabilities are copied as they are");

constexpr std::string_view magic = "OOCCAP03";

/// The signed part, as it travels.
struct packed {
  char magic[8];
  std::uint64_t file;
  std::uint32_t rights;
  std::uint32_t uid;
  std::int64_t expiry;
  std::uint64_t serial;
  char store_uuid[40];  // padded with zeros
  std::uint64_t size;
  std::uint64_t sf;
  std::uint32_t sn;
  std::uint32_t nn;
  std::uint32_t sparse;  // 0 or 1
  std::uint32_t reserved;
  std::uint8_t fill[16];
  std::uint8_t holder[16];
};
static_assert(sizeof(packed) == 144 && sizeof(packed) + crypto_sign_BYTES == capability_size);
static_assert(crypto_sign_PUBLICKEYBYTES == capability_public_size);

constexpr const char* title = "oocarray-capability-seed";

const unsigned char* bytes_of(const void* p) { return static_cast<const unsigned char*>(p); }

verified_capability refused(capability_fault fault, int error, std::string why) {
  return {fault, {}, {{error, std::generic_category()}, std::move(why)}};
}

}  // namespace

file_geometry geometry_of(std::uint64_t size, const ooc::striping& s, bool sparse, std::span<const std::byte> fill) {
  file_geometry g{size, s, sparse, {}};
  if (!fill.empty()) {
    ready_sodium();
    ::crypto_generichash(g.fill.data(), g.fill.size(), bytes_of(fill.data()), fill.size(), nullptr, 0);
  }
  return g;
}

holder_mark mark_of(std::string_view identity) {
  holder_mark mark{};
  if (identity.empty()) return mark;
  ready_sodium();
  ::crypto_generichash(mark.data(), mark.size(), bytes_of(identity.data()), identity.size(), nullptr, 0);
  return mark;
}

capability_signer::capability_signer(const std::filesystem::path& file) {
  ready_sodium();
  static_assert(crypto_sign_SECRETKEYBYTES == 64);
  std::array<std::uint8_t, crypto_sign_SEEDBYTES> seed{};
  if (!std::filesystem::exists(file)) {
    ::randombytes_buf(seed.data(), seed.size());
    write_secret_file(file, title, seed);
  }
  read_secret_file(file, title, seed);
  ::crypto_sign_seed_keypair(public_.data(), secret_.data(), seed.data());
  ::sodium_memzero(seed.data(), seed.size());
}

capability_signer::~capability_signer() { ::sodium_memzero(secret_.data(), secret_.size()); }

std::string capability_signer::sign(const capability& c) const {
  packed p = {};
  if (c.store_uuid.size() > sizeof p.store_uuid)
    throw usage_error(errc::invalid_request, "the identity of a store has at most 40 bytes");
  std::memcpy(p.magic, magic.data(), magic.size());
  p.file = c.file;
  p.rights = c.rights;
  p.uid = c.uid;
  p.expiry = c.expiry;
  p.serial = c.serial;
  std::memcpy(p.store_uuid, c.store_uuid.data(), c.store_uuid.size());
  p.size = c.geometry.size;
  p.sf = c.geometry.striping.sf;
  p.sn = c.geometry.striping.sn;
  p.nn = c.geometry.striping.nn;
  p.sparse = c.geometry.sparse ? 1 : 0;
  std::memcpy(p.fill, c.geometry.fill.data(), sizeof p.fill);
  std::memcpy(p.holder, c.holder.data(), sizeof p.holder);
  std::string out(capability_size, '\0');
  std::memcpy(out.data(), &p, sizeof p);
  ::crypto_sign_detached(reinterpret_cast<unsigned char*>(out.data()) + sizeof p, nullptr, bytes_of(&p), sizeof p,
                         secret_.data());
  return out;
}

verified_capability verify_capability(const capability_public_key& key, std::string_view store_uuid,
                                      std::string_view bytes, std::int64_t now) {
  ready_sodium();
  if (bytes.size() != capability_size || !bytes.starts_with(magic))
    return refused(capability_fault::malformed, EPROTO,
                   bytes.empty() ? "the request carries no capability" : "the capability is malformed");
  packed p = {};
  std::memcpy(&p, bytes.data(), sizeof p);
  if (::crypto_sign_verify_detached(bytes_of(bytes.data()) + sizeof p, bytes_of(bytes.data()), sizeof p, key.data()) !=
      0)
    return refused(capability_fault::forged, EACCES,
                   "the capability is forged or damaged: this store's metadata server has not "
                   "signed it");
  const std::string_view uuid(p.store_uuid, ::strnlen(p.store_uuid, sizeof p.store_uuid));
  if (uuid != store_uuid)
    return refused(capability_fault::other_store, ESTALE,
                   "the capability is for store " + std::string(uuid) + ", not for store " + std::string(store_uuid));
  verified_capability v;
  v.granted = {
      p.file, p.rights, p.uid, p.expiry, p.serial, std::string(uuid), {p.size, {p.sn, p.nn, p.sf}, p.sparse != 0, {}},
      {}};
  std::memcpy(v.granted.geometry.fill.data(), p.fill, sizeof p.fill);
  std::memcpy(v.granted.holder.data(), p.holder, sizeof p.holder);
  if (now >= p.expiry) {
    v.fault = capability_fault::expired;
    v.reason = {{EKEYEXPIRED, std::generic_category()},
                "the capability for file number " + std::to_string(p.file) + " expired " +
                    std::to_string(now - p.expiry) + " s ago; open the file again"};
  }
  return v;
}

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace ooc::wire
