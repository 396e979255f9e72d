// A served store with keys, and clients of it that speak to its servers directly, so that they can
// say of themselves what a program of the library never would.
#pragma once

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "attack/innocent_client.hpp"
#include "attack/served_store.hpp"
#include "oocarray/file.hpp"
#include "storage/client/remote_metadata.hpp"
#include "storage/client/remote_node.hpp"
#include "storage/wire/access_key.hpp"
#include "storage/wire/capability.hpp"
#include "storage/wire/revocations.hpp"

namespace ooc::attack {

inline constexpr std::uint32_t alice_uid = 2000, mallory_uid = 2001, users_group = 2000;
/// Of such clients; what is refused is tried again until then.
inline constexpr std::chrono::milliseconds direct_deadline{1500};

class plain_capability final : public storage::access_capability {
 public:
  explicit plain_capability(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string bytes() const override { return bytes_; }

 private:
  std::string bytes_;
};

/// A client has to know this of the store.
struct keyed_store {
  std::string url, metad, iod, store_uuid, folder;
  std::string alice_key, mallory_key;  ///< files; the cluster key is `folder`/key
  wire::encryption frames = wire::encryption::on;

  std::string cluster_key() const { return folder + "/key"; }
};

inline storage::client_identity identity(const keyed_store& l, const std::string& key, std::uint32_t uid) {
  storage::client_identity c;
  c.id = wire::random_client_id();
  c.who = {uid, users_group};
  c.key = key.empty() ? nullptr : wire::access_key::read(key);
  c.frames = l.frames;
  c.name = "attack";
  return c;
}

inline storage::remote_metadata_options to_metad(const keyed_store& l, const storage::client_identity& c) {
  storage::remote_metadata_options o;
  o.address = l.metad;
  o.client = c;
  o.deadline = direct_deadline;
  return o;
}

inline std::shared_ptr<storage::io_service> to_iod(const keyed_store& l, const storage::client_identity& c) {
  storage::remote_node_options o;
  o.addresses = {l.iod};
  o.store_uuid = l.store_uuid;
  o.client = c;
  o.deadline = direct_deadline;
  return storage::open_remote_node(o);
}

/// A client of this user knows this of the file.
inline std::shared_ptr<storage::file_shape> look_up(keyed_store& l, const std::string& key, std::uint32_t uid,
                                                    const std::string& path) {
  storage::remote_metadata m(to_metad(l, identity(l, key, uid)));
  const storage::entry e = m.open(path, true);
  l.store_uuid = m.cluster().store_uuid;
  auto f = std::make_shared<storage::file_shape>();
  f->id = e.id;
  f->striping = e.striping;
  f->size = e.size;
  f->sparse = e.sparse;
  f->fill = e.fill;
  f->name = path;
  // A copy of the bytes: they are good after this client is gone.
  f->capability = std::make_shared<plain_capability>(e.capability->bytes());
  return f;
}

inline std::string after(const std::string& text, const std::string& word) {
  const auto at = text.find(word);
  if (at == std::string::npos) throw finding(verdict::failed, "no " + word + " in " + text);
  return text.substr(at + word.size(), text.find_first_of(" \n/?", at + word.size()) - at - word.size());
}

/// Makes the keys and starts servers that want them, with encryption or, one in three, without.
/// Then there are alice's file "innocent", which is hers alone, and "mallory", which is his.
inline served_store start_keyed(round& r, keyed_store& l, std::uint64_t nodes) {
  l.folder = r.folder();
  l.alice_key = l.folder + "/alice";
  l.mallory_key = l.folder + "/mallory";
  const wire::key_ptr cluster = wire::access_key::random();
  cluster->write(l.cluster_key());
  cluster->for_user({"alice", alice_uid, {users_group}})->write(l.alice_key);
  cluster->for_user({"mallory", mallory_uid, {users_group}})->write(l.mallory_key);

  std::vector<std::string> options{"--key", l.cluster_key()};
  if (r.one_in(3)) {
    options.insert(options.end(), {"--encrypt", "off"});
    l.frames = wire::encryption::off;
  }
  served_store servers(l.folder + "/store", nodes, options);
  l.url = servers.url();
  l.metad = after(l.url, "ooc://");
  std::ifstream log(l.folder + "/store/log/iod-0.log");
  l.iod = after({std::istreambuf_iterator<char>(log), {}}, "listening on ");

  const pid_t preparing = r.in_child([&] {
    storage::client_identity root = identity(l, l.cluster_key(), ::geteuid());
    root.who.gid = ::getegid();
    storage::remote_metadata(to_metad(l, root)).set_mode("", 0777);
    make_innocent_file(store::open(l.url, {.key = l.alice_key}));
    storage::remote_metadata(to_metad(l, identity(l, l.alice_key, alice_uid))).set_mode("innocent", 0600);
    file f = file::create(store::open(l.url, {.key = l.mallory_key}), "mallory", {.size = 1 << 20});
    f.write_at(0, std::vector<std::byte>(1 << 20));
    return 0;
  });
  if (const int s = r.wait_for(preparing, std::chrono::seconds(30), "who prepares the store"))
    throw finding(verdict::failed, "who prepares the store ended with status " + std::to_string(s));
  return servers;
}

}  // namespace ooc::attack
