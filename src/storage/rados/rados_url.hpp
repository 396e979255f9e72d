// The URL of a store in RADOS: "rados:POOL", "rados:POOL/NAMESPACE?conf=FILE&user=NAME&data=POOL&deadline=60s".
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "storage/rados/rados_pool.hpp"

namespace ooc::storage {

struct rados_url {
  rados_location where;
  std::string data;                                   ///< of a store that is to be made: the pool of its bytes
  std::optional<std::chrono::milliseconds> deadline;  ///< which is in `where` too
};

/// `rest`: what follows "rados:".  Throws usage_error (errc::not_a_store).
rados_url parse_rados_url(std::string_view rest);
/// The same of the whole URL, which the option `option` of a server has.
rados_url parse_rados_url(const std::string& option, std::string_view url);

}  // namespace ooc::storage
