#include "storage/object/object_identity.hpp"

#include <cstring>

#include "oocarray/error.hpp"
#include "storage/base/durable_file.hpp"
#include "storage/layout/crc32c.hpp"

namespace ooc::storage {
namespace {

std::string number(std::uint64_t n) { return std::to_string(n); }

std::string geometry(const object_identity& s) {
  return "(first node " + number(s.sn) + ", " + number(s.nn) + " nodes, stripes of " + number(s.sf) + " bytes)";
}

}  // namespace

store_id store_id_from(std::string_view uuid) {
  store_id id{};
  if (uuid.empty()) return id;
  std::size_t digits = 0;
  for (const char c : uuid) {
    if (c == '-') continue;
    const int v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (v < 0 || digits == 32) {
      digits = 0;
      break;
    }
    id[digits / 2] = static_cast<std::uint8_t>(id[digits / 2] << 4 | v);
    ++digits;
  }
  if (digits != 32) throw usage_error(errc::not_a_store, "'" + std::string(uuid) + "' is not the UUID of a store");
  return id;
}

object_identity identity_of(const store_id& store, const file_shape& f, std::uint32_t stripe_index) {
  return {store,
          f.id,
          stripe_index,
          f.striping.sn,
          f.striping.nn,
          f.striping.sf,
          static_cast<std::uint32_t>(f.fill.size()),
          f.fill.empty() ? 0 : crc32c(f.fill.data(), f.fill.size())};
}

std::string difference(const object_identity& wanted, const object_identity& found) {
  if (found.store != wanted.store)
    return "the stripe object belongs to store " + uuid_text(found.store) + ", not to this one (" +
           uuid_text(wanted.store) + "); put this store's own back";
  if (found.id != wanted.id)
    return "the stripe object is that of file number " + number(found.id) + ", not of " + number(wanted.id) +
           ": files of the node's folder were exchanged; put each back";
  if (found.stripe_index != wanted.stripe_index)
    return "the stripe object is number " + number(found.stripe_index) + " of the file, number " +
           number(wanted.stripe_index) + " belongs here: the files of two nodes were exchanged; put each back";
  if (found.sn != wanted.sn || found.nn != wanted.nn || found.sf != wanted.sf)
    return "the stripe object was made with another striping " + geometry(found) + " than the metadata say " +
           geometry(wanted) + ": the database or the stripe object was changed or is of another time; put its own back";
  if (found.fill_bytes != wanted.fill_bytes || found.fill_sum != wanted.fill_sum)
    return "the stripe object was made with another fill value than the metadata say: the database "
           "or the stripe object was changed; put its own back";
  return {};
}

object_seeds::object_seeds(const object_identity& who) noexcept {
  std::uint64_t words[2];
  static_assert(sizeof words == sizeof who.store);
  std::memcpy(words, who.store.data(), sizeof words);
  base_ = mixed(mixed(mixed(mixed(words[0]) ^ words[1]) ^ who.id) ^ who.stripe_index);
}

}  // namespace ooc::storage
