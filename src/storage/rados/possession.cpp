#include "storage/rados/possession.hpp"

#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "oocarray/error.hpp"
#include "storage/base/durable_file.hpp"
#include "storage/base/notice.hpp"
#include "storage/base/refuse.hpp"
#include "storage/rados/client_object.hpp"
#include "storage/rados/rados_database.hpp"
#include "storage/rados/result_of.hpp"

namespace ooc::storage {

namespace {

using namespace std::chrono_literals;

constexpr const char* description_object = "oocarray-store";
constexpr const char* opening_object = "oocarray-opening";
constexpr const char* owner_object = "oocarray-owner";
constexpr const char* server_object = "oocarray-server";
constexpr const char* database_name = "metadata.sqlite";
constexpr const char* opening_lock = "opening";
constexpr const char* gateways_object = "oocarray-gateways";
constexpr const char* signing_key_object = "oocarray-signing-key";
constexpr std::string_view gateway_prefix = "oocarray-gateway.";

constexpr std::string_view begin_of_description = "oocarray store in RADOS 1\n";

// How long one that dies while it opens the store keeps others out.
constexpr std::chrono::seconds longest_opening = 30s;

std::string name_of(const rados_pool& pool) { return "store '" + pool.where().name() + "'"; }

std::string gateway_object(std::uint32_t number) { return std::string(gateway_prefix) + std::to_string(number); }

std::string value_of(const std::string& text, const std::string& key) {
  const auto at = text.find("\n" + key + " ");
  if (at == text.npos) return "";
  const auto begin = at + key.size() + 2;
  return text.substr(begin, text.find('\n', begin) - begin);
}

/// Waits until `holder` says nobody, by an empty string.
template <class Holder>
void wait_for(const rados_pool& pool, std::optional<std::chrono::seconds> most, Holder holder) {
  const auto begin = std::chrono::steady_clock::now();
  bool said = false;
  for (std::string who = holder(); !who.empty(); who = holder()) {
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (most && waited >= *most)
      throw usage_error(errc::busy, name_of(pool) + " is open in another process (" + who +
                                        "), and one process at a time has its metadata: close it there, or let "
                                        "`ooc-metad --database " +
                                        pool.where().name() + "` have them for all");
    if (!std::exchange(said, said || waited >= notice_after) && said)
      notice("waiting for " + name_of(pool) + ", which another process has open, or had when it died (" + who + ")" +
             (most ? ", " + until_text(begin + *most, *most) : std::string()));
    std::this_thread::sleep_for(100ms);
  }
}

/// By its lock of an object one process at a time takes the metadata, or another place.
class opening {
 public:
  opening(const rados_pool& pool, std::string object, std::optional<std::chrono::seconds> patience)
      : pool_(pool), object_(std::move(object)) {
    wait_for(pool, patience ? std::optional(*patience + longest_opening) : patience, [&] {
      return pool.try_lock(object_, opening_lock, longest_opening)
                 ? std::string()
                 : "about to open it: " + pool.lockers(object_, opening_lock);
    });
  }
  ~opening() { pool_.unlock(object_, opening_lock); }
  opening(const opening&) = delete;
  opening& operator=(const opening&) = delete;

 private:
  const rados_pool& pool_;
  const std::string object_;
};

/// From now on this process has the place that the object says the holder of, who will not touch the store any more;
/// what it has sent may still be on its way.  (An object that is only locked has no address.)
/// Where somebody else has taken the place meanwhile, as this process was stopped, that one as well.
void take_place(rados_pool& pool, const std::string& object) {
  replace_object(pool, object, pool.address(), [&](const std::string& before) { pool.shut_out({before}); });
}

/// `another` where this process has lost the place that it has taken; empty: it has it.
std::string who_has_taken(const rados_pool& pool, const std::string& object, const std::string& another) {
  try {
    return pool.get(object) == pool.address() ? std::string() : another;
  } catch (const io_error& e) {
    if (e.code() == std::error_code(ESHUTDOWN, std::generic_category())) return another;
    throw;
  }
}

rados_description find_or_make(const rados_pool& pool, const rados_possession::wish& w) {
  if (const auto d = find_description(pool)) return *d;
  std::string other;
  pool.for_each_object([&](const std::string& object) {
    if (object != opening_object) other = object;
    return other.empty();
  });
  if (!other.empty())
    refuse(errc::not_a_store, name_of(pool) + ": there is none, but other objects ('" + other +
                                  "'): give it a namespace of its own (rados:" + pool.where().pool + "/NAME)");
  const rados_description d{new_uuid(), w.data.empty() ? pool.where().pool : w.data};
  pool.put(description_object, std::string(begin_of_description) + "uuid " + d.uuid + "\ndata " + d.data + "\n");
  return d;
}

}  // namespace

std::optional<rados_description> find_description(const rados_pool& pool) {
  const auto text = pool.get(description_object);
  if (!text) return {};
  const rados_description d{value_of(*text, "uuid"), value_of(*text, "data")};
  if (!text->starts_with(begin_of_description) || d.uuid.empty() || d.data.empty())
    refuse(errc::not_a_store, name_of(pool) + ": its object '" + description_object +
                                  "' was not made by this release of oocarray; use a later one, or another namespace");
  return d;
}

std::vector<std::string> find_rados_server(const rados_pool& pool) {
  const auto text = pool.get(server_object);
  if (!text) return {};
  std::istringstream in(*text);
  std::vector<std::string> addresses;
  for (std::string a; in >> a;) addresses.push_back(a);
  return addresses;
}

bool has_rados_metadata(const rados_pool& pool) { return !holder_of_rados_database(pool, database_name).empty(); }

std::shared_ptr<rados_possession> rados_possession::take(const std::shared_ptr<rados_pool>& pool, const wish& w,
                                                         const std::function<void(const rados_possession&)>& open) {
  if (!w.create && !find_description(*pool))
    refuse(errc::not_a_store, name_of(*pool) + ": there is none yet; `ooc init` makes one");
  std::shared_ptr<rados_possession> mine(new rados_possession(pool));
  std::optional<opening> alone;
  do {  // of several that have waited one is first
    alone.reset();
    wait_for(*pool, w.patience, [&] {
      const std::string holder = holder_of_rados_database(*pool, database_name);
      if (w.patience && !holder.empty() && !find_rados_server(*pool).empty())
        refuse(errc::busy, name_of(*pool) + ": a metadata server has its metadata now");
      return holder;
    });
    alone.emplace(*pool, opening_object, w.patience);
  } while (has_rados_metadata(*pool));
  mine->store_ = find_or_make(*pool, w);
  mine->database_ = use_rados_database(*pool, database_name);
  open(*mine);
  take_place(*pool, owner_object);
  pool->remove(server_object);  // of one that has died
  mine->taken_ = true;
  return mine;
}

rados_possession::~rados_possession() {
  if (!taken_ || ::getpid() != process_) return;
  try {
    if (pool_->get(owner_object) != pool_->address()) return;  // another has come
    pool_->remove(server_object);
    pool_->remove(owner_object);
  } catch (const error&) {
    // The next one shuts out a process that sends nothing any more.
  }
}

std::string rados_possession::who_took() const {
  return who_has_taken(*pool_, owner_object, name_of(*pool_) + ": another process has its metadata now");
}

void rados_possession::publish(const std::vector<std::string>& addresses) const {
  std::string text;
  for (const std::string& a : addresses) text += a + "\n";
  pool_->put(server_object, text);
}

void rados_possession::end_clients(const std::vector<std::string>& numbers, bool lost) const {
  if (lost) {
    std::vector<std::string> addresses;
    for (const std::string& number : numbers) addresses.push_back(end_client_object(*pool_, number));
    pool_->shut_out(std::move(addresses));
  }
  for (const std::string& number : numbers) pool_->remove(client_object(number));
}

std::uint32_t find_gateways(const rados_pool& pool) {
  const auto text = pool.get(gateways_object);
  return text ? static_cast<std::uint32_t>(std::stoul(*text)) : 0;
}

// The number last: where this ends halfway, it is made whole by who asks for that number again.  Who comes meanwhile
// learns the new one of the metadata server, before it reaches any bytes.
void set_gateways(const rados_pool& pool, std::uint32_t count) {
  if (count == find_gateways(pool)) return;
  std::vector<std::string> places;
  pool.for_each_object([&](const std::string& object) {
    if (object.starts_with(client_prefix) || object.starts_with(gateway_prefix)) places.push_back(object);
    return true;
  });
  std::vector<std::string> addresses;
  for (const std::string& object : places) addresses.push_back(pool.get(object).value_or(""));
  pool.shut_out(std::move(addresses));
  for (const std::string& object : places) pool.remove(object);
  if (count == 0)
    pool.remove(gateways_object);
  else
    pool.put(gateways_object, std::to_string(count));
}

void replace_object(rados_pool& pool, const std::string& object, const std::string& bytes,
                    const std::function<void(const std::string&)>& look) {
  const auto was_changed = [](int rc) { return rc == -ERANGE || rc == -EOVERFLOW || rc == -EEXIST; };
  int rc = 0;
  do {
    std::uint64_t version = 0;
    const auto before = pool.get(object, &version);
    look(before.value_or(""));
    rc = result_of([&](rados_pool::end ended) {
      pool.write(
          object, 0, "the change of object '" + object + "'",
          [&](rados_write_op_t op) {
            if (before)
              pool.calls().write_op_assert_version(op, version);
            else
              pool.calls().write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, nullptr);
            pool.calls().write_op_write_full(op, bytes.data(), bytes.size());
          },
          std::move(ended));
    });
  } while (was_changed(rc));
  if (rc < 0) throw_if(pool.failed(rc, "writing object '" + object + "'"));
}

rados_description take_gateway(rados_pool& pool, std::uint32_t number) {
  const auto store = find_description(pool);
  if (!store) refuse(errc::not_a_store, name_of(pool) + ": there is none yet; `ooc-metad --database` makes one");
  const std::string object = gateway_object(number);
  const opening alone(pool, object, rados_possession::after_death);
  if (const auto all = find_gateways(pool); number >= all)
    refuse(errc::not_a_store, name_of(pool) + " has " + (all == 0 ? "no" : std::to_string(all)) +
                                  " gateways, counted from 0, and none with number " + std::to_string(number) +
                                  ": `ooc-metad --gateways` says how many there are to be");
  take_place(pool, object);
  return *store;
}

std::string who_took_gateway(const rados_pool& pool, std::uint32_t number) {
  return who_has_taken(pool, gateway_object(number),
                       name_of(pool) + ": another process has become its gateway " + std::to_string(number) +
                           ", or it has another number of gateways by now");
}

std::optional<std::string> find_signing_key(const rados_pool& pool) { return pool.get(signing_key_object); }

void keep_signing_key(const rados_pool& pool, const std::string& key) { pool.put(signing_key_object, key); }

}  // namespace ooc::storage
