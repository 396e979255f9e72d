#include "storage/wire/access_key.hpp"

#include <sodium.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <span>

#include "oocarray/error.hpp"
#include "storage/base/refuse.hpp"
#include "storage/wire/secret_file.hpp"
#include "storage/wire/sodium.hpp"

namespace ooc::wire {

namespace {

constexpr std::string_view cluster_title = "oocarray-key 1 ";
constexpr std::string_view user_title = "oocarray-user-key 1 ";
constexpr std::string_view identity_start = "oocarray-3:";
constexpr std::size_t max_user_name = 32, max_groups = 32;
constexpr std::size_t cluster_digits = 16;
constexpr std::size_t random_digits = 16, made_digits = 8;  // of a serial

access_key::secret mac(const access_key::secret& key, std::string_view label, std::string_view text) {
  const auto bytes = [](std::string_view s) { return reinterpret_cast<const unsigned char*>(s.data()); };
  crypto_auth_hmacsha256_state state;
  ::crypto_auth_hmacsha256_init(&state, key.data(), key.size());
  ::crypto_auth_hmacsha256_update(&state, bytes(label), label.size());
  ::crypto_auth_hmacsha256_update(&state, bytes(text), text.size());
  access_key::secret out{};
  ::crypto_auth_hmacsha256_final(&state, out.data());
  ::sodium_memzero(&state, sizeof state);
  return out;
}

bool is_name(std::string_view s) {
  return !s.empty() && s.size() <= max_user_name && std::ranges::all_of(s, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  });
}

bool is_hex(std::string_view s, std::size_t digits) {
  return s.size() == digits && s.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool read_number(std::string_view s, std::uint32_t& n) {
  const auto r = std::from_chars(s.data(), s.data() + s.size(), n);
  return r.ec == std::errc() && r.ptr == s.data() + s.size();
}

/// Of a serial; `made` stays 0 where it does not say.
bool read_serial(std::string_view s, std::int64_t& made) {
  if (is_hex(s, random_digits)) return true;
  if (!is_hex(s, made_digits + random_digits)) return false;
  const auto end = s.data() + made_digits;
  return std::from_chars(s.data(), end, made, 16).ptr == end;
}

/// The text before the next `separator`; the rest stays in `text`.
std::string_view take(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return part;
}

[[noreturn]] void damaged(const std::filesystem::path& file) {
  throw usage_error(errc::not_a_store, "secret file '" + file.string() + "' does not hold '" +
                                           std::string(cluster_title) + "' and 64 hexadecimal digits, nor '" +
                                           std::string(user_title) +
                                           "', an identity and as many digits: it is damaged or another kind of file");
}

}  // namespace

bool key_user::in_group(std::uint32_t gid) const noexcept { return std::ranges::find(groups, gid) != groups.end(); }

std::optional<key_holder> parse_identity(std::string_view identity) {
  key_holder h;
  h.identity = identity;
  if (!identity.starts_with(identity_start)) return {};
  identity.remove_prefix(identity_start.size());
  const std::string_view rank = take(identity, ':');
  if (rank == "user") {
    key_user u;
    u.name = take(identity, ':');
    if (!is_name(u.name) || !read_number(take(identity, ':'), u.uid)) return {};
    for (std::string_view groups = take(identity, ':'); !groups.empty();) {
      std::uint32_t gid = 0;
      if (!read_number(take(groups, ','), gid)) return {};
      u.groups.push_back(gid);
    }
    if (u.groups.empty() || u.groups.size() > max_groups || !read_serial(take(identity, ':'), h.made)) return {};
    h.user = std::move(u);
  } else if (rank != "cluster") {
    return {};
  }
  if (!is_hex(identity, cluster_digits)) return {};
  h.cluster = identity;
  return h;
}

void access_key::name_cluster() {
  const secret digest = mac(bytes_, "oocarray cluster 3", {});
  holder_.cluster = to_hex(std::span(digest).first(cluster_digits / 2));
  holder_.identity = std::string(identity_start) + "cluster:" + holder_.cluster;
}

key_ptr access_key::random() {
  ready_sodium();
  auto key = std::make_shared<access_key>();
  ::randombytes_buf(key->bytes_.data(), key->bytes_.size());
  key->name_cluster();
  return key;
}

key_ptr access_key::read(const std::filesystem::path& file) {
  ready_sodium();
  std::string line = read_secret_line(file);
  const std::shared_ptr<void> wiped(nullptr, [&](void*) { ::sodium_memzero(line.data(), line.size()); });
  auto key = std::make_shared<access_key>();
  std::string_view rest = line;
  if (rest.starts_with(cluster_title)) {
    if (!from_hex(rest.substr(cluster_title.size()), key->bytes_)) damaged(file);
    key->name_cluster();
    return key;
  }
  if (!rest.starts_with(user_title)) damaged(file);
  rest.remove_prefix(user_title.size());
  auto holder = parse_identity(take(rest, ' '));
  if (!holder || !holder->user || !from_hex(rest, key->bytes_)) damaged(file);
  key->holder_ = std::move(*holder);
  return key;
}

key_ptr access_key::for_user(const key_user& user, std::int64_t made) const {
  if (!of_cluster())
    ooc::refuse("this is the key of user " + holder_.user->name + "; users' keys are made from the cluster key");
  if (!is_name(user.name)) ooc::refuse("user '" + user.name + "': the name in a key has 1 to 32 of A-Z a-z 0-9 . _ -");
  if (user.groups.empty() || user.groups.size() > max_groups)
    ooc::refuse("user '" + user.name + "' is in " + std::to_string(user.groups.size()) +
                " groups; a key names 1 to 32: give those that count in the store");
  std::string groups;
  for (const std::uint32_t gid : user.groups) groups += (groups.empty() ? "" : ",") + std::to_string(gid);
  made = std::max<std::int64_t>(made, std::time(nullptr));
  std::array<std::uint8_t, (made_digits + random_digits) / 2> serial{};
  ::randombytes_buf(serial.data(), serial.size());
  for (std::size_t i = 0; i < made_digits / 2; ++i)
    serial[i] = static_cast<std::uint8_t>(made >> 8 * (made_digits / 2 - 1 - i));
  auto key = std::make_shared<access_key>();
  key->holder_ = {std::string(identity_start) + "user:" + user.name + ":" + std::to_string(user.uid) + ":" + groups +
                      ":" + to_hex(serial) + ":" + holder_.cluster,
                  user, holder_.cluster, made};
  key->bytes_ = secret_of(key->holder_);
  return key;
}

access_key::~access_key() { ::sodium_memzero(bytes_.data(), bytes_.size()); }

void access_key::write(const std::filesystem::path& file) const {
  std::string line = of_cluster() ? std::string(cluster_title) : std::string(user_title) + holder_.identity + " ";
  line += to_hex(bytes_);
  write_secret_line(file, line);
  ::sodium_memzero(line.data(), line.size());
}

access_key::secret access_key::own_secret() const { return of_cluster() ? secret_of(holder_) : bytes_; }

access_key::secret access_key::secret_of(const key_holder& other) const {
  return mac(bytes_, "oocarray secret 3", other.identity);
}

std::filesystem::path default_key_file() {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return std::filesystem::path(home) / ".config/oocarray/key";
}

std::filesystem::path find_key_file(const std::filesystem::path& option) {
  const auto named = [](const std::filesystem::path& file) { return file == "none" ? std::filesystem::path() : file; };
  if (!option.empty()) return named(option);
  if (const char* variable = std::getenv("OOC_KEY"); variable != nullptr && *variable != '\0') return named(variable);
  const std::filesystem::path usual = default_key_file();
  std::error_code unreachable;
  return std::filesystem::exists(usual, unreachable) ? usual : std::filesystem::path();
}

key_ptr find_key(const std::filesystem::path& option) {
  const std::filesystem::path file = find_key_file(option);
  return file.empty() ? nullptr : access_key::read(file);
}

key_ptr find_server_key(const std::filesystem::path& option) {
  key_ptr key = find_key(option);
  if (key && !key->of_cluster())
    throw usage_error({EACCES, std::generic_category()},
                      "a server needs the cluster key, and this is the key of user " + key->holder().user->name +
                          "; give the cluster's with --key FILE");
  return key;
}

}  // namespace ooc::wire
