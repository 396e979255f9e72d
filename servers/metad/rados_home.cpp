#include "metad/rados_home.hpp"

#include <string_view>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/base/durable_file.hpp"
#include "storage/base/refuse.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/rados/possession.hpp"
#include "storage/rados/rados_url.hpp"

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
  constexpr std::string_view scheme = "rados:";
  if (!url.starts_with(scheme))
    refuse(errc::not_a_store, "--database " + url + ": write rados:POOL or rados:POOL/NAMESPACE");
  const auto parsed = storage::parse_rados_url(std::string_view(url).substr(scheme.size()));
  auto mine = storage::rados_possession::take(
      storage::rados_pool::connect(parsed.where), {parsed.data, true, {}}, [&](const storage::rados_possession& p) {
        storage::make_metadata_database(p.database(), p.store().uuid, options.owner, 0755,
                                        storage::sqlite::open_as::alone);
        options.elsewhere = {p.database(), p.store().uuid};
        options.client_ends = [&p](const client_key& client, bool lost) {
          p.end_client(storage::uuid_text(client), lost);
        };
        start(options);
      });
  return std::make_unique<possessed>(std::move(mine));
}

}  // namespace ooc::metad
