#include "c/codes.hpp"

#include <cerrno>
#include <exception>
#include <new>
#include <stdexcept>

namespace ooc::c {
namespace {

std::string& last_text() {
  thread_local std::string text;
  return text;
}

}  // namespace

int failed(int code, const char* text) noexcept {
  try {
    last_text() = text;
  } catch (const std::bad_alloc&) {
    last_text().clear();
  }
  return code;
}

int failed_by_exception() noexcept {
  try {
    throw;
  } catch (const error& e) {
    const std::error_code code = e.code();
    if (code.category() == error_category()) return failed(-code.value(), e.what());
    const int number = code.default_error_condition().value();
    return failed(number == 0 ? EIO : number, e.what());
  } catch (const std::bad_alloc&) {
    return failed(ENOMEM, "there is no memory");
  } catch (const std::out_of_range& e) {
    return failed(EDOM, e.what());
  } catch (const std::exception& e) {
    return failed(OOC_OTHER, e.what());
  } catch (...) {
    return failed(OOC_OTHER, "an exception that says nothing");
  }
}

}  // namespace ooc::c

extern "C" const char* ooc_error_text(void) { return ooc::c::last_text().c_str(); }
