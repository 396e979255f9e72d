// The limit that the store is measured against: the same bytes over bare TCP sockets, one
// connection to every server and a thread for each, nothing looked at, copied or checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace papers {

struct region {
  std::uint64_t offset = 0;  ///< bytes, multiple of 8
  std::uint64_t bytes = 0;   ///< multiple of 8
};

/// A client with a connection to each of `servers` ("ADDRESS:PORT"; one server may have several).  A region is dealt
/// out to them in equal parts.  A write has ended when every server says that it has everything.
class bare_client {
 public:
  explicit bare_client(const std::vector<std::string>& servers);
  ~bare_client();

  [[noreturn]] void create(std::uint64_t bytes, std::uint64_t sf);  ///< throws: there is no file
  void prepare() {}
  void write(const region& r, std::span<const std::byte> data);
  void read(const region& r, std::span<std::byte> data);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Serves bare clients at every "ADDRESS:PORT", a thread for each, until standard input ends.
void bare_serve(const std::vector<std::string>& addresses);

}  // namespace papers
