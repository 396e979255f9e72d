// Failures of what has a name of its own until it is complete are told of the name that it is to have.
#pragma once

#include <string>

#include "base/named_path.hpp"
#include "oocarray/error.hpp"

namespace ooc::tool {

/// `text` with `path` wherever it says `passing`.
inline std::string told_of(std::string text, const std::string& passing, const std::string& path) {
  const std::string internal = last_name(passing), name = last_name(path);
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

}  // namespace ooc::tool
