// The options after the '?' of a URL: "deadline=10s&encrypt=off".
#pragma once

#include <string_view>

namespace ooc::storage {

/// Calls f(name, value, "name=value") for each, in order; one without '=' has no value, and is its name.
template <class F>
void for_each_option(std::string_view options, F f) {
  while (!options.empty()) {
    const auto end = options.find('&');
    const std::string_view one = options.substr(0, end);
    options.remove_prefix(end == options.npos ? options.size() : end + 1);
    const auto equals = one.find('=');
    f(one.substr(0, equals), equals == one.npos ? std::string_view() : one.substr(equals + 1), one);
  }
}

}  // namespace ooc::storage
