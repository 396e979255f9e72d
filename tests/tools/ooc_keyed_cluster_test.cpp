// A cluster with a key, from `ooc keygen` to a program that runs on it.
#include <catch2/catch.hpp>
#include <string>

#include "support/shell.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;

namespace {

struct keyed_shell : shell {
  keyed_shell() {
    ok("keygen key");
    ok("keygen other");
  }

  /// Jacobi on a plate of four times its memory; without a `key` it finds none.
  outcome jacobi(const std::string& store, const std::string& key = "") {
    return run_command(
        "cd " + folder.path().string() + " && env " + (key.empty() ? "-u OOC_KEY" : "OOC_KEY=" + key) +
            " HOME=/nonexistent " JACOBI " --size 1201 --memory 6M --iterations 20 --keep --json --store " + store,
        (folder / "jacobi").string());
  }

  std::string plate(const std::string& store, const std::string& environment = "") {
    const outcome o = run("export -f --format raw --store " + store + " jacobi.a bytes", environment);
    INFO(o.err);
    CHECK(o.status == 0);
    return contents(folder / "bytes");
  }
};

}  // namespace

TEST_CASE("a program with the key runs on a keyed cluster; without it, or with another, it does not") {
  keyed_shell sh;
  REQUIRE(sh.jacobi(sh.url()).status == 0);
  const std::string right = sh.plate(sh.url());
  servers s(sh.folder / "cluster", 3, "--key " + (sh.folder / "key").string());

  const outcome without = sh.jacobi(s.url());
  CHECK(without.status != 0);
  INFO(without.err);
  CHECK(without.err.find("OOC_KEY") != std::string::npos);
  const outcome with_another = sh.jacobi(s.url(), "other");
  CHECK(with_another.status != 0);
  INFO(with_another.err);
  CHECK(with_another.err.find("wrong cluster key") != std::string::npos);
  // The server hears of it from the client, which does not wait for that.
  CHECK(soon([&] { return s.logs().find("wrong cluster key") != std::string::npos; }));
  sh.refused("ls --store " + s.url(), "OOC_KEY", "HOME=/nonexistent");

  const outcome with = sh.jacobi(s.url(), "key");
  INFO(with.err << s.logs());
  REQUIRE(with.status == 0);
  CHECK(sh.plate(s.url(), "OOC_KEY=key") == right);
  CHECK(sh.run("verify --store " + s.url(), "OOC_KEY=key").status == 0);
}

TEST_CASE("a revoked key opens nothing any more, at servers that were started again neither, and a new key does") {
  keyed_shell sh;
  sh.ok("keygen --user 4711 --groups 4711 --key key user");
  sh.ok("keygen --user 4712 --groups 4712 --key key another");
  sh.refused("revoke --key user 4711", "beside the cluster key");
  sh.refused("revoke --key key nobody-of-this-name", "give the user's number");
  servers s(sh.folder / "cluster", 1, "--key " + (sh.folder / "key").string());
  const auto with = [&](const std::string& key, const std::string& arguments) {
    return sh.run(arguments, "OOC_STORE=" + s.url() + " OOC_KEY=" + key);
  };
  REQUIRE(with("key", "mkdir d").status == 0);
  REQUIRE(with("key", "chmod 777 d").status == 0);
  REQUIRE(with("user", "cp ./user d/f").status == 0);

  sh.ok("revoke --key key 4711");
  const auto refused = [&] {
    const outcome o = with("user", "cat d/f");
    return o.status == 1 && o.err.find("uid 4711) has been revoked") != std::string::npos;
  };
  CHECK(soon(refused));
  CHECK(with("another", "ls d").status == 0);
  sh.ok("keygen --user 4711 --groups 4711 --key key renewed");
  CHECK(with("renewed", "cat d/f").status == 0);
  s.down();
  REQUIRE(s.up().status == 0);
  CHECK(refused());
  CHECK(with("renewed", "cat d/f").status == 0);
}

TEST_CASE("a user's key opens what its user may, and nothing else; without encryption both sides say so") {
  keyed_shell sh;
  sh.ok("keygen --user 4711 --groups 4711,100 --key key user");
  sh.refused("keygen --user 4712 --key key nobody", "--groups");
  sh.refused("keygen --user 4712 --groups 1 --key user derived", "made from the cluster key");
  servers s(sh.folder / "cluster", 1, "--encrypt off --key " + (sh.folder / "key").string());
  CHECK(s.url().find("?encrypt=off") != std::string::npos);
  const std::string plain = s.url().substr(0, s.url().find('?'));
  sh.refused("ls --store " + plain, "put ?encrypt=off into", "OOC_KEY=key");
  CHECK(sh.run("mkdir --store '" + s.url() + "' d", "OOC_KEY=key").status == 0);
  CHECK(sh.run("ls --store '" + s.url() + "'", "OOC_KEY=user").status == 0);
  sh.refused("mkdir --store '" + s.url() + "' e", "user 4711", "OOC_KEY=user");
  CHECK(sh.run("ping '" + s.url() + "'", "OOC_KEY=user").status == 0);
}

TEST_CASE("a metadata server that runs with a key is not stopped for a start without it") {
  keyed_shell sh;
  const fs::path launcher = sh.folder / "launcher";
  write(launcher, "#!/bin/sh\nshift\nexec env -u OOC_KEY HOME=/nonexistent sh -c \"$*\"\n");
  fs::permissions(launcher, fs::perms::owner_all);
  const std::string address = "127.0.0.1:" + free_port();
  const auto line = [&](const char* what, const std::string& where) {
    return "host " + std::string(what) + " " + (sh.folder / where).string() + " 127.0.0.1:" + free_port() + "\n";
  };
  const std::string hosts = "host metad " + (sh.folder / "m").string() + " " + address + "\n" + line("iod", "n0");
  write(sh.folder / "hosts", hosts);
  const std::string options = " --hosts hosts --launcher " + launcher.string() + " --ooc " OOC_COMMAND;
  const std::string key = " --key " + (sh.folder / "key").string();
  sh.ok("up" + options + key);
  write(sh.folder / "hosts", hosts + line("iod", "n1"));
  sh.refused("up" + options, "--key", "OOC_KEY=key");
  sh.refused("up --forget-node 0" + options, "--key", "HOME=/nonexistent");
  CHECK(sh.run("ping ooc://" + address, "OOC_KEY=key").status == 0);
  sh.ok("up" + options + key);
  sh.ok("down" + options);
}
