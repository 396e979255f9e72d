#include "iod/iod_folder.hpp"

#include <fstream>
#include <sstream>
#include <system_error>

#include "daemon/folder_lock.hpp"
#include "oocarray/error.hpp"
#include "storage/base/disk_format_version.hpp"
#include "storage/base/durable_file.hpp"
#include "storage/base/refuse.hpp"

namespace ooc::iod {

namespace {

namespace fs = std::filesystem;

constexpr const char* identity_name = "oocarray-iod";
constexpr const char* unfinished_name = "oocarray-iod.new";
constexpr const char* revoked_name = "oocarray-revoked";

std::string hex(const wire::capability_public_key& key) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t b : key) {
    text += digits[b >> 4];
    text += digits[b & 15];
  }
  return text;
}

bool from_hex(const std::string& text, wire::capability_public_key& key) {
  if (text.size() != 2 * key.size()) return false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    int value = 0;
    for (const char c : {text[2 * i], text[2 * i + 1]}) {
      if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) return false;
      value = value * 16 + (c <= '9' ? c - '0' : c - 'a' + 10);
    }
    key[i] = static_cast<std::uint8_t>(value);
  }
  return true;
}

}  // namespace

iod_folder::iod_folder(fs::path folder, std::uint32_t node) : folder_(std::move(folder)), node_(node) {
  lock_ = servers::lock_folder(folder_, "I/O server");
  const bool ours = fs::exists(folder_ / identity_name);
  if (ours) servers::close_to_others(folder_);
  if (ours) {
    read();
  } else {
    servers::refuse_strangers(folder_, "an I/O server", unfinished_name);
    servers::close_to_others(folder_);
    uuid_ = storage::new_uuid();
    write({}, {});
  }
  epoch_.emplace(folder_);
}

void iod_folder::read() {
  std::ifstream in(folder_ / identity_name);
  std::string magic, word, digits;
  int version = 0;
  std::uint32_t node = 0;
  in >> magic >> version >> word >> uuid_ >> word >> node;
  if (!in || magic != identity_name)
    refuse_folder(folder_.native(), std::string("has a damaged file '") + identity_name + "'; restore it from a copy");
  if (version != storage::disk_format_version)
    storage::refuse_version("folder '" + folder_.string() + "'", version, storage::disk_format_version);
  if (node != node_)
    refuse_folder(folder_.native(), "is that of node " + std::to_string(node) + ", not of node " +
                                        std::to_string(node_) +
                                        "; name the right folder, or the right number with --node");
  if (!(in >> word)) return;
  if (!(in >> store_uuid_ >> digits) || word != "store" || !from_hex(digits, key_))
    refuse_folder(folder_.native(), std::string("has a damaged file '") + identity_name + "'; restore it from a copy");
}

void iod_folder::write(const std::string& store_uuid, const wire::capability_public_key& key) const {
  std::ostringstream text;
  text << identity_name << " " << storage::disk_format_version << "\nfolder " << uuid_ << "\nnode " << node_ << "\n";
  if (!store_uuid.empty()) text << "store " << store_uuid << " " << hex(key) << "\n";
  storage::write_durably(folder_ / unfinished_name, text.str());
  std::error_code ec;
  fs::rename(folder_ / unfinished_name, folder_ / identity_name, ec);
  if (ec) throw io_error(ec, "file '" + (folder_ / identity_name).string() + "' cannot be written");
  storage::sync_folder(folder_);
}

void iod_folder::join(const std::string& store_uuid, const wire::capability_public_key& key, std::uint32_t) {
  if (!store_uuid_.empty() && store_uuid_ != store_uuid)
    refuse_folder(folder_.native(),
                  "belongs to store " + store_uuid_ + ", the metadata server has store " + store_uuid);
  if (store_uuid_ == store_uuid && key_ == key) return;
  write(store_uuid, key);
  store_uuid_ = store_uuid;
  key_ = key;
}

wire::revocations iod_folder::revoked() const { return wire::revocations::read(folder_ / revoked_name); }

void iod_folder::remember(const wire::revocations& revoked) const {
  if (revoked == this->revoked()) return;
  revoked.write(folder_ / revoked_name);
}

}  // namespace ooc::iod
