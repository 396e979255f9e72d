#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "oocarray/file.hpp"
#include "storage/namespace/sqlite.hpp"
#include "storage/service/removals.hpp"
#include "storage/store/network_folder.hpp"
#include "storage/store/store_folders.hpp"
#include "storage/store/store_url.hpp"
#include "support/forwarded_node.hpp"
#include "support/memory_store.hpp"

using namespace ooc;
using namespace ooc::storage;
using namespace ooc::testing;
namespace fs = std::filesystem;

namespace {

new_file plain(std::uint64_t size, std::uint32_t nn = 0) {
  new_file f;
  f.size = size;
  f.striping = {0, nn, 4096};
  return f;
}

/// Says what `call` throws: its code, and a text that must hold `named`.
std::error_code code_of(const std::function<void()>& call, const std::string& named = "") {
  try {
    call();
  } catch (const error& e) {
    INFO(e.what());
    CHECK(std::string(e.what()).find(named) != std::string::npos);
    return e.code();
  }
  return {};
}

std::string url_of(std::initializer_list<fs::path> folders) { return local_url({folders}); }

/// Every path under `folder` with its size: equal before and after means nothing was changed.
std::map<std::string, std::uintmax_t> contents(const fs::path& folder) {
  std::map<std::string, std::uintmax_t> all;
  for (const auto& e : fs::recursive_directory_iterator(folder))
    all[e.path()] = e.is_regular_file() ? e.file_size() : 0;
  return all;
}

void check_refused(const fs::path& under, const std::string& url, const std::string& named,
                   const store_options& options = {}) {
  const auto before = contents(under);
  CHECK(code_of([&] { store::open(url, options); }, named) == errc::not_a_store);
  CHECK(contents(under) == before);
}

struct child_process {
  explicit child_process(const std::function<int()>& body) : pid(::fork()) {
    if (pid != 0) return;
    int status = 99;
    try {
      status = body();
    } catch (...) {
    }
    ::_exit(status);
  }
  /// Exit status, or 128 + the signal.
  int wait() const {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  pid_t pid;
};

}  // namespace

// The store over nodes in memory.

TEST_CASE("create makes stripe objects on the nodes in use and remove takes them away") {
  memory_store s(4);
  new_file n = plain(54000);
  n.striping = {1, 2, 8000};
  const opened_file f = s.core->create("a", n);
  CHECK(s.nodes[0]->objects().empty());
  CHECK(s.nodes[1]->objects().count(f.meta.id) == 1);
  CHECK(s.nodes[2]->objects().count(f.meta.id) == 1);
  CHECK(s.core->open("a", open_mode::read).meta.size == 54000);
  s.core->remove("a");
  s.core->removals().finish();
  for (const auto& node : s.nodes) CHECK(node->objects().empty());
  CHECK(s.metadata->dead().empty());
  CHECK(code_of([&] { s.core->open("a", open_mode::read); }, "a").value() == ENOENT);
}

TEST_CASE("nodes that hold no byte of a file have no stripe object of it until it grows") {
  memory_store s(3);
  const auto holders = [&] {
    std::string all;
    for (const auto& node : s.nodes) all += node->objects().empty() ? '-' : 'x';
    return all;
  };
  new_file n = plain(0);
  n.striping = {1, 3, 4096};
  opened_file f = s.core->create("a", n);
  CHECK(holders() == "---");
  CHECK(s.metadata->unfinished().empty());
  CHECK(s.core->open("a", open_mode::read).meta.size == 0);
  CHECK_NOTHROW(s.core->sync(f));
  f = s.core->resize(f, 5000, {});
  CHECK(holders() == "-xx");
  f = s.core->grow(f, 9000);
  CHECK(holders() == "xxx");
  s.core->remove("a");
  s.core->removals().finish();
  CHECK(holders() == "---");
  CHECK(s.metadata->dead().empty());
}

TEST_CASE("a create that finds one disk full leaves nothing behind") {
  memory_store s(4);
  s.nodes[2]->set_capacity(1000);
  CHECK(code_of([&] { s.core->create("a", plain(1'000'000)); }, "memory2").value() == ENOSPC);
  for (const auto& node : s.nodes) CHECK(node->objects().empty());
  CHECK(s.metadata->list("").empty());
  CHECK(s.metadata->dead().empty());
  CHECK(s.metadata->unfinished().empty());
  new_file sparse = plain(1'000'000);
  sparse.sparse = true;
  s.core->create("a", sparse);
}

namespace {

/// Metadata whose answer to a commit is lost.
class unsure_metadata final : public local_metadata {
 public:
  using local_metadata::local_metadata;
  metadata_answer answer(const metadata_call& call) override {
    metadata_answer a = local_metadata::answer(call);
    if (std::holds_alternative<calls::commit>(call))
      throw io_error(std::make_error_code(std::errc::timed_out), "whether the change was made is not known");
    return a;
  }
};

}  // namespace

TEST_CASE("a file whose commit may have been made is whole if it was") {
  memory_store s(2);
  const auto metadata = std::make_shared<unsure_metadata>(s.database(), "test", credentials{::geteuid(), ::getegid()});
  store_core core("memory:", "unsure", metadata, {s.nodes[0], s.nodes[1]});
  CHECK(code_of([&] { core.create("a", plain(8192)); }) == std::errc::timed_out);
  const file_id id = s.metadata->lookup("a").id;
  for (const auto& node : s.nodes) CHECK(node->objects().count(id) == 1);
  CHECK(s.metadata->dead().empty());
}

TEST_CASE("shares that cannot be removed now are swept later") {
  memory_store s(3);
  s.core->create("a", plain(100000));
  s.nodes[1]->fail(io_kind::remove, {EIO, std::generic_category()});
  s.core->remove("a");
  s.core->removals().finish();
  CHECK(s.nodes[0]->objects().empty());
  CHECK(s.nodes[1]->objects().size() == 1);
  sweep(*s.core);
  CHECK(s.metadata->dead().size() == 1);
  s.nodes[1]->heal();
  sweep(*s.core);
  CHECK(s.nodes[1]->objects().empty());
  CHECK(s.metadata->dead().empty());
}

namespace {

/// Notes how often the metadata had been made durable when stripe objects were removed.
class removal_times : public forwarded_node {
 public:
  removal_times(std::shared_ptr<io_service> inner, fs::path database)
      : forwarded_node(std::move(inner)), database_(std::move(database)) {}

  std::int64_t syncs() const {
    sqlite::connection c(database_, sqlite::open_as::read_only);
    sqlite::query q(c, "SELECT value FROM store WHERE key = 'syncs'");
    return q.next() ? q.integer(0) : 0;
  }
  void answer(node_call call, completion done) override {
    if (call.kind == io_kind::remove) times.push_back(syncs());
    forwarded_node::answer(std::move(call), std::move(done));
  }
  std::vector<std::int64_t> times;  // of the thread that removes

 private:
  const fs::path database_;
};

}  // namespace

TEST_CASE("stripe objects go only after the removal of their names is durable, those of many files after one sync") {
  memory_store s(1);
  const auto node = std::make_shared<removal_times>(s.nodes[0], s.database());
  store_core core("memory:", "test", s.metadata, {node});
  for (const char* name : {"removed", "unlinked", "replaced", "new", "a", "b", "c"}) core.create(name, plain(10000));
  const std::int64_t before = node->syncs();
  core.remove("removed");
  core.removals().add_unnamed(s.metadata->unlink({root_id, "unlinked"}, false));
  core.replace("new", "replaced");
  for (const char* name : {"a", "b", "c"}) core.remove(name);
  core.removals().finish();
  REQUIRE(node->times.size() == 6);
  for (const std::int64_t time : node->times) CHECK(time > before);
  // As far as the machine is so slow that they come in parts, each part has a sync of its own.
  CHECK(node->times.back() <= before + 6);
  CHECK(s.nodes[0]->objects().size() == 1);
  CHECK(s.metadata->dead().empty());
}

TEST_CASE("what is removed and not finished is finished by who opens the store next, durably first") {
  memory_store s(1);
  const auto node = std::make_shared<removal_times>(s.nodes[0], s.database());
  store_core core("memory:", "test", s.metadata, {node});
  core.create("a", plain(10000));
  const std::int64_t before = node->syncs();
  (void)s.metadata->remove("a");  // as one who is killed then
  sweep(core);
  REQUIRE(node->times.size() == 1);
  CHECK(node->times[0] > before);
  CHECK(s.metadata->dead().empty());
}

TEST_CASE("a full disk takes a file for which there is room once removed ones have gone") {
  memory_store s(1);
  s.nodes[0]->set_capacity(100'000);
  const opened_file small = s.core->create("small", plain(10'000));
  s.core->create("a", plain(80'000));
  s.core->remove("a");
  CHECK_NOTHROW(s.core->create("b", plain(80'000)));
  s.core->remove("b");
  CHECK_NOTHROW(s.core->grow(small, 90'000));
}

TEST_CASE("the sweep leaves files and those being made alone") {
  memory_store s(2);
  s.core->create("a", plain(10000));
  const opened_file made = s.core->make("b", plain(10000));
  sweep(*s.core);
  CHECK(s.nodes[0]->objects().size() == 2);
  std::vector<std::byte> bytes(10000, std::byte{5});
  CHECK_FALSE(made.file->write(request::contiguous(0, 10000), bytes.data()));
  CHECK(code_of([&] { s.core->open("b", open_mode::read); }).value() == ENOENT);
  s.core->commit(made);
  CHECK(s.core->open("b", open_mode::read).meta.size == 10000);
  const opened_file c = s.core->make("c", plain(10000));
  s.core->abandon(c);
  CHECK(s.nodes[0]->objects().size() == 2);
}

TEST_CASE("permission is checked at open") {
  memory_store s(1, {1000, 1000});
  new_file n = plain(10);
  n.mode = 0640;
  s.core->create("a", n);
  const auto as = [&](std::uint32_t uid, std::uint32_t gid) {
    const credentials who{uid, gid};
    return store_core("memory:", "test", dynamic_cast<local_metadata&>(*s.metadata).as(who), s.core->nodes());
  };
  CHECK(code_of([&] { as(2000, 1000).open("a", open_mode::read); }) == std::error_code());
  CHECK(code_of([&] { as(2000, 1000).open("a", open_mode::read_write); }, "'a'").value() == EACCES);
  CHECK(code_of([&] { as(2000, 2000).open("a", open_mode::read); }, "'a'").value() == EACCES);
  CHECK(code_of([&] { as(2000, 2000).create("b", n); }, "'b'").value() == EACCES);
  CHECK(code_of([&] { as(0, 0).open("a", open_mode::read_write); }) == std::error_code());
}

namespace {

/// A node whose stripe objects have modes.
class node_with_modes final : public forwarded_node {
 public:
  using forwarded_node::forwarded_node;
  bool keeps_permissions() const override { return true; }
  void answer(node_call call, completion done) override {
    if (call.kind == io_kind::permit) modes[call.file->id] = call.file->permissions.mode;
    forwarded_node::answer(std::move(call), std::move(done));
  }
  std::map<file_id, std::uint32_t> modes;
};

/// Metadata in which something else happens after a path was looked up, once.
class busy_metadata final : public local_metadata {
 public:
  using local_metadata::local_metadata;
  metadata_answer answer(const metadata_call& call) override {
    metadata_answer a = local_metadata::answer(call);
    if (then && std::holds_alternative<calls::lookup>(call)) std::exchange(then, nullptr)();
    return a;
  }
  std::function<void()> then;
};

}  // namespace

TEST_CASE("a mode that is set while another file takes the path is that of one file, entry and stripe objects") {
  memory_store s(1);
  const auto metadata = std::make_shared<busy_metadata>(s.database(), "test", credentials{::geteuid(), ::getegid()});
  const auto node = std::make_shared<node_with_modes>(s.nodes[0]);
  store_core core("memory:", "busy", metadata, {node});
  new_file n = plain(100);
  n.mode = 0600;
  const file_id old = core.create("a", n).meta.id, fresh = core.create("b", n).meta.id;
  node->modes = {{old, 0600}, {fresh, 0600}};
  metadata->then = [&] {
    metadata->rename("a", "c");
    metadata->rename("b", "a");
  };
  const bool owner = GENERATE(false, true);
  CAPTURE(owner);
  if (owner)
    core.set_owner("a", keep_id, ::getegid());
  else
    core.set_mode("a", 0644);
  const auto mode_of = [&](file_id id) { return metadata->find(id).mode; };
  CHECK(node->modes[old] == mode_of(old));
  CHECK(node->modes[fresh] == mode_of(fresh));
  CHECK(mode_of(old) == (owner ? 0600 : 0644));
}

TEST_CASE("sizes and stripes that overflow are refused") {
  memory_store s(4);
  CHECK(code_of([&] { s.core->create("a", plain(std::uint64_t{1} << 63)); }, "'a'") == errc::invalid_request);
  new_file n = plain(10);
  n.striping.sf = std::uint64_t{1} << 62;
  CHECK(code_of([&] { s.core->create("a", n); }, "'a'") == errc::invalid_request);
  n.striping = {4, 1, 4096};
  CHECK(code_of([&] { s.core->create("a", n); }, "'a'") == errc::invalid_request);
  n.striping = {0, 5, 4096};
  CHECK(code_of([&] { s.core->create("a", n); }, "'a'") == errc::invalid_request);
  n.striping = {0, 0, 0};
  CHECK(code_of([&] { s.core->create("a", n); }, "'a'") == errc::invalid_request);
  CHECK(s.metadata->list("").empty());
}

TEST_CASE("a failed resize leaves size and shares as they were") {
  memory_store s(3);
  const opened_file f = s.core->create("a", plain(10000));
  s.nodes[2]->set_capacity(100);
  CHECK(code_of([&] { s.core->resize(f, 1'000'000, {}); }).value() == ENOSPC);
  CHECK(s.core->open("a", open_mode::read).meta.size == 10000);
  CHECK(s.core->resize(f, 20, {4, 5}).meta.array.extents == std::vector<std::uint64_t>{4, 5});
  CHECK(s.core->refresh(f).meta.size == 20);
}

// URLs.

TEST_CASE("URLs name folders, with escapes for commas and percent signs") {
  const auto folders = [](const std::string& url) { return local_folders(parse_store_url(url)); };
  CHECK(folders("local:/no/a,/no/b") == std::vector<fs::path>{"/no/a", "/no/b"});
  CHECK(folders("local:/no/x/../a/,/no/./b") == std::vector<fs::path>{"/no/a", "/no/b"});
  CHECK(folders("local:/no/a%2Cb%25c") == std::vector<fs::path>{"/no/a,b%c"});
  CHECK(folders("local:here") == std::vector<fs::path>{fs::weakly_canonical(fs::absolute("here"))});
  CHECK(local_url({"/no/a,b%c", "/d"}) == "local:/no/a%2Cb%25c,/d");
  CHECK(folders(local_url({"/no/a,b%c", "/d"})) == std::vector<fs::path>{"/no/a,b%c", "/d"});
  for (const char* url :
       {"local:", "local:,", "local:/no/a,", "local:/no/a,,/no/b", "local:/no/a%2", "local:/no/a%zz", "local:/no/a%00",
        "local:/no/a,/no/a", "local:/no/a,/no/x/../a", "local:/no/a,/no/a/b", "/no/a", "", ":"})
    CHECK(code_of([&] { folders(url); }) == errc::not_a_store);
}

TEST_CASE("a local URL says which folders are lost and that one host uses it; anything else is a name") {
  const auto options = [](const std::string& url) { return local_options_of(parse_store_url(url)); };
  const auto folders = [](const std::string& url) { return local_folders(parse_store_url(url)); };
  const std::string url = "local:/no/a,/no/b%2Cc,/no/d?lost=/no/b%2Cc&hosts=one&lost=/no/d";
  CHECK(folders(url) == std::vector<fs::path>{"/no/a", "/no/b,c", "/no/d"});
  CHECK(options(url).lost == std::vector<fs::path>{"/no/b,c", "/no/d"});
  CHECK(options(url).one_host);
  CHECK(local_url(folders(url), options(url)) == "local:/no/a,/no/b%2Cc,/no/d?lost=/no/b%2Cc&lost=/no/d&hosts=one");
  CHECK(folders("local:/no/a?b") == std::vector<fs::path>{"/no/a?b"});
  CHECK_FALSE(options("local:/no/a?b").one_host);
  CHECK(local_url({"/no/a?lost=b"}) == "local:/no/a%3Flost=b");
  CHECK(folders("local:/no/a%3Flost=b") == std::vector<fs::path>{"/no/a?lost=b"});
  for (const char* bad :
       {"local:/no/a?hosts=two", "local:/no/a?lost=/no/b", "local:/no/a,/no/b?lost=/no/b&deadline=1s"})
    CHECK(code_of([&] { options(bad); }) == errc::not_a_store);
}

TEST_CASE("a database without a write-ahead log has one again when its store is opened") {
  temporary_folder t;
  { store::open(url_of({t / "s"})); }
  const fs::path database = t / "s" / "metadata.sqlite";
  const auto mode = [&](const std::string& set) {
    sqlite::connection c(database, sqlite::open_as::existing);
    sqlite::query q(c, "PRAGMA journal_mode" + set);
    return q.next() ? q.text(0) : std::string();
  };
  CHECK(mode(" = DELETE") == "delete");
  { store::open(url_of({t / "s"})); }
  CHECK(mode("") == "wal");
}

TEST_CASE("network file systems are known by their numbers, those of FUSE by their names") {
  CHECK(network_file_system(0x6969) == "NFS");
  CHECK(network_file_system(0x0bd00bd0) == "Lustre");
  CHECK(network_file_system(0x47504653) == "GPFS");
  CHECK(network_file_system(static_cast<long>(0xff534d42)) == "CIFS");
  CHECK(network_file_system(static_cast<long>(static_cast<int>(0xff534d42))) == "CIFS");  // as 32-bit fields give it
  for (const long local : {0xef53L, 0x58465342L, 0x01021994L, 0x9123683eL, 0x794c7630L, 0x65735546L})
    CHECK(network_file_system(local).empty());
  CHECK(network_file_system(std::string_view("fuse.sshfs")) == "sshfs");
  CHECK(network_file_system(std::string_view("fuse.glusterfs")) == "glusterfs");
  for (const char* local : {"fuse.fuse-overlayfs", "fuseblk", "fuse.ooc", ""})
    CHECK(network_file_system(std::string_view(local)).empty());
  temporary_folder t;
  CHECK(network_file_system_of(t / "not" / "made").empty());
}

TEST_CASE("unknown schemes are refused with a remedy") {
  CHECK(code_of([] { store::open("http://x"); }, "local:") == errc::not_a_store);
}

TEST_CASE("one folder under two names is refused") {
  temporary_folder t;
  fs::create_directory(t / "a");
  fs::create_directory_symlink(t / "a", t / "b");
  check_refused(t.path(), url_of({t / "a", t / "b"}), "twice");
}

// Stores in folders.

TEST_CASE("missing and empty folders become a store that opens again") {
  temporary_folder t;
  fs::create_directory(t / "a");
  fs::create_directory(t / "a" / "lost+found");
  const std::string url = url_of({t / "a", t / "x" / "b"});
  std::string uuid;
  {
    const store s = store::open(url);
    uuid = s.uuid();
    CHECK(uuid.size() == 36);
    CHECK(s.nodes() == 2);
    CHECK(s.url() == url);
    file::create(s, "f", {.size = 100'000});
  }
  CHECK(fs::exists(t / "a" / "oocarray-node"));
  CHECK(fs::exists(t / "a" / "metadata.sqlite"));
  CHECK_FALSE(fs::exists(t / "x" / "b" / "metadata.sqlite"));
  const store again = store::open(url, {.create = false});
  CHECK(again.uuid() == uuid);
  CHECK(file::open(again, "f").size() == 100'000);
  std::ifstream node(t / "x" / "b" / "oocarray-node");
  std::string text((std::istreambuf_iterator<char>(node)), {});
  CHECK(text == "oocarray-node 2\nstore " + uuid + "\nnode 1 of 2\n");
}

TEST_CASE("without create nothing is made") {
  temporary_folder t;
  fs::create_directory(t / "a");
  check_refused(t.path(), url_of({t / "a"}), "/a'", {.create = false});
  check_refused(t.path(), url_of({t / "missing"}), "/missing'", {.create = false});
}

TEST_CASE("a folder with something else in it is refused and left alone") {
  temporary_folder t;
  fs::create_directory(t / "a");
  std::ofstream(t / "a" / "thesis.tex") << "text";
  check_refused(t.path(), url_of({t / "a"}), "thesis.tex");
  check_refused(t.path(), url_of({t / "new", t / "a"}), "thesis.tex");
  std::ofstream(t / "file") << "text";
  check_refused(t.path(), url_of({t / "file"}), "not a folder");
  fs::create_directory(t / "b");
  std::ofstream(t / "b" / "metadata.sqlite") << "somebody's";
  check_refused(t.path(), url_of({t / "b"}), "metadata.sqlite");
  fs::create_directory(t / "c");
  std::ofstream(t / "c" / "oocarray-node") << "scribble";
  check_refused(t.path(), url_of({t / "c"}), "damaged");
  fs::create_directory(t / "d");
  std::ofstream(t / "d" / "oocarray-node") << "oocarray-node 7\nstore u\nnode 0 of 1\n";
  check_refused(t.path(), url_of({t / "d"}), "version 7");
}

TEST_CASE("folders of a store are named all, in order, and of one store") {
  temporary_folder t;
  const fs::path a = t / "a", b = t / "b", c = t / "c", x = t / "x";
  { store::open(url_of({a, b, c})); }
  { store::open(url_of({x})); }
  check_refused(t.path(), url_of({a, b}), "store of 3 folders");
  check_refused(t.path(), url_of({b}), "store of 3 folders");
  check_refused(t.path(), url_of({b, a, c}), "in the order");
  check_refused(t.path(), url_of({a, b, x}), "/x' belongs to store");
  check_refused(t.path(), url_of({a, b, t / "new"}), "/new' is missing or empty");
  check_refused(t.path(), url_of({t / "new", b, c}), "/new' is missing or empty");
  check_refused(t.path(), url_of({a, b, c, t / "new"}), "store of 3 folders");
  fs::remove_all(b);
  check_refused(t.path(), url_of({a, b, c}), "/b' is missing or empty");
  fs::create_directory(b);
  check_refused(t.path(), url_of({a, b, c}), "/b' is missing or empty");
}

TEST_CASE("the database of another store is refused") {
  temporary_folder t;
  { store::open(url_of({t / "a"})); }
  { store::open(url_of({t / "b"})); }
  fs::copy_file(t / "b" / "metadata.sqlite", t / "a" / "metadata.sqlite", fs::copy_options::overwrite_existing);
  CHECK(code_of([&] { store::open(url_of({t / "a"})); }, "belongs to store") == errc::not_a_store);
  fs::remove(t / "a" / "metadata.sqlite");
  CHECK(code_of([&] { store::open(url_of({t / "a"})); }, "metadata.sqlite' is not there").value() == ENOENT);
}

TEST_CASE("a folder that may not be used is named") {
  if (::geteuid() == 0) {
    // Root may everything: lay the check upon a child that is nobody.
    temporary_folder t;
    fs::permissions(t.path(), fs::perms::all);
    fs::create_directory(t / "closed");
    fs::permissions(t / "closed", fs::perms::owner_read);
    child_process child([&] {
      if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 98;
      try {
        store::open(url_of({t / "closed" / "x"}));
      } catch (const io_error& e) {
        return e.code().value() == EACCES && std::string(e.what()).find("closed") != std::string::npos ? 0 : 1;
      }
      return 2;
    });
    CHECK(child.wait() == 0);
    return;
  }
  temporary_folder t;
  fs::create_directory(t / "closed");
  fs::permissions(t / "closed", fs::perms::owner_read);
  CHECK(code_of([&] { store::open(url_of({t / "closed" / "x"})); }, "closed").value() == EACCES);
  fs::permissions(t / "closed", fs::perms::all);
}

TEST_CASE("processes that open new folders at once make one store") {
  for (int round = 0; round < 5; ++round) {
    temporary_folder t;
    std::vector<child_process> children;
    for (int i = 0; i < 6; ++i)
      children.emplace_back([&, i] {
        const store s = store::open(url_of({t / "a", t / "b", t / "c"}));
        std::ofstream(t / ("uuid" + std::to_string(i))) << s.uuid();
        file::create(s, "f" + std::to_string(i), {.size = 10});
        return 0;
      });
    for (const auto& c : children) CHECK(c.wait() == 0);
    std::set<std::string> uuids;
    for (int i = 0; i < 6; ++i) {
      std::string u;
      std::ifstream(t / ("uuid" + std::to_string(i))) >> u;
      uuids.insert(u);
    }
    CHECK(uuids.size() == 1);
    const store s = store::open(url_of({t / "a", t / "b", t / "c"}), {.create = false});
    CHECK(s.core()->metadata().list("").size() == 6);
  }
}

TEST_CASE("a store whose making was cut short is finished or made anew") {
  temporary_folder t;
  const std::vector<fs::path> folders{t / "a", t / "b"};
  const credentials me{::geteuid(), ::getegid()};
  const std::string uuid = open_store_folders(folders, true, me);
  const auto undo = [](const fs::path& f) { fs::rename(f / "oocarray-node", f / "oocarray-node.new"); };
  // Died before the first folder's rename: everything was prepared.
  undo(folders[0]);
  CHECK(open_store_folders(folders, false, me) == uuid);

  // Died before any rename.
  undo(folders[0]);
  undo(folders[1]);
  CHECK(code_of([&] { open_store_folders(folders, false, me); }, "no store") == errc::not_a_store);
  const std::string again = open_store_folders(folders, true, me);
  CHECK(again != uuid);

  // Died before everything was prepared.
  undo(folders[0]);
  undo(folders[1]);
  fs::remove(folders[1] / "oocarray-node.new");
  std::ofstream(folders[0] / "oocarray-node.new") << "oocarray-no";
  CHECK(open_store_folders(folders, true, me) != again);
  CHECK(store::open(url_of({folders[0], folders[1]}), {.create = false}).nodes() == 2);
}

TEST_CASE("a process killed between create and commit leaves a store that opens clean") {
  temporary_folder t;
  const std::string url = url_of({t / "a", t / "b"});
  { file::create(store::open(url), "kept", {.size = 1'000'000}); }
  const auto objects = [&](const store& s) {
    std::size_t n = 0;
    for (const auto& node : s.core()->nodes()) {
      std::mutex m;
      std::condition_variable cv;
      bool done = false;
      node->list([&](const failure& f, std::vector<file_id> ids) {
        CHECK_FALSE(f);
        const std::lock_guard lock(m);
        n += ids.size();
        done = true;
        cv.notify_one();
      });
      std::unique_lock lock(m);
      cv.wait(lock, [&] { return done; });
    }
    return n;
  };
  child_process child([&] {
    const store s = store::open(url);
    s.core()->make("half", plain(1'000'000));
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  CHECK(child.wait() == 128 + SIGKILL);
  const store s = store::open(url);
  CHECK(objects(s) == 2);
  CHECK(s.core()->metadata().dead().empty());
  CHECK(s.core()->metadata().unfinished().empty());
  CHECK(s.core()->metadata().list("").size() == 1);
  file::create(s, "half", {.size = 10});
}

TEST_CASE("a program lists, renames and removes what is in a store") {
  const memory_store m(2);
  const store s = m.handle();
  s.mkdir("runs/7", {.parents = true});
  s.mkdir("runs/7", {.parents = true});
  CHECK(code_of([&] { s.mkdir("runs"); }, "'runs'") == std::errc::file_exists);
  CHECK(code_of([&] { s.mkdir("none/below"); }, "none") == std::errc::no_such_file_or_directory);
  file::create(s, "runs/7/log", {.size = 100});

  CHECK(s.exists("runs/7/log"));
  CHECK_FALSE(s.exists("runs/8"));
  CHECK_FALSE(s.exists("runs/7/log/below"));
  CHECK(s.entry("runs/7").folder);
  CHECK(s.entry("runs/7/log").size == 100);
  CHECK(s.entry("runs/7/log").extents.empty());

  s.rename("runs/7/log", "runs/old");
  std::vector<std::string> names;
  for (const store_entry& e : s.list("runs")) names.push_back(e.path);
  CHECK(names == std::vector<std::string>{"runs/7", "runs/old"});
  CHECK(s.list().size() == 1);
  CHECK(code_of([&] { s.rename("runs/7", "runs/old"); }, "'runs/old'") == std::errc::file_exists);

  CHECK(code_of([&] { s.remove("runs"); }, "'runs'") == std::errc::directory_not_empty);
  s.remove("runs/old");
  s.remove_all("runs");
  CHECK(s.list().empty());
  CHECK(code_of([&] { s.remove("runs"); }, "'runs'") == std::errc::no_such_file_or_directory);
  m.core->removals().finish();
  for (const auto& n : m.nodes) CHECK(n->objects().empty());
}

TEST_CASE("attributes belong to files, folders and the store itself") {
  const memory_store m(1);
  const store s = m.handle();
  s.mkdir("runs");
  for (const std::string path : {"", "runs"}) {
    s.set_attribute(path, "dt", "0.01");
    s.set_attribute(path, "dt", "0.02");
    s.set_attribute(path, "author", "");
    CHECK(s.attributes(path) == std::map<std::string, std::string>{{"author", ""}, {"dt", "0.02"}});
    s.remove_attribute(path, "dt");
    CHECK(s.entry(path).attributes.size() == 1);
  }
  CHECK(code_of([&] { s.remove_attribute("runs", "dt"); }, "'dt'") == std::errc::no_such_file_or_directory);
  CHECK(code_of([&] { s.attributes("none"); }, "'none'") == std::errc::no_such_file_or_directory);
}
