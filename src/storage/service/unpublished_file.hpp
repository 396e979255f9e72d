// A file of a store that is not complete: until publish() it has no name, or a passing one, and it goes with its object
// where that is not called.  Failures are told of the name that it is to have.
#pragma once

#include <map>
#include <string>

#include "storage/service/store_core.hpp"

namespace ooc::storage {

/// A name of its own in the same folder, for what is not complete.
std::string passing_path(const std::string& path);

class unpublished_file {
 public:
  /// When it has a name: only a file that has one can grow, or be opened by it.
  enum class named { at_last, at_once };

  /// `passing`: the name that it has first (passing_path()), or `path`, where it needs no other.
  unpublished_file(store_core& core, std::string path, std::string passing, const new_file& f, named when);
  ~unpublished_file();
  unpublished_file(const unpublished_file&) = delete;
  unpublished_file& operator=(const unpublished_file&) = delete;

  const std::string& passing() const noexcept { return passing_; }
  opened_file file;  ///< to be written, grown and resized

  /// Makes it durable, and visible at its path with these attributes; `replace`: what is there.  Of a file with commits
  /// that is the first one, with what is `given` with it.
  void publish(const std::map<std::string, std::string>& attributes, bool replace,
               const std::map<std::string, std::string>& given = {});
  /// Makes it durable, and it takes the place of `of` (take_over), whose last commit it has.
  void take_over(const entry& of);

 private:
  store_core& core_;
  const std::string path_, passing_;
  bool named_, published_ = false;
};

}  // namespace ooc::storage
