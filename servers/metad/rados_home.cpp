#include "metad/rados_home.hpp"

#include <utility>

#include "storage/base/durable_file.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/rados/possession.hpp"
#include "storage/rados/rados_url.hpp"
#include "storage/wire/secret_file.hpp"

namespace ooc::metad {

namespace {

class possessed final : public rados_home {
 public:
  explicit possessed(std::shared_ptr<storage::rados_possession> p) : possession_(std::move(p)) {}
  void publish(const std::vector<std::string>& addresses) const override { possession_->publish(addresses); }

 private:
  const std::shared_ptr<storage::rados_possession> possession_;
};

}  // namespace

std::unique_ptr<rados_home> serve_from_rados(const std::string& url, metad_options options,
                                             const std::function<void(const metad_options&)>& start) {
  const auto parsed = storage::parse_rados_url("--database", url);
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
        start(options);
        if (!signing_key) storage::keep_signing_key(*p.pool(), wire::read_secret_line(signing_key_in(options.folder)));
      });
  return std::make_unique<possessed>(std::move(mine));
}

}  // namespace ooc::metad
