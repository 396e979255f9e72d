// How the calls of oocarray.h fail: by a code, and by a text that is kept for the thread.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "oocarray/error.hpp"
#include "oocarray/oocarray.h"
#include "oocarray/process_group.hpp"

struct ooc_group {
  std::shared_ptr<ooc::process_group> of_cpp;
};

namespace ooc::c {

/// Keeps the text, and returns the code.
int failed(int code, const char* text) noexcept;
/// The same for the exception that is being handled.
int failed_by_exception() noexcept;

/// Runs f; 0, or the code of what it throws.
template <class F>
int guarded(F&& f) noexcept {
  try {
    f();
    return 0;
  } catch (...) {
    return failed_by_exception();
  }
}

/// Throws for an argument that must not be NULL.
template <class T>
T* given(T* p, const char* what) {
  if (!p) throw usage_error(errc::invalid_request, std::string(what) + " is NULL");
  return p;
}

}  // namespace ooc::c
