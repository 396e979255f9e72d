// Any bytes as the bodies that I/O servers and their clients exchange; the first byte says which of
// them. One a run: a refusal is an exception, and six of those take longer than all decoding.
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
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  storage::node_answer answer;
  attempt([&] {
    switch (data[0] % 8) {
      case 0: return (void)wire::decode_failure(body);
      case 1: return wire::decode_answer(storage::io_kind::verify, body, answer);
      case 2: return wire::decode_answer(storage::io_kind::list, body, answer);
      case 3: return (void)wire::decode_fence(body);
      case 5: return wire::decode_answer(storage::io_kind::find_changes, body, answer);
      case 4: return (void)wire::decode_statistics(body);
      default:  // the one that has the most to get wrong
        return (void)wire::decode_io_request(body);
    }
  });
  return 0;
}
