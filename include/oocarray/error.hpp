// The exceptions that the library throws.
//
// One small hierarchy over std::system_error: `code()` says what kind of failure it was (an errno
// or an ooc::errc), `what()` names the thing, the limit and the remedy.  Below the public interface
// failures travel as ooc::failure values; they are turned into exceptions once, at the top.
#pragma once

#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace ooc {

/// Failures that have no errno.
enum class errc {
  invalid_request = 1,  ///< a malformed strided request, box or option; nothing was done
  type_mismatch,        ///< the file holds another element type or shape than was asked for
  not_a_store,          ///< the folder or URL is not an oocarray store, or not this one
  corrupt,              ///< stored bytes do not match their checksum
  torn,                 ///< an overwrite was cut short by a crash and never acknowledged
  budget_too_small,     ///< the memory budget cannot hold what was asked for
  dirty,                ///< the operation would lose modified data that are not written back
  busy,                 ///< the thing is pinned, open elsewhere, or otherwise in use
  closed,               ///< the array, file or store has been closed
  conflict,             ///< two ranks accessed the same in one epoch: see check_conflicts
  not_together,         ///< the ranks of a group did not make the same collective call
  cut_off,              ///< another program has made the file shorter since its size was seen
  singular,             ///< a matrix is singular, or not positive definite
};

const std::error_category& error_category() noexcept;

inline std::error_code make_error_code(errc e) noexcept { return {static_cast<int>(e), error_category()}; }

/// Base of everything the library throws on purpose.
class error : public std::system_error {
 public:
  /// what() is `what`, a whole sentence.
  error(std::error_code code, const std::string& what);
  const char* what() const noexcept override { return what_.what(); }

 private:
  std::runtime_error what_;  // which copies never fail to copy
};

/// The caller asked for something that cannot be: nothing was changed.
class usage_error : public error {
  using error::error;
};

/// Reading or writing failed; `what()` names node, operation and cause.
class io_error : public error {
 public:
  /// what() ends with what the system says of `code`, once, where that is a number of the system's.
  io_error(std::error_code code, const std::string& what);
  /// The same of what the system has not said: what() is `sentence`.
  static io_error in_full(std::error_code code, const std::string& sentence) { return {sentence, code}; }

 private:
  io_error(const std::string& sentence, std::error_code code) : error(code, sentence) {}
};

/// Stored bytes are not what was written (errc::corrupt, errc::torn).
class integrity_error : public io_error {
  using io_error::io_error;
};

/// The outcome of an operation below the public interface: a code (false: success) and its story.
struct failure {
  std::error_code code;
  std::string what;

  explicit operator bool() const noexcept { return static_cast<bool>(code); }
};

/// Throws the exception that fits `f.code`; returns if `f` is a success.
void throw_if(const failure& f);

}  // namespace ooc

template <>
struct std::is_error_code_enum<ooc::errc> : std::true_type {};
