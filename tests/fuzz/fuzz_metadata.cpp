// Any bytes as the bodies of the metadata server's frames, the first byte says which of them; what
// is an entry comes back as it was.  One a run: a refusal is an exception, which takes longer than
// decoding.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "storage/wire/metadata_calls.hpp"
#include "storage/wire/metadata_messages.hpp"

using namespace ooc;
namespace pb = ooc::wire::pb;

namespace {

template <class Decode>
void attempt(Decode decode) {
  try {
    decode();
  } catch (const error&) {
    // Refused with a text: as it should be.
  }
}

void round_trip(const pb::Entry& m) {
  const storage::entry e = wire::read_entry(m);
  pb::Entry again;
  wire::write_entry(e, again);
  const storage::entry f = wire::read_entry(again);
  if (f.id != e.id || f.path != e.path || f.attributes != e.attributes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  attempt([&] {
    switch (data[0] % 8) {
      case 0: return wire::throw_failure(body);
      case 1: return (void)wire::parse_body<pb::Enlist>(body);
      case 2: return (void)wire::parse_body<pb::Enlisted>(body);
      case 3: return (void)wire::parse_body<pb::Cluster>(body);
      case 4:
      case 5: {
        const auto a = wire::parse_body<pb::Answer>(body);
        round_trip(a.entry());
        for (const pb::Entry& e : a.entries()) round_trip(e);
        return;
      }
      default: (void)wire::encode(wire::decode_call(body));
    }
  });
  return 0;
}
