// Waiting for one operation.
#pragma once

#include "storage/base/in_flight.hpp"

namespace ooc::storage {

/// What an operation returns: `start(end)` starts it, where `end` is a rados_pool::end.  Not to be called from an end.
template <class Start>
int result_of(Start start) {
  int result = 0;
  in_flight one;
  one.start([&](auto ended) {
    start([&result, ended](int rc) {
      result = rc;
      ended({});
    });
  });
  (void)one.wait();
  return result;
}

}  // namespace ooc::storage
