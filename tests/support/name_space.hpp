// A metadata service to test, whichever implementation it is, and what its tests share.
#pragma once

#include <catch2/catch.hpp>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "oocarray/error.hpp"
#include "storage/service/metadata_service.hpp"

namespace ooc::testing {

using namespace ooc::storage;

inline constexpr credentials me{1000, 1000};

/// A new, empty store whose root folder belongs to `me`.
class name_space {
 public:
  virtual ~name_space() = default;

  /// Forgets everything that is not stored, and opens the store again.
  virtual void open() = 0;
  virtual std::shared_ptr<metadata_service> as(credentials who) = 0;
  metadata_service* operator->() { return service.get(); }

  entry make(std::string_view path, std::uint64_t size = 10) {
    new_file f;
    f.size = size;
    f.striping = {0, 1, 4096};
    const entry e = service->create(path, f);
    service->commit(e.id);
    return e;
  }

  std::shared_ptr<metadata_service> service;
};

inline new_file plain(std::uint64_t size = 1) {
  new_file f;
  f.size = size;
  f.striping = {0, 1, 4096};
  return f;
}

/// The errno that a call fails with, 0 if it does not; its text must name `named`.
inline int failure_code(const std::function<void()>& call, const std::string& named = "") {
  try {
    call();
  } catch (const usage_error& e) {
    INFO(e.what());
    CHECK(std::string(e.what()).find(named) != std::string::npos);
    return e.code().value();
  }
  return 0;
}

inline std::vector<std::string> names(const std::vector<entry>& entries) {
  std::vector<std::string> v;
  for (const entry& e : entries) v.push_back(e.path);
  return v;
}

}  // namespace ooc::testing
