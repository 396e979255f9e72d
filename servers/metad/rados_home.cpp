#include "metad/rados_home.hpp"

#include <atomic>
#include <chrono>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/base/durable_file.hpp"
#include "storage/base/ticker.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/rados/possession.hpp"
#include "storage/rados/rados_url.hpp"
#include "storage/wire/secret_file.hpp"

namespace ooc::metad {

namespace {

using namespace std::chrono_literals;
using clock = ticker::clock;

/// How often it looks whether it is still in its place, and for how long that is known: before another one has it,
/// which takes longer.
constexpr auto look_every = 2s, looks_count = 20s;

using last_look = std::shared_ptr<std::atomic<clock::time_point>>;

class possessed final : public rados_home {
 public:
  possessed(std::shared_ptr<storage::rados_possession> p, last_look seen, std::function<void(const std::string&)> lost)
      : possession_(std::move(p)), seen_(std::move(seen)), lost_(std::move(lost)) {
    watch_.wake();
  }
  void publish(const std::vector<std::string>& addresses) const override { possession_->publish(addresses); }

 private:
  clock::time_point look() {
    try {
      const auto now = clock::now();
      if (const std::string why = possession_->who_took(); !why.empty()) {
        lost_(why);
        return clock::time_point::max();
      }
      *seen_ = now;
    } catch (const error&) {
      // RADOS is away.
    }
    return clock::now() + look_every;
  }

  const std::shared_ptr<storage::rados_possession> possession_;
  const last_look seen_;
  const std::function<void(const std::string&)> lost_;
  ticker watch_{[this] { return look(); }};  // last: ends first
};

}  // namespace

std::unique_ptr<rados_home> serve_from_rados(const std::string& url, metad_options options,
                                             const std::function<void(const metad_options&)>& start,
                                             std::function<void(const std::string& why)> lost) {
  const auto parsed = storage::parse_rados_url("--database", url);
  const auto seen = std::make_shared<std::atomic<clock::time_point>>();
  auto mine = storage::rados_possession::take(
      storage::rados_pool::connect(parsed.where), {parsed.data, true, {}}, [&](const storage::rados_possession& p) {
        storage::make_metadata_database(p.database(), p.store().uuid, options.owner, 0755,
                                        storage::sqlite::open_as::alone);
        if (options.gateways) storage::set_gateways(*p.pool(), *options.gateways);
        const auto signing_key = storage::find_signing_key(*p.pool());
        options.elsewhere = {p.database(), p.store().uuid, storage::find_gateways(*p.pool()),
                             signing_key.value_or(std::string())};
        options.clients_end = [&p](const std::vector<client_key>& clients, bool are_lost) {
          std::vector<std::string> numbers;
          for (const client_key& c : clients) numbers.push_back(storage::uuid_text(c));
          p.end_clients(numbers, are_lost);
        };
        *seen = clock::now();
        options.in_place = [seen] { return clock::now() - seen->load() < looks_count; };
        start(options);
        if (!signing_key) storage::keep_signing_key(*p.pool(), wire::read_secret_line(signing_key_in(options.folder)));
      });
  return std::make_unique<possessed>(std::move(mine), seen, std::move(lost));
}

}  // namespace ooc::metad
