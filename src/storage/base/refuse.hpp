// Refusing what cannot be: throws a usage_error that names the thing and says why.
#pragma once

#include <string>
#include <string_view>
#include <system_error>

#include "oocarray/error.hpp"

namespace ooc {

[[noreturn]] inline void refuse(std::error_code code, const std::string& what) { throw usage_error(code, what); }
/// `error`: as in errno.
[[noreturn]] inline void refuse(int error, const std::string& what) {
  throw usage_error({error, std::generic_category()}, what);
}
/// errc::invalid_request.
[[noreturn]] inline void refuse(const std::string& what) { throw usage_error(errc::invalid_request, what); }
/// "'<name>': <why>"
[[noreturn]] inline void refuse(std::error_code code, std::string_view name, std::string_view why) {
  throw usage_error(code, "'" + std::string(name) + "': " + std::string(why));
}
/// "<kind> '<name>': <why>", as in "array 'plate/a': it has no elements".
[[noreturn]] inline void refuse(std::error_code code, const char* kind, std::string_view name, std::string_view why) {
  throw usage_error(code, std::string(kind) + " '" + std::string(name) + "': " + std::string(why));
}
/// A folder that is no store, or not the one that was asked for: "folder '<folder>' <why>".
[[noreturn]] inline void refuse_folder(std::string_view folder, std::string_view why) {
  throw usage_error(errc::not_a_store, "folder '" + std::string(folder) + "' " + std::string(why));
}

}  // namespace ooc
