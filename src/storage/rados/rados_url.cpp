#include "storage/rados/rados_url.hpp"

#include "oocarray/error.hpp"
#include "storage/base/duration.hpp"
#include "storage/base/refuse.hpp"
#include "storage/base/url_options.hpp"

namespace ooc::storage {

rados_url parse_rados_url(std::string_view rest) {
  const std::string whole = "rados:" + std::string(rest);
  rados_url url;
  const auto mark = rest.find('?');
  const std::string_view path = rest.substr(0, mark);
  const auto slash = path.find('/');
  url.where.pool = path.substr(0, slash);
  if (slash != path.npos) url.where.name_space = path.substr(slash + 1);
  if (url.where.pool.empty() || (slash != path.npos && url.where.name_space.empty()) ||
      url.where.name_space.find('/') != std::string::npos || path.find(':') != path.npos)
    refuse(errc::not_a_store, "store", whole,
           "write rados:POOL or rados:POOL/NAMESPACE, neither of which has a '/' or ':' in its name");
  if (mark == rest.npos) return url;
  for_each_option(rest.substr(mark + 1), [&](std::string_view name, std::string_view value, std::string_view one) {
    std::string* const text = name == "conf"   ? &url.where.conf
                              : name == "user" ? &url.where.user
                              : name == "data" ? &url.data
                                               : nullptr;
    if (value.empty() || (text == nullptr && name != "deadline"))
      refuse(errc::not_a_store, "store", whole,
             "option '" + std::string(one) +
                 "' is unknown; write ?conf=FILE, ?user=NAME, ?data=POOL or ?deadline=60s, with & between two");
    if (text != nullptr) return void(*text = value);
    try {
      url.where.deadline = *(url.deadline = parse_duration(value, "deadline"));
    } catch (const usage_error& e) {
      refuse(errc::not_a_store, "store", whole, e.what());
    }
  });
  return url;
}

rados_url parse_rados_url(const std::string& option, std::string_view url) {
  constexpr std::string_view scheme = "rados:";
  if (!url.starts_with(scheme))
    refuse(errc::not_a_store, option + " " + std::string(url) + ": write rados:POOL or rados:POOL/NAMESPACE");
  return parse_rados_url(url.substr(scheme.size()));
}

}  // namespace ooc::storage
