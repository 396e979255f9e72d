// I/O servers in this process, and clients of them.
#pragma once

#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "iod/iod_server.hpp"
#include "storage/client/remote_node.hpp"
#include "storage/wire/capability.hpp"
#include "storage/wire/messages.hpp"
#include "support/node_fixture.hpp"

namespace ooc::testing {

inline constexpr const char* test_uuid = "6f1c4c1e-6b3f-4b8e-9d57-000000000001";

/// Signs capabilities as a metadata server would.
class test_signer {
 public:
  test_signer() : signer_(folder_.path() / "key") {}

  capability_ptr capability(const file_shape& f, std::uint32_t rights = 31, std::int64_t lifetime = 3600,
                            const std::string& uuid = test_uuid, std::uint32_t uid = ::geteuid(),
                            const std::string& identity = {}) const {
    wire::capability c;
    c.file = f.id;
    c.geometry = wire::geometry_of(f.size, f.striping, f.sparse, f.fill);
    c.rights = rights;
    c.uid = uid;
    c.holder = wire::mark_of(identity);
    c.expiry = wire::seconds_now() + lifetime;
    c.store_uuid = uuid;
    return std::make_shared<wire::plain_capability>(signer_.sign(c));
  }
  const wire::capability_public_key& public_key() const { return signer_.public_key(); }

 private:
  temporary_folder folder_;
  wire::capability_signer signer_;
};

/// A file for which `signer` has given every right.
inline shape_ptr granted(const test_signer& signer, file_id id, std::uint64_t size, striping s = {0, 1, 65536},
                         bool sparse = false) {
  auto f = std::make_shared<file_shape>(*make_shape(id, s, size, sparse));
  f->capability = signer.capability(*f);
  return f;
}

/// One server with threads of its own.
class running_iod {
 public:
  explicit running_iod(const test_signer& signer, const std::filesystem::path& folder,
                       std::vector<std::string> listen = {"127.0.0.1:0"}, iod::iod_options options = {},
                       std::shared_ptr<storage::served_node> node = {}) {
    options.folder = folder;
    options.listen = std::move(listen);
    server_ = std::make_unique<iod::iod_server>(context_, options, std::move(node));
    server_->set_store(test_uuid, signer.public_key());
    server_->start();
    for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { context_.run(); });
  }
  ~running_iod() {
    boost::asio::post(context_, [this] { server_->stop(); });
    for (std::thread& t : threads_) t.join();
  }

  std::vector<std::string> addresses() const { return server_->addresses(); }
  iod::iod_server& server() { return *server_; }

 private:
  boost::asio::io_context context_;
  std::unique_ptr<iod::iod_server> server_;
  std::vector<std::thread> threads_;
};

inline remote_node_options client_options(std::vector<std::string> addresses,
                                          std::chrono::milliseconds deadline = std::chrono::seconds(20)) {
  remote_node_options o;
  o.addresses = std::move(addresses);
  o.store_uuid = test_uuid;
  o.client.id = wire::random_client_id();
  o.client.who = {::geteuid(), ::getegid()};
  o.client.name = "test";
  o.deadline = deadline;
  return o;
}

/// A client sends this to read.
inline std::string read_frame(std::uint64_t id, const shape_ptr& file, const request& r) {
  wire::io_request what;
  what.file = file;
  what.wanted = std::make_shared<const request>(r);
  wire::frame_header h;
  h.kind = wire::frame_kind::read;
  h.id = id;
  return wire::encode_frame(h, wire::encode(what));
}

}  // namespace ooc::testing
