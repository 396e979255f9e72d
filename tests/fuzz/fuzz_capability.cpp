// Any bytes as a capability: none is valid under a key that never signed one.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "storage/wire/capability.hpp"

using namespace ooc::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const capability_public_key key = [] {
    capability_public_key k{};
    for (std::size_t i = 0; i < k.size(); ++i) k[i] = static_cast<std::uint8_t>(7 * i + 1);
    return k;
  }();
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (verify_capability(key, "store", bytes, 0).fault == capability_fault::none) std::abort();
  bytes.resize(capability_size);
  bytes.replace(0, 8, "OOCCAP03");
  if (verify_capability(key, "store", bytes, 0).fault == capability_fault::none) std::abort();
  return 0;
}
