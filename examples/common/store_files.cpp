#include "common/store_files.hpp"

#include <exception>

#include "oocarray/error.hpp"
#include "storage/store_core.hpp"

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

void store_files::remove(const char* path) noexcept {
  try {
    store_.core()->remove(path);
  } catch (const ooc::error&) {
    // It was not there, or it cannot be removed: making it anew will say so.
  }
}

}  // namespace examples
