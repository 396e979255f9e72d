// The functions that the templates call for the attributes of an array's file.
//
// Owner: made for one call by array_core::attributes(), and refers to the array.  Threads: any.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace ooc::detail {

class shared_array;

class array_attributes {
 public:
  explicit array_attributes(shared_array& array) noexcept : array_(array) {}

  std::map<std::string, std::string> all() const;
  void set(std::string_view key, std::string_view value) const;
  void remove(std::string_view key) const;

 private:
  shared_array& array_;
};

}  // namespace ooc::detail
