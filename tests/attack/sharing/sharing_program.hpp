// A program that has plain files open which others have open as well.  It does one thing at a time, as it is told over
// a pipe, and answers over another; bytes and lists are in memory that it shares with who tells it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <system_error>

#include "attack/round.hpp"
#include "attack/sharing/shared_content.hpp"
#include "oocarray/error.hpp"
#include "oocarray/store.hpp"

namespace ooc::attack {

enum class action : std::uint32_t {
  open,
  create,
  close,
  write_at,
  write,   ///< at the position
  append,  ///< at the end
  write_strided,
  write_list,
  read_at,       ///< asks for the size first
  read_blindly,  ///< does not
  read_strided,  ///< asks for the size first
  truncate,
  size,
  sync,
  remove,
  rename,    ///< to a name that nobody has
  replace,   ///< to a name that somebody may have
  identify,  ///< which file has the name
  leave
};
const char* name_of(action a) noexcept;
/// Changes bytes or the size of a file.
bool changes_bytes(action a) noexcept;
bool is_write(action a) noexcept;
bool is_read(action a) noexcept;

inline constexpr std::size_t most_files = 3;
inline constexpr std::uint64_t no_file = ~std::uint64_t{0};
std::string file_name(std::uint64_t slot);

/// An order to a program.  Files are known by slots: the names that they have, or had when they were opened.
struct order {
  action what = action::size;
  std::uint32_t slot = 0, to = 0;
  std::uint64_t offset = 0, length = 0;  ///< of truncate: the size
  write_number number = 0;               ///< of a write
  bool read_only = false;                ///< open
  std::uint32_t pieces = 0;              ///< of a list: how many extents are on the board
  strided_request strided;
  ooc::striping striping;  ///< create
  bool sparse = false;
  std::uint32_t fill = 0;  ///< bytes of the fill pattern, on the board
};
struct answer {
  bool ok = false;
  int code = 0;
  bool of_oocarray = false;  ///< the code is an errc
  std::uint64_t value = 0;  ///< the size, the bytes read, the position after a write, the file's number (no_file: none)
  char text[400] = {};

  bool is(errc e) const noexcept { return !ok && of_oocarray && code == static_cast<int>(e); }
  bool is(std::errc e) const noexcept { return !ok && !of_oocarray && code == static_cast<int>(e); }
};

struct program_board {
  static constexpr std::size_t most_pieces = 32, most_bytes = 2 << 20;
  extent pieces[most_pieces];
  std::byte fill[16];
  std::byte data[most_bytes];
};

class sharing_program {
 public:
  explicit sharing_program(round& r);
  ~sharing_program();
  sharing_program(const sharing_program&) = delete;
  sharing_program& operator=(const sharing_program&) = delete;

  void start(const std::string& url);
  void tell(const order& o) const;
  /// Throws a finding where it ends, or says nothing for so long.
  answer wait(std::chrono::seconds limit = std::chrono::seconds(100));
  answer ask(const order& o) {
    tell(o);
    return wait();
  }
  /// kill -9.  True: it had answered before.
  bool kill(answer& a);
  /// Tells it to end, and waits for that.
  void leave();
  program_board& board() const noexcept { return *board_; }

 private:
  bool read(answer& a) const;
  void close_pipes();

  round& r_;
  program_board* board_;
  pid_t pid_ = -1;
  int orders_ = -1, answers_ = -1;
};

}  // namespace ooc::attack
