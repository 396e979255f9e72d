// The alternate screen of the terminal that standard input and output are, by the sequences that
// every terminal since the xterm understands.
//
// One object at a time, on the main thread; its end gives the terminal back as it was, also when an
// exception leaves it.
#pragma once

#include <termios.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "top/load_page.hpp"

namespace ooc::tool {

class terminal {
 public:
  enum class key { line_up, line_down, page_up, page_down, end_of_input, other };
  struct event {
    key what = key::other;
    char character = 0;  ///< of `other`
  };

  /// Whether both are terminals that can do more than print lines.
  static bool usable();
  /// Colour unless NO_COLOR is set or the terminal is an old one; UTF-8 where the locale says so.
  static page_style style();

  terminal();
  terminal(const terminal&) = delete;
  terminal& operator=(const terminal&) = delete;
  ~terminal();

  struct extent {
    std::size_t columns = 80, lines = 24;
  };
  extent size() const;
  void show(const std::vector<std::string>& lines);
  /// A key that was pressed; waits until there is one, `wake` can be read, a signal comes, or
  /// `most` have passed.
  std::optional<event> wait(int wake, std::chrono::milliseconds most);

 private:
  ::termios before_{};
};

}  // namespace ooc::tool
