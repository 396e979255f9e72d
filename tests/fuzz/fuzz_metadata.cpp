// Any bytes as the bodies of the metadata server's frames; what is an entry comes back as it was.
#include <cstdint>
#include <cstdlib>
#include <string_view>

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
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  attempt([&] {
    const auto c = wire::parse_body<pb::Call>(body);
    (void)wire::read_new_file(c.file());
  });
  attempt([&] {
    const auto a = wire::parse_body<pb::Answer>(body);
    round_trip(a.entry());
    for (const pb::Entry& e : a.entries()) round_trip(e);
  });
  attempt([&] { wire::throw_failure(body); });
  attempt([&] { (void)wire::parse_body<pb::Enlist>(body); });
  attempt([&] { (void)wire::parse_body<pb::Cluster>(body); });
  return 0;
}
