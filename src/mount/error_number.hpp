// An exception as the errno that a system call returns.
#pragma once

#include <cerrno>
#include <exception>
#include <new>
#include <system_error>

#include "oocarray/error.hpp"

namespace ooc::mount {

inline int error_number(const std::error_code& code) {
  if (code.category() != error_category()) return code.default_error_condition().value();
  if (code == errc::busy || code == errc::dirty) return EBUSY;
  if (code == errc::invalid_request || code == errc::type_mismatch) return EINVAL;
  return EIO;
}

/// 0 for a success.
inline int error_number(const failure& f) { return f ? error_number(f.code) : 0; }

/// Of the exception that is being handled.
inline int error_number() {
  try {
    throw;
  } catch (const std::system_error& e) {
    return error_number(e.code());
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  } catch (const std::exception&) {
    return EIO;
  }
}

}  // namespace ooc::mount
