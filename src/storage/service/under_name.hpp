// Failures of what has a name of its own until it is complete are told of the name that it is to have.
#pragma once

#include <string>

#include "oocarray/error.hpp"

namespace ooc::storage {

/// `text` with the last name of `path` wherever it says that of `passing`.
inline std::string told_of(std::string text, const std::string& passing, const std::string& path) {
  const auto last = [](const std::string& p) { return p.substr(p.find_last_of('/') + 1); };  // npos + 1 == 0: all of it
  const std::string internal = last(passing), name = last(path);
  for (auto at = text.find(internal); at != text.npos; at = text.find(internal, at + name.size()))
    text.replace(at, internal.size(), name);
  return text;
}

/// f(); what it throws is told of `path`.
template <class F>
void under_name(const std::string& passing, const std::string& path, const F& f) {
  try {
    f();
  } catch (const integrity_error& e) {
    throw integrity_error(e.code(), told_of(e.what(), passing, path));
  } catch (const io_error& e) {
    throw io_error::in_full(e.code(), told_of(e.what(), passing, path));
  } catch (const usage_error& e) {
    throw usage_error(e.code(), told_of(e.what(), passing, path));
  }
}

}  // namespace ooc::storage
