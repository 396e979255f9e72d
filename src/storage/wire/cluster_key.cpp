#include "storage/wire/cluster_key.hpp"

#include <sodium.h>

#include <cstdlib>

#include "storage/wire/secret_file.hpp"
#include "storage/wire/sodium.hpp"

namespace ooc::wire {

namespace {

constexpr const char* title = "oocarray-key";

}  // namespace

key_ptr cluster_key::random() {
  ready_sodium();
  auto key = std::make_shared<cluster_key>();
  ::randombytes_buf(key->bytes_.data(), key->bytes_.size());
  return key;
}

key_ptr cluster_key::read(const std::filesystem::path& file) {
  ready_sodium();
  auto key = std::make_shared<cluster_key>();
  read_secret_file(file, title, key->bytes_);
  return key;
}

cluster_key::~cluster_key() {
  ::sodium_memzero(bytes_.data(), bytes_.size());
}

void cluster_key::write(const std::filesystem::path& file) const {
  write_secret_file(file, title, bytes_);
}

std::filesystem::path default_key_file() {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return std::filesystem::path(home) / ".config/oocarray/key";
}

key_ptr find_cluster_key(const std::filesystem::path& option) {
  if (!option.empty()) return cluster_key::read(option);
  if (const char* named = std::getenv("OOC_KEY"); named != nullptr && *named != '\0')
    return cluster_key::read(named);
  const std::filesystem::path usual = default_key_file();
  std::error_code unreachable;
  if (usual.empty() || !std::filesystem::exists(usual, unreachable)) return nullptr;
  return cluster_key::read(usual);
}

}  // namespace ooc::wire
