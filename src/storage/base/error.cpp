// The library's error category, and the one place where failures become exceptions.
#include "oocarray/error.hpp"

namespace ooc {
namespace {

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "oocarray"; }

  std::string message(int value) const override {
    switch (static_cast<errc>(value)) {
      case errc::invalid_request: return "invalid request";
      case errc::type_mismatch: return "the file holds another element type or shape";
      case errc::not_a_store: return "not an oocarray store, or not this one";
      case errc::corrupt: return "stored bytes do not match their checksum";
      case errc::torn: return "an overwrite was cut short and never acknowledged";
      case errc::budget_too_small: return "the memory budget is too small";
      case errc::dirty: return "modified data would be lost";
      case errc::busy: return "in use";
      case errc::closed: return "closed";
      case errc::conflict: return "conflicting accesses of two ranks";
      case errc::not_together: return "not the same call on all ranks";
      case errc::cut_off: return "the file has been made shorter meanwhile";
      case errc::singular: return "singular, or not positive definite";
    }
    return "unknown error " + std::to_string(value);
  }
};

// The text of a failure may end with the message of its code already, so that it is complete in a log line.
std::string with_cause(std::error_code code, const std::string& what) {
  const std::string tail = ": " + code.message();
  return code.category() == error_category() || what.ends_with(tail) ? what : what + tail;
}

}  // namespace

const std::error_category& error_category() noexcept {
  static const category instance;
  return instance;
}

error::error(std::error_code code, const std::string& what) : std::system_error(code), what_(what) {}

io_error::io_error(std::error_code code, const std::string& what) : error(code, with_cause(code, what)) {}

void throw_if(const failure& f) {
  if (!f) return;
  if (f.code == errc::corrupt || f.code == errc::torn) throw integrity_error(f.code, f.what);
  if (f.code.category() == error_category() && f.code != errc::cut_off) throw usage_error(f.code, f.what);
  throw io_error(f.code, f.what);
}

}  // namespace ooc
