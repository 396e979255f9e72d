#include "harness/store_files.hpp"

#include <cstdlib>
#include <exception>
#include <string>

#include "oocarray/error.hpp"
#include "storage/service/store_core.hpp"

namespace examples {

store_files::~store_files() {
  if (std::uncaught_exceptions() == 0) ranks_.barrier();  // else the others may not come
  if (!keep_ && ranks_.leads())
    for (const char* path : paths_) remove(path);
}

const char* store_files::fresh(const char* path) {
  if (ranks_.leads()) remove(path);
  ranks_.barrier();
  return note(path);
}

const char* store_files::note(const char* path) {
  paths_.push_back(path);
  return path;
}

std::uint64_t store_files::number(const char* path, const char* key, std::uint64_t otherwise) const {
  const auto all = store_.core()->metadata().lookup(path).attributes;
  const auto found = all.find(key);
  return found == all.end() ? otherwise : std::strtoull(found->second.c_str(), nullptr, 10);
}

void store_files::leave(const char* path, const char* key, std::uint64_t value) {
  if (ranks_.leads()) store_.core()->metadata().set_attribute(path, key, std::to_string(value));
}

void store_files::remove(const char* path) noexcept {
  try {
    store_.core()->remove(path);
  } catch (const ooc::error&) {
    // It was not there, or it cannot be removed: making it anew will say so.
  }
}

}  // namespace examples
