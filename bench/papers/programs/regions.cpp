// One client of the concurrent read and write experiment: moves its own region of a file of the
// store, or as many bytes over bare sockets to the same hosts.
//
//     regions store URL FILE            client of the store
//     regions bare ADDRESS:PORT...      client of bare servers
//     regions serve ADDRESS:PORT...     a bare server; runs until its standard input ends
//
// A client does what serve_regions.hpp says ("create" and "check" only of the store).
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "bare_regions.hpp"
#include "oocarray/error.hpp"
#include "oocarray/file.hpp"
#include "serve_regions.hpp"

namespace {

using papers::region;

class store_client {
 public:
  store_client(const std::string& url, std::string name) : store_(ooc::store::open(url)), name_(std::move(name)) {}

  void create(std::uint64_t bytes, std::uint64_t sf) {
    ooc::file_options o;
    o.size = bytes;
    o.striping.sf = sf;
    file_ = ooc::file::create(store_, name_, o);
  }
  void write(const region& r, std::span<const std::byte> data) { open().write_at(r.offset, data); }
  void read(const region& r, std::span<std::byte> data) {
    if (open().read_at(r.offset, data) != r.bytes) throw std::runtime_error("the file is too short");
  }
  /// Opens the file and asks every node for its first bytes, which makes the connections.  Twice:
  /// the first answer may have waited for a thread, and the system takes the shortest time that it
  /// has seen an answer take for the network's.
  void prepare() {
    const ooc::striping s = open().striping();
    std::uint64_t word = 0;
    for (int time = 0; time < 2; ++time)
      for (std::uint64_t stripe = 0; stripe < s.nn; ++stripe)
        read({stripe * s.sf, sizeof word}, std::as_writable_bytes(std::span(&word, 1)));
  }

 private:
  ooc::file& open() {
    if (!file_) file_ = ooc::file::open(store_, name_, ooc::file_access::read_write);
    return *file_;
  }

  ooc::store store_;
  std::string name_;
  std::optional<ooc::file> file_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[0] == "store") {
      store_client client(words[1], words[2]);
      papers::serve_regions(client, true);
    } else if (words.size() >= 2 && words[0] == "bare") {
      papers::bare_client client({words.begin() + 1, words.end()});
      papers::serve_regions(client, false);
    } else if (words.size() >= 2 && words[0] == "serve") {
      papers::bare_serve({words.begin() + 1, words.end()});
    } else {
      std::fprintf(stderr, "regions: see the head of regions.cpp for its arguments\n");
      return 2;
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "regions: %s\n", e.what());
    return 1;
  }
}
