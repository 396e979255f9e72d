// The clients of the server: which of them are connected, and how long the others may take to come
// back before what they hold is given up.
//
// Used by one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <vector>

#include "storage/call_log.hpp"

namespace ooc::metad {

using storage::client_key;

class client_table {
 public:
  using clock = std::chrono::steady_clock;

  explicit client_table(std::chrono::seconds grace) : grace_(grace) {}

  void connected(const client_key& c) {
    state& s = clients_[c];
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

  /// True where it is connected or may come back.
  bool alive(const client_key& c) const {
    const auto found = clients_.find(c);
    return found != clients_.end() && !found->second.over;
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
    std::size_t connections = 0;
    bool over = false;
    clock::time_point until{};  // without connections: may come back until then
  };

  const std::chrono::seconds grace_;
  std::map<client_key, state> clients_;
};

}  // namespace ooc::metad
