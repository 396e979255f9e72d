#include "top/terminal.hpp"

#include <langinfo.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <string_view>

#include "oocarray/error.hpp"

namespace ooc::tool {

namespace {

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the terminal is gone, which ends the input, too
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string_view terminal_name() {
  const char* const name = std::getenv("TERM");
  return name ? name : "";
}

}  // namespace

bool terminal::usable() {
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && terminal_name() != "" &&
         terminal_name() != "dumb";
}

page_style terminal::style() {
  const std::string_view name = terminal_name();
  const char* const no_colour = std::getenv("NO_COLOR");
  page_style s;
  s.colour = !(no_colour && *no_colour) && !name.starts_with("vt1") && !name.starts_with("vt2");
  std::setlocale(LC_CTYPE, "");
  s.unicode = std::string_view(::nl_langinfo(CODESET)) == "UTF-8";
  std::setlocale(LC_CTYPE, "C");
  return s;
}

terminal::terminal() {
  if (::tcgetattr(STDIN_FILENO, &before_) != 0)
    throw io_error({errno, std::generic_category()}, "the terminal cannot be asked for its modes");
  ::termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  raw.c_cc[VSUSP] = _POSIX_VDISABLE;  // a stopped program would leave the alternate screen behind
  if (::tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0)
    throw io_error({errno, std::generic_category()}, "the terminal's modes cannot be set");
  put("\x1b[?1049h\x1b[?25l");
}

terminal::~terminal() {
  put("\x1b[?25h\x1b[?1049l");
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

terminal::extent terminal::size() const {
  ::winsize w{};
  extent e;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col != 0 && w.ws_row != 0) {
    e.columns = w.ws_col;
    e.lines = w.ws_row;
  }
  return e;
}

void terminal::show(const std::vector<std::string>& lines) {
  std::string all = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) all += (i == 0 ? "" : "\r\n") + lines[i] + "\x1b[0m\x1b[K";
  put(all + "\x1b[J");
}

std::optional<terminal::event> terminal::wait(int wake, std::chrono::milliseconds most) {
  ::pollfd both[2] = {{STDIN_FILENO, POLLIN, 0}, {wake, POLLIN, 0}};
  if (::poll(both, 2, static_cast<int>(most.count())) <= 0 || both[0].revents == 0) return {};
  char typed[16];
  const ssize_t n = ::read(STDIN_FILENO, typed, sizeof typed);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return {};
  if (n <= 0) return event{key::end_of_input, 0};
  const std::string_view keys(typed, static_cast<std::size_t>(n));
  if (keys == "\x1b[A" || keys == "\x1bOA") return event{key::line_up, 0};
  if (keys == "\x1b[B" || keys == "\x1bOB") return event{key::line_down, 0};
  if (keys == "\x1b[5~") return event{key::page_up, 0};
  if (keys == "\x1b[6~") return event{key::page_down, 0};
  return event{key::other, keys.front() == '\x1b' ? '\0' : keys.back()};
}

}  // namespace ooc::tool
