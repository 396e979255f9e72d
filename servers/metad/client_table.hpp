// The clients of the server: which of them are connected, and how long the others may take to come
// back before what they hold is given up.
//
// Used by one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "storage/namespace/reply_cache.hpp"
#include "storage/service/metadata_service.hpp"

namespace ooc::metad {

using storage::client_key;

class client_table {
 public:
  using clock = std::chrono::steady_clock;

  explicit client_table(std::chrono::seconds grace) : grace_(grace) {}

  void connected(const client_key& c, const std::string& name) {
    state& s = clients_[c];
    s.name = name;
    s.connections += 1;
    s.over = false;
  }
  void disconnected(const client_key& c) {
    state& s = clients_[c];
    s.connections -= 1;
    s.until = clock::now() + grace_;
    if (s.connections == 0 && s.over) clients_.erase(c);
  }
  /// A client of an earlier incarnation of the server: it has the grace period from now on.
  void expect(const client_key& c) { clients_[c].until = clock::now() + grace_; }
  /// It has said goodbye, and is not alive any more though its connection may still be there.
  void goodbye(const client_key& c) { clients_[c].over = true; }
  /// Its end has failed, and comes with that of its grace period.
  void stay(const client_key& c) { clients_[c].over = false; }

  /// True where it is connected or may come back.
  bool alive(const client_key& c) const {
    const auto found = clients_.find(c);
    return found != clients_.end() && !found->second.over;
  }
  /// As others see it whom it is in the way of.
  storage::claim_holder described(const client_key& c) const {
    const auto found = clients_.find(c);
    if (found == clients_.end()) return {};
    storage::claim_holder h{found->second.name, {}};
    // At least a millisecond: 0 says that it is connected.
    if (found->second.connections == 0)
      h.ends = std::max(std::chrono::milliseconds(1),
                        std::chrono::ceil<std::chrono::milliseconds>(found->second.until - clock::now()));
    return h;
  }
  std::size_t size() const noexcept { return clients_.size(); }

  /// Takes out those whose grace period has ended.
  std::vector<client_key> take_expired() {
    std::vector<client_key> gone;
    for (const auto& [client, s] : clients_)
      if (s.connections == 0 && s.until <= clock::now()) gone.push_back(client);
    for (const client_key& c : gone) clients_.erase(c);
    return gone;
  }

 private:
  struct state {
    std::string name;  // as it said; empty: of an earlier incarnation, and not heard of since
    std::size_t connections = 0;
    bool over = false;
    clock::time_point until{};  // without connections: may come back until then
  };

  const std::chrono::seconds grace_;
  std::map<client_key, state> clients_;
};

}  // namespace ooc::metad
