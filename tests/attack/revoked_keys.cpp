// A user's key is revoked while programs write with it, others with theirs.  Who has the revoked
// key is told so and has lost nothing that was acknowledged; the others notice nothing.  Servers
// that are killed and started again still refuse it, whatever has become of the list.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <memory>
#include <vector>

#include "attack/history.hpp"
#include "attack/keyed_store.hpp"
#include "oocarray/error.hpp"
#include "oocarray/runtime.hpp"
#include "support/pauses.hpp"

namespace ooc::attack {

namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* refusal = "has been revoked";
/// Within which a revoked key opens nothing any more, and what a loaded machine may add to it.
constexpr seconds promised_refusal(3), load(7);

/// A program of a user, with a log of its own.
struct keyed_writer {
  history h;
  writer_options o;
  std::string key, log;
  report_pipe told;
  pid_t pid = -1;

  keyed_writer(round& r, const keyed_store& k, std::string path, std::string key_file, std::uint64_t epochs)
      : h(r.dice()(), r.between(1000, 40'000), epochs, r.one_in(2)),
        o(draw_writer(r, k.url, 1)),
        key(std::move(key_file)),
        log(k.folder + "/" + path + ".log") {
    o.path = std::move(path);
    o.pause = milliseconds(5);
  }
  void start(round& r) {
    pid = r.in_child([&] {
      ::setenv("OOC_KEY", key.c_str(), 1);
      const int fd = ::open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
      ::dup2(fd, 1);
      ::dup2(fd, 2);
      try {
        write_history(h, o, told, r.counts());
      } catch (const error& e) {
        std::cout << e.what() << std::endl;
        return gave_up;
      }
      return 0;
    });
    told.writer_started();
  }
  std::string said() const {
    std::ifstream in(log);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Every byte that was acknowledged is there.
  void check(round& r, const std::string& with_key) {
    const std::uint64_t kept = told.last();
    std::cout << o.path << " wrote " << kept << " epochs" << std::endl;
    const pid_t checker = r.in_child([&] {
      ::setenv("OOC_KEY", with_key.c_str(), 1);
      check_history(h, o, {kept, kept + 1, true}, r);
      return 0;
    });
    if (const int s = r.wait_for(checker, seconds(60), "the checker"))
      throw finding(verdict::failed, "the checker ended with status " + std::to_string(s));
  }
};

/// What both servers say to mallory's key, he having a capability of before.
struct answers {
  std::string metad, iod;
  bool revoked() const { return metad.find(refusal) != std::string::npos && iod.find(refusal) != std::string::npos; }
};

answers try_revoked_key(const keyed_store& k, const storage::shape_ptr& own) {
  answers a;
  const storage::client_identity c = identity(k, k.mallory_key, mallory_uid);
  try {
    storage::remote_metadata m(to_metad(k, c));
    (void)m.open("mallory", true);
    a.metad = "good";
  } catch (const error& e) {
    a.metad = e.what();
  }
  std::vector<std::byte> memory(4096);
  std::promise<failure> p;
  const auto node = to_iod(k, c);
  node->read(own, 0, std::make_shared<const request>(request::contiguous(0, memory.size())), memory.data(),
             [&](const failure& e) { p.set_value(e); });
  const failure e = p.get_future().get();
  a.iod = e ? e.what : "good";
  return a;
}

void must_be_refused_soon(round& r, const keyed_store& k, const storage::shape_ptr& own) {
  const auto until = std::chrono::steady_clock::now() + promised_refusal + load;
  answers a;
  do {
    a = try_revoked_key(k, own);
    if (a.revoked()) {
      r.counts().refused += 2;
      return;
    }
  } while (std::chrono::steady_clock::now() < until);
  throw finding(verdict::wrong,
                "10 s after its revocation a key is not refused as revoked; metad: " + a.metad + "; iod-0: " + a.iod);
}

void must_still_be_refused(round& r, const keyed_store& k, const storage::shape_ptr& own, const std::string& what) {
  const answers a = try_revoked_key(k, own);
  if (a.metad == "good" || a.iod == "good")
    throw finding(verdict::wrong,
                  "a key that had been revoked is good after " + what + "; metad: " + a.metad + "; iod-0: " + a.iod);
  if (!a.revoked())
    throw finding(verdict::failed, "who comes with a revoked key is not told so after " + what + "; metad: " + a.metad +
                                       "; iod-0: " + a.iod);
  r.counts().refused += 2;
}

void revoke_user(const keyed_store& k, std::uint32_t uid) {
  const command_result c = run_command({OOC_COMMAND, "revoke", "--key", k.cluster_key(), std::to_string(uid)});
  if (c.status != 0) throw finding(verdict::failed, "ooc revoke: " + c.output);
}

/// Loses or damages the list.  Returns what it did.
std::string spoil(round& r, const fs::path& list, const std::string& older) {
  std::ifstream in(list, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  in.close();
  if (text.size() < 2 || r.one_in(6)) {
    fs::remove(list);
    return "the list was removed";
  }
  std::string did;
  switch (r.between(1, 5)) {
    case 1:
      text.clear();
      did = "the list was emptied";
      break;
    case 2:
      text.resize(r.between(1, text.size() - 1));
      did = "the list was cut to " + std::to_string(text.size()) + " bytes";
      break;
    case 3: {
      const std::uint64_t at = r.between(0, text.size() - 1), bit = r.between(0, 7);
      text[at] ^= static_cast<char>(1 << bit);
      did = "bit " + std::to_string(bit) + " of byte " + std::to_string(at) + " of the list was flipped";
      break;
    }
    case 4:
      text.assign(text.size(), '\0');
      did = "the list was zeroed";
      break;
    default: text = older; did = "an older list came back";
  }
  std::ofstream(list, std::ios::binary | std::ios::trunc) << text;
  return did;
}

/// A list of which nothing is left but somebody who is revoked now.
void begin_a_new_list(const keyed_store& k) {
  fs::remove(wire::revocations_of(k.cluster_key()));
  revoke_user(k, 4711);
}

/// A metadata server that does not know whom to refuse does not start, and says why.
void start_again(round& r, served_store& servers, const keyed_store& k, const std::string& what) {
  const command_result up = servers.try_up();
  if (up.status == 0) return;
  if (up.output.find("list of revoked keys") == std::string::npos)
    throw finding(verdict::failed, "ooc up after " + what + ": " + up.output);
  ++r.counts().refused;
  begin_a_new_list(k);
  servers.up();
}

std::string kill_some(round& r, const served_store& servers) {
  std::string killed;
  const std::uint64_t which = r.between(1, 3);
  for (const std::uint64_t n : {1, 2})
    if ((which & n) != 0) {
      const std::string who = n == 1 ? "metad" : "iod-0";
      servers.send(who, SIGKILL);
      killed += (killed.empty() ? "" : " and ") + who;
    }
  return "kill -9 of " + killed;
}

/// Revokes mallory's key and tries everything to get in by it.
void revoke_and_try(round& r, const keyed_store& before, served_store& servers, bool kills) {
  keyed_store k = before;
  const auto own = look_up(k, k.mallory_key, mallory_uid, "mallory");
  const fs::path list = wire::revocations_of(k.cluster_key());
  std::string older;
  if (fs::exists(list)) {
    std::ifstream in(list, std::ios::binary);
    older.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::string what = "a revocation";
  const auto killing = [&] {
    what += ", " + kill_some(r, servers);
    std::cout << what << std::endl;
    start_again(r, servers, k, what);
  };

  revoke_user(k, mallory_uid);
  if (kills && r.one_in(2)) killing();  // perhaps before they have heard of it
  must_be_refused_soon(r, k, own);
  for (std::uint64_t n = r.between(1, 3); n > 0; --n) {
    if (kills && r.one_in(3)) killing();
    what += ", " + spoil(r, list, older);
    std::cout << what << std::endl;
    testing::let_pass(milliseconds(700));  // the metadata server looks at it twice a second
    must_still_be_refused(r, k, own, what);
    if (kills) {
      killing();
      must_still_be_refused(r, k, own, what);
    }
    if (r.one_in(2)) {
      begin_a_new_list(k);
      what += ", a new list";
      testing::let_pass(milliseconds(700));
      must_still_be_refused(r, k, own, what);
    }
  }
  begin_a_new_list(k);  // whatever it was, `ooc keygen` reads it
}

}  // namespace

void revoked_keys(round& r) {
  keyed_store k;
  served_store servers = start_keyed(r, k, 1);
  if (r.one_in(2)) revoke_user(k, 4712);
  // How long an innocent client waits while servers are started again is not said.
  const bool kills = r.one_in(2);

  std::vector<std::unique_ptr<keyed_writer>> his;
  for (std::uint64_t n = r.between(1, 3); n > 0; --n) {
    his.push_back(std::make_unique<keyed_writer>(r, k, "his" + std::to_string(n), k.mallory_key, 10'000));
    his.back()->o.deadline = milliseconds(5000);
  }
  keyed_writer hers(r, k, "hers", k.alice_key, 300);
  hers.start(r);
  for (const auto& w : his) w->start(r);
  for (const auto& w : his) w->told.wait_for(r.between(1, 20), seconds(40));

  const milliseconds calm(1500), revoking(6000);
  std::vector<pid_t> others;
  if (!kills)
    others.push_back(r.in_child([&] {
      be_innocent(r, store::open(k.url, {.key = k.alice_key}), calm, revoking);
      return 0;
    }));
  others.push_back(r.in_child([&] {
    if (!kills) testing::let_pass(calm);  // in which the innocent client measures the machine
    revoke_and_try(r, k, servers, kills);
    return 0;
  }));
  for (const pid_t p : others)
    if (const int s = r.wait_for(p, seconds(120), "who is innocent, or who tries the revoked key"))
      throw finding(verdict::failed, "one of them ended with status " + std::to_string(s));

  for (const auto& w : his) {
    const int s = r.wait_for(w->pid, w->o.deadline + seconds(5), "a writer whose key was revoked");
    if ((s != gave_up && s != fatal_exit_status) || w->said().find(refusal) == std::string::npos)
      throw finding(verdict::failed, "a writer whose key was revoked ended with status " + std::to_string(s) +
                                         " and said: " + w->said());
  }
  if (const int s = r.wait_for(hers.pid, seconds(90), "a writer whose key is good"))
    throw finding(verdict::failed,
                  "a writer whose key is good ended with status " + std::to_string(s) + " and said: " + hers.said());

  const std::string renewed = k.folder + "/renewed";
  const command_result c = run_command({OOC_COMMAND, "keygen", "--user", std::to_string(mallory_uid), "--groups",
                                        std::to_string(users_group), "--key", k.cluster_key(), renewed});
  if (c.status != 0) throw finding(verdict::failed, "ooc keygen: " + c.output);
  for (const auto& w : his) w->check(r, renewed);
  hers.check(r, k.alice_key);
  ::setenv("OOC_KEY", k.cluster_key().c_str(), 1);
  verify_store(k.url, false);
}

}  // namespace ooc::attack
