#include "storage/rados/rados_pool.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <new>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/base/in_flight.hpp"
#include "storage/base/job_threads.hpp"
#include "storage/base/notice.hpp"
#include "storage/base/refuse.hpp"

namespace ooc::storage {

namespace {

constexpr std::uint64_t of_any_call = 4096;  // bytes

// For how long who was shut out and has not noticed, as it was stopped, is kept out.
constexpr std::uint32_t shut_out_seconds = 365 * 24 * 3600;

const char* remedy_of(int rc) {
  switch (-rc) {
    case ETIMEDOUT: return "; see `ceph status`: are its monitors and enough of its OSDs up?";
    case EACCES:
    case EPERM: return "; the user may not: see docs/rados.md for what its key must allow";
    case ESHUTDOWN: return "; the cluster has shut this process out, because another has taken its place";
    case ENOSPC: return "; the cluster is full: add OSDs or remove files";
    case EDQUOT: return "; the pool's quota is used up: raise it, or remove files";
    default: return "";
  }
}

failure failure_of(const rados_location& where, int rc, const std::string& doing) {
  const std::error_code code(-rc, std::generic_category());
  return {code, "store '" + where.name() + "': " + doing + " failed" + remedy_of(rc) + ": " + code.message()};
}

[[noreturn]] void fail_with(const rados_location& where, int rc, const std::string& doing) {
  const failure f = failure_of(where, rc, doing);
  throw io_error(f.code, f.what);
}

}  // namespace

struct rados_pool::connection {
  explicit connection(const rados_location& where) {
    const std::string user = where.user.empty() ? "admin" : where.user;
    if (const int rc = calls.create(&cluster, user.c_str()); rc < 0) fail_with(where, rc, "user 'client." + user + "'");
    try {
      if (const int rc = calls.conf_read_file(cluster, where.conf.empty() ? nullptr : where.conf.c_str()); rc < 0)
        refuse(errc::not_a_store, "store '" + where.name() + "': the configuration of the cluster" +
                                      (where.conf.empty() ? std::string(" (/etc/ceph/ceph.conf, or $CEPH_CONF)")
                                                          : ", '" + where.conf + "',") +
                                      " cannot be read (" + std::generic_category().message(-rc) +
                                      "): give its file, ?conf=FILE");
      (void)calls.conf_parse_env(cluster, nullptr);
      const std::string seconds = std::to_string(std::chrono::ceil<std::chrono::seconds>(where.deadline).count());
      for (const char* option : {"rados_osd_op_timeout", "rados_mon_op_timeout", "client_mount_timeout"})
        (void)calls.conf_set(cluster, option, seconds.c_str());
      // What is in flight is limited here, where nobody waits for it in a call.
      (void)calls.conf_set(cluster, "objecter_inflight_ops", "1000000");
      (void)calls.conf_set(cluster, "objecter_inflight_op_bytes", "1099511627776");
      (void)calls.conf_set(cluster, "admin_socket", "");
      if (const int rc = calls.connect(cluster); rc < 0)
        fail_with(where, rc, "connecting to the cluster as 'client." + user + "' (is its key there?)");
    } catch (...) {
      calls.shutdown(cluster);
      throw;
    }
  }
  ~connection() { calls.shutdown(cluster); }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  /// What a call returns.  Once that we are shut out, for good: the cluster's list forgets us one day, and what is left
  /// here is older than what others have written since.
  template <class Call>
  int result_of(const Call& call) {
    return noted(shut_out ? -ESHUTDOWN : call());
  }
  int noted(int rc) {
    if (rc == -ESHUTDOWN) shut_out = true;
    return rc;
  }

  const librados& calls = librados::get();
  rados_t cluster = nullptr;
  std::atomic<bool> shut_out{false};
  job_threads<> ends{2};
};

/// Those of the process.  They end when it does, before the objects of Ceph's libraries, which are older, and not in a
/// child of a fork, which has none of the threads.
struct rados_pool::connections {
  ~connections() {
    if (::getpid() == owner) return;
    for (auto& [key, one] : all) static_cast<void>(one.release());
  }

  static connection& of(const rados_location& where) {
    (void)librados::get();
    static connections mine;
    if (::getpid() != mine.owner)
      refuse(errc::busy, "store '" + where.name() +
                             "': the parent of this process, which was forked, has used RADOS, whose library cannot be "
                             "used here then: begin a program of its own (exec; in Python multiprocessing's 'spawn')");
    const std::string key = where.conf + '\n' + where.user + '\n' + std::to_string(where.deadline.count());
    const lock_guard lock(mine.mutex);
    auto& one = mine.all[key];
    if (!one) one = std::make_unique<connection>(where);
    return *one;
  }

  const pid_t owner = ::getpid();
  ooc::mutex mutex;
  std::map<std::string, std::unique_ptr<connection>> all OOC_GUARDED_BY(mutex);
};

/// One operation on its way.
struct rados_pool::call {
  std::string object, what;
  std::uint64_t bytes = 0;
  std::function<void(rados_read_op_t)> reads;  // one of these
  std::function<void(rados_write_op_t)> writes;
  end ended;

  std::shared_ptr<rados_pool> pool;  // from its start
  rados_completion_t completion = nullptr;
  rados_read_op_t read_op = nullptr;
  rados_write_op_t write_op = nullptr;
  std::uint64_t number = 0;
  int result = 0;
};

std::shared_ptr<rados_pool> rados_pool::connect(const rados_location& where) {
  return std::shared_ptr<rados_pool>(new rados_pool(connections::of(where), where));
}

std::shared_ptr<rados_pool> rados_pool::other_pool(const std::string& pool) {
  if (pool == where_.pool) return shared_from_this();
  rados_location other = where_;
  other.pool = pool;
  return std::shared_ptr<rados_pool>(new rados_pool(cluster_, other));
}

rados_pool::rados_pool(connection& cluster, const rados_location& where)
    : calls_(cluster.calls), where_(where), cluster_(cluster), watch_([this] { return look(); }) {
  if (const int rc = calls_.ioctx_create(cluster_.cluster, where_.pool.c_str(), &objects_); rc < 0) {
    if (rc == -ENOENT)
      refuse(errc::not_a_store, "store '" + where_.name() + "': the cluster has no pool '" + where_.pool +
                                    "'; make it (`ceph osd pool create " + where_.pool + "`)");
    fail_with(where_, rc, "opening the pool");
  }
  calls_.ioctx_set_namespace(objects_, where_.name_space.c_str());
}

rados_pool::~rados_pool() {
  watch_.stop();
  calls_.ioctx_destroy(objects_);
}

rados_t rados_pool::cluster() const noexcept { return cluster_.cluster; }

failure rados_pool::failed(int rc, const std::string& doing) const { return failure_of(where_, rc, doing); }

std::shared_ptr<rados_pool> rados_pool::after(std::uint64_t snapshot) {
  std::shared_ptr<rados_pool> p(new rados_pool(cluster_, where_));
  std::array<rados_snap_t, 1> all{snapshot};
  if (const int rc = calls_.ioctx_selfmanaged_snap_set_write_ctx(p->objects_, snapshot, all.data(), 1); rc < 0)
    fail_with(where_, rc, "writing after a snapshot");
  return p;
}

std::shared_ptr<rados_pool> rados_pool::as_of(std::uint64_t snapshot) {
  std::shared_ptr<rados_pool> p(new rados_pool(cluster_, where_));
  calls_.ioctx_snap_set_read(p->objects_, snapshot);
  return p;
}

// --- Calls

void rados_pool::read(std::string object, std::uint64_t bytes, std::string what,
                      std::function<void(rados_read_op_t)> steps, end ended) {
  auto c = std::make_unique<call>();
  c->object = std::move(object);
  c->what = std::move(what);
  c->bytes = bytes + of_any_call;
  c->reads = std::move(steps);
  c->ended = std::move(ended);
  start(std::move(c));
}

void rados_pool::write(std::string object, std::uint64_t bytes, std::string what,
                       std::function<void(rados_write_op_t)> steps, end ended) {
  auto c = std::make_unique<call>();
  c->object = std::move(object);
  c->what = std::move(what);
  c->bytes = bytes + of_any_call;
  c->writes = std::move(steps);
  c->ended = std::move(ended);
  start(std::move(c));
}

void rados_pool::start(std::unique_ptr<call> c) {
  c->pool = shared_from_this();
  {
    const lock_guard lock(mutex_);
    if (!waiting_.empty() || (in_flight_ != 0 && in_flight_ + c->bytes > most_in_flight)) {
      waiting_.push_back(std::move(c));
      return;
    }
    in_flight_ += c->bytes;
  }
  submit(std::move(c));
}

void rados_pool::submit(std::unique_ptr<call> c) {
  call& op = *c;
  int rc = calls_.aio_create_completion2(&op, completed, &op.completion);
  try {
    if (rc == 0) {
      const lock_guard lock(mutex_);
      op.number = ++number_;
      under_way_[op.number] = {ticker::clock::now(), op.what};
      if (!std::exchange(watching_, true)) watch_.wake();
    }
    if (rc == 0) rc = cluster_.result_of([&] { return send(op); });
  } catch (const std::bad_alloc&) {  // nothing was sent
    rc = -ENOMEM;
  }
  (void)c.release();  // its completion has it, or:
  if (rc >= 0) return;
  op.result = rc;
  came_back(&op);
}

int rados_pool::send(call& c) {
  if (c.reads) {
    c.read_op = calls_.create_read_op();
    c.reads(c.read_op);
    return calls_.aio_read_op_operate(c.read_op, objects_, c.completion, c.object.c_str(), 0);
  }
  c.write_op = calls_.create_write_op();
  c.writes(c.write_op);
  // A cluster that is full says so, instead of letting us wait.
  return calls_.aio_write_op_operate(c.write_op, objects_, c.completion, c.object.c_str(), nullptr,
                                     LIBRADOS_OPERATION_FULL_TRY);
}

// On a thread of librados, which must not wait.
void rados_pool::completed(rados_completion_t of_call, void* arg) {
  auto* const c = static_cast<call*>(arg);
  c->result = c->pool->cluster_.noted(c->pool->calls_.aio_get_return_value(of_call));
  came_back(c);
}

void rados_pool::came_back(call* c) {
  connection& cluster = c->pool->cluster_;  // the pool may be gone as soon as this is posted
  cluster.ends.post([c] { c->pool->finish(std::unique_ptr<call>(c)); });
}

void rados_pool::finish(std::unique_ptr<call> c) {
  const std::shared_ptr<rados_pool> self = c->pool;
  if (c->read_op != nullptr) calls_.release_read_op(c->read_op);
  if (c->write_op != nullptr) calls_.release_write_op(c->write_op);
  if (c->completion != nullptr) calls_.aio_release(c->completion);
  std::vector<std::unique_ptr<call>> next;
  {
    const lock_guard lock(mutex_);
    under_way_.erase(c->number);
    said_ = false;
    in_flight_ -= c->bytes;
    while (!waiting_.empty() && (in_flight_ == 0 || in_flight_ + waiting_.front()->bytes <= most_in_flight)) {
      in_flight_ += waiting_.front()->bytes;
      next.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
  }
  for (auto& n : next) submit(std::move(n));
  const end ended = std::move(c->ended);
  const int result = c->result;
  c.reset();
  ended(result);
}

ticker::clock::time_point rados_pool::look() {
  const lock_guard lock(mutex_);
  watching_ = !under_way_.empty();
  if (!watching_) return ticker::when_woken;
  const waited_for& oldest = under_way_.begin()->second;
  const auto now = ticker::clock::now();
  if (now < oldest.since + notice_after) return oldest.since + notice_after;
  if (!said_ && where_.deadline > notice_after)
    notice("waiting for pool '" + where_.pool + "' of RADOS to answer " + oldest.what + ", " +
           until_text(oldest.since + where_.deadline, where_.deadline));
  said_ = true;
  return now + notice_after;
}

// --- Waiting

std::optional<std::string> rados_pool::get(const std::string& object, std::uint64_t* version) const {
  std::array<char, 4096> bytes;
  const int rc =
      cluster_.result_of([&] { return calls_.read(objects_, object.c_str(), bytes.data(), bytes.size(), 0); });
  if (rc == -ENOENT) return {};
  if (rc < 0) fail_with(where_, rc, "reading object '" + object + "'");
  if (version != nullptr) *version = calls_.get_last_version(objects_);
  return std::string(bytes.data(), static_cast<std::size_t>(rc));
}

void rados_pool::put(const std::string& object, const std::string& bytes) const {
  if (const int rc =
          cluster_.result_of([&] { return calls_.write_full(objects_, object.c_str(), bytes.data(), bytes.size()); });
      rc < 0)
    fail_with(where_, rc, "writing object '" + object + "'");
}

void rados_pool::remove(const std::string& object) const {
  if (const int rc = cluster_.result_of([&] { return calls_.remove(objects_, object.c_str()); });
      rc < 0 && rc != -ENOENT)
    fail_with(where_, rc, "removing object '" + object + "'");
}

void rados_pool::for_each_object(const std::function<bool(const std::string&)>& f) const {
  rados_list_ctx_t list = nullptr;
  if (const int rc = calls_.nobjects_list_open(objects_, &list); rc < 0) fail_with(where_, rc, "listing objects");
  int rc = 0;
  for (const char* name = nullptr;;) {
    rc = calls_.nobjects_list_next(list, &name, nullptr, nullptr);
    if (rc < 0 || !f(name)) break;
  }
  calls_.nobjects_list_close(list);
  if (rc < 0 && rc != -ENOENT) fail_with(where_, rc, "listing objects");
}

std::string rados_pool::lockers(const std::string& object, const std::string& lock) const {
  std::array<char, 256> tag{};
  std::array<char, 1024> clients{}, cookies{}, addresses{};
  std::size_t of_tag = tag.size(), of_clients = clients.size(), of_cookies = cookies.size(),
              of_addresses = addresses.size();
  int exclusive = 0;
  const auto n =
      calls_.list_lockers(objects_, object.c_str(), lock.c_str(), &exclusive, tag.data(), &of_tag, clients.data(),
                          &of_clients, cookies.data(), &of_cookies, addresses.data(), &of_addresses);
  if (n == 0 || n == -ENOENT) return "";
  if (n < 0 && n != -ERANGE) fail_with(where_, static_cast<int>(n), "asking who holds object '" + object + "'");
  return n < 0 ? "somebody" : std::string(clients.data()) + " at " + addresses.data();
}

bool rados_pool::try_lock(const std::string& object, const std::string& lock, std::chrono::seconds at_most) const {
  timeval duration{};
  duration.tv_sec = at_most.count();
  const int rc = cluster_.result_of(
      [&] { return calls_.lock_exclusive(objects_, object.c_str(), lock.c_str(), "", "oocarray", &duration, 0); });
  if (rc == -EBUSY) return false;
  if (rc < 0 && rc != -EEXIST) fail_with(where_, rc, "locking object '" + object + "'");
  return rc == 0;
}

void rados_pool::unlock(const std::string& object, const std::string& lock) const noexcept {
  (void)calls_.unlock(objects_, object.c_str(), lock.c_str(), "");
}

std::uint64_t rados_pool::new_snapshot() const {
  rados_snap_t made = 0;
  if (const int rc = calls_.ioctx_selfmanaged_snap_create(objects_, &made); rc < 0)
    fail_with(where_, rc, "making a snapshot");
  return made;
}

void rados_pool::drop_snapshot(std::uint64_t snapshot) const {
  if (const int rc = calls_.ioctx_selfmanaged_snap_remove(objects_, snapshot); rc < 0 && rc != -ENOENT)
    fail_with(where_, rc, "dropping a snapshot");
}

void rados_pool::take_back(const std::string& object, std::uint64_t snapshot) const {
  if (const int rc = cluster_.result_of(
          [&] { return calls_.ioctx_selfmanaged_snap_rollback(objects_, object.c_str(), snapshot); });
      rc < 0 && rc != -ENOENT)
    fail_with(where_, rc, "taking object '" + object + "' back to a snapshot");
}

node_space rados_pool::space() const {
  rados_cluster_stat_t s{};
  if (const int rc = calls_.cluster_stat(cluster_.cluster, &s); rc < 0) fail_with(where_, rc, "asking for free space");
  return {s.kb * 1024, s.kb_avail * 1024};
}

std::string rados_pool::address() const {
  char* text = nullptr;
  if (const int rc = calls_.getaddrs(cluster_.cluster, &text); rc < 0) fail_with(where_, rc, "asking for our address");
  const std::string address = text;
  calls_.buffer_free(text);
  return address;
}

void rados_pool::shut_out(std::vector<std::string> addresses) const {
  std::erase_if(addresses, [own = address()](const std::string& a) { return a.empty() || a == own; });
  if (addresses.empty()) {
    (void)space();  // throws where no monitor answers, for which the wait below knows no deadline
  } else {
    // The monitors take as long for one, a second, as for as many as ask at a time.
    constexpr std::size_t most_at_once = 512;
    job_threads<> threads(static_cast<unsigned>(std::min(most_at_once, addresses.size())));
    in_flight all;
    for (const std::string& address : addresses)
      all.start([&](auto ended) {
        threads.post([this, &address, ended] {
          std::string text = address;
          const int rc =
              cluster_.result_of([&] { return calls_.blocklist_add(cluster_.cluster, text.data(), shut_out_seconds); });
          ended(rc < 0 ? failed(rc, "shutting out '" + text + "'") : failure{});
        });
      });
    throw_if(all.wait());
  }
  // It has the list, and what is sent carries its number.
  if (const int rc = calls_.wait_for_latest_osdmap(cluster_.cluster); rc < 0)
    fail_with(where_, rc, "asking for the newest map");
}

}  // namespace ooc::storage
