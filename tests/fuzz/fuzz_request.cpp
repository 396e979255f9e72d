// Any bytes as the bodies that I/O servers and their clients exchange.
#include <cstdint>
#include <string_view>

#include "storage/wire/messages.hpp"

using namespace ooc;

namespace {

template <class Decode>
void attempt(Decode decode) {
  try {
    decode();
  } catch (const usage_error&) {
    // Refused with a text: as it should be.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  attempt([&] { (void)wire::decode_io_request(body); });
  attempt([&] { (void)wire::decode_failure(body); });
  attempt([&] { (void)wire::decode_verify_report(body); });
  attempt([&] { (void)wire::decode_ids(body); });
  attempt([&] { (void)wire::decode_fence(body); });
  attempt([&] { (void)wire::decode_statistics(body); });
  return 0;
}
