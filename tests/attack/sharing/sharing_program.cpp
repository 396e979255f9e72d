#include "attack/sharing/sharing_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::attack {

namespace {

/// The program itself.
class sharing_session {
 public:
  sharing_session(const std::string& url, program_board& board) : board_(board), store_(store::open(url, options())) {}

  answer carry_out(const order& o) {
    answer a;
    try {
      a.value = run(o);
      a.ok = true;
    } catch (const error& e) {
      a.code = e.code().value();
      a.of_oocarray = e.code().category() == error_category();
      std::strncpy(a.text, e.what(), sizeof a.text - 1);
    }
    return a;
  }

 private:
  static store_options options() {
    store_options o;
    o.workers = 1;
    o.staging = 64_KiB;
    return o;
  }

  std::uint64_t id(const std::string& path) const {
    try {
      return store_.core()->metadata().lookup(path).id;
    } catch (const error& e) {
      if (e.code() == std::errc::no_such_file_or_directory) return no_file;
      throw;
    }
  }

  std::uint64_t run(const order& o) {
    const std::string name = file_name(o.slot);
    std::optional<file>& f = files_[o.slot];
    switch (o.what) {
      case action::open:
        f.reset();
        f = file::open(store_, name, o.read_only ? file_access::read_only : file_access::read_write);
        return id(name);
      case action::create: {
        file_options fo;
        fo.size = o.length;
        fo.striping = o.striping;
        fo.sparse = o.sparse;
        fo.fill.assign(board_.fill, board_.fill + o.fill);
        file made = file::create(store_, name, fo);
        f = std::move(made);
        return id(name);
      }
      case action::close:
        f->close();
        f.reset();
        return 0;
      case action::truncate: f->truncate(o.length); return 0;
      case action::size: return f->size();
      case action::sync: f->sync(); return 0;
      case action::remove: store_.remove(name); return 0;
      case action::rename: store_.rename(name, file_name(o.to)); return 0;
      case action::replace: store_.core()->replace(name, file_name(o.to)); return 0;
      case action::identify: return id(name);
      case action::leave: return 0;
      default: return transfer(o, *f);
    }
  }

  std::uint64_t transfer(const order& o, file& f) {
    const std::span<std::byte> data(board_.data, o.length);
    switch (o.what) {
      case action::write_at:
        fill_in({{o.offset, o.offset + o.length}}, o.number);
        f.write_at(o.offset, data);
        return 0;
      case action::append: f.seek(0, seek_from::end); [[fallthrough]];
      case action::write: {
        const std::uint64_t at = f.tell();
        fill_in({{at, at + o.length}}, o.number);
        f.write(data);
        return f.tell();
      }
      case action::write_strided:
        fill_in({board_.pieces, board_.pieces + o.pieces}, o.number);
        f.write(o.strided, data);
        return 0;
      case action::write_list: {
        request list;
        std::uint64_t packed = 0;
        for (const extent& e : std::span(board_.pieces, o.pieces)) {
          list.add(e.begin, packed, e.end - e.begin);
          packed += e.end - e.begin;
        }
        fill_in({board_.pieces, board_.pieces + o.pieces}, o.number);
        f.write(list, data);
        return 0;
      }
      case action::read_at: (void)f.size(); return f.read_at(o.offset, data);
      case action::read_strided:
        (void)f.size();
        f.read(o.strided, data);
        return o.length;
      default: return f.read_at(o.offset, data);
    }
  }

  void fill_in(const std::vector<extent>& where, write_number n) const {
    std::byte* to = board_.data;
    for (const extent& e : where)
      for (std::uint64_t i = e.begin; i < e.end; ++i) *to++ = byte_of(n, i, {});
  }

  program_board& board_;
  store store_;
  std::array<std::optional<file>, most_files> files_;
};

template <class T>
bool read_value(int fd, T& value) {
  std::size_t had = 0;
  while (had < sizeof value) {
    const ssize_t n = ::read(fd, reinterpret_cast<char*>(&value) + had, sizeof value - had);
    if (n <= 0) return false;
    had += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

const char* name_of(action a) noexcept {
  constexpr const char* names[] = {"open",         "create",        "close",      "write_at", "write",
                                   "append",       "write_strided", "write_list", "read_at",  "read_blindly",
                                   "read_strided", "truncate",      "size",       "sync",     "remove",
                                   "rename",       "replace",       "identify",   "leave"};
  return names[static_cast<std::uint32_t>(a)];
}
bool is_write(action a) noexcept { return action::write_at <= a && a <= action::write_list; }
bool is_read(action a) noexcept { return action::read_at <= a && a <= action::read_strided; }
bool changes_bytes(action a) noexcept { return is_write(a) || a == action::truncate; }
std::string file_name(std::uint64_t slot) { return std::string(1, static_cast<char>('a' + slot)); }

sharing_program::sharing_program(round& r) : r_(r) {
  void* const p = ::mmap(nullptr, sizeof(program_board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  board_ = new (p) program_board;
}
sharing_program::~sharing_program() {
  close_pipes();
  if (pid_ > 0) ::kill(pid_, SIGKILL);  // the driver reaps it
  ::munmap(board_, sizeof(program_board));
}
void sharing_program::close_pipes() {
  if (orders_ >= 0) ::close(orders_);
  if (answers_ >= 0) ::close(answers_);
  orders_ = answers_ = -1;
}

void sharing_program::start(const std::string& url) {
  int to[2], from[2];
  if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe");
  pid_ = r_.in_child([&] {
    ::close(to[1]);
    ::close(from[0]);
    sharing_session s(url, *board_);
    const answer ready{.ok = true};
    if (::write(from[1], &ready, sizeof ready) != sizeof ready) return 1;
    for (order o; read_value(to[0], o);) {
      const answer a = s.carry_out(o);
      if (::write(from[1], &a, sizeof a) != sizeof a) return 1;
      if (o.what == action::leave) return 0;
    }
    return 1;
  });
  ::close(to[0]);
  ::close(from[1]);
  orders_ = to[1];
  answers_ = from[0];
  (void)wait();
}

void sharing_program::tell(const order& o) const {
  if (::write(orders_, &o, sizeof o) != sizeof o)
    throw finding(verdict::failed, std::string("a program does not listen: ") + name_of(o.what));
}

bool sharing_program::read(answer& a) const { return read_value(answers_, a); }

answer sharing_program::wait(std::chrono::seconds limit) {
  pollfd p{answers_, POLLIN, 0};
  if (::poll(&p, 1, static_cast<int>(std::chrono::milliseconds(limit).count())) != 1)
    throw finding(verdict::hung, "a program does not answer within " + std::to_string(limit.count()) + " s");
  answer a;
  if (read(a)) return a;
  const pid_t gone = std::exchange(pid_, -1);
  throw finding(verdict::failed, "a program ended with status " + std::to_string(r_.wait_for(gone)));
}

bool sharing_program::kill(answer& a) {
  const pid_t gone = std::exchange(pid_, -1);
  if (gone <= 0) throw std::logic_error("a program that does not run is to be killed");
  ::kill(gone, SIGKILL);
  const int status = r_.wait_for(gone);
  if (status != 128 + SIGKILL) throw finding(verdict::failed, "a program ended with status " + std::to_string(status));
  const bool answered = read(a);
  close_pipes();
  return answered;
}

void sharing_program::leave() {
  order o;
  o.what = action::leave;
  (void)ask(o);
  const pid_t gone = std::exchange(pid_, -1);
  close_pipes();
  if (const int status = r_.wait_for(gone, std::chrono::seconds(60), "a program that was told to end"))
    throw finding(verdict::failed, "a program that was told to end did with status " + std::to_string(status));
}

}  // namespace ooc::attack
