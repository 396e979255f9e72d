// ooc: looks into stores, moves arrays in and out, checks them.
//
// Errors are one line on stderr, "ooc: ...", and exit status 1.
#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "base/interrupt.hpp"
#include "oocarray/error.hpp"

namespace ooc::tool {

namespace {

constexpr std::array commands{
    &init,        &ls,           &stat,         &du,           &cat,          &mkdir,          &mv,    &rm,
    &cp,          &snapshot,     &truncate,     &import_array, &export_array, &attr,           &chmod, &chown,
    &info,        &verify,       &replace_node, &add_node,     &drain_node,   &restripe_files, &pack,  &unpack,
    &up,          &down,         &ping,         &df,           &top,          &start,          &stop,  &keygen,
    &revoke,
#ifdef OOCARRAY_PICTURE
    &picture,
#endif
#ifdef OOCARRAY_MOUNT
    &mount_store, &umount_store,
#endif
};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

void print_help() {
  std::cout << "Usage: ooc [--store URL] COMMAND [ARGUMENTS] | ooc help [COMMAND]\n"
               "Works on a store of out-of-core arrays: --store URL, or the environment variable\n"
               "OOC_STORE.  A store on this machine is local:FOLDER[,FOLDER...], one folder for each\n"
               "disk; one on servers is ooc://HOST:PORT, one in Ceph rados:POOL/NAMESPACE.\n\nCommands:\n";
  for (const command* c : commands)
    std::cout << "  " << c->name << std::string(13 - std::string(c->name).size(), ' ') << first_line(c->summary)
              << "\n";
  std::cout << "\n`ooc COMMAND --help` tells more.  `ooc --version` tells the version.\n"
               "Exit status: 0 success, 1 failure, 2 verify found problems.\n";
}

int run(std::vector<std::string> arguments) {
  // Options before the command's name belong to it as well.
  std::vector<std::string> before;
  while (!arguments.empty() && arguments[0].starts_with("-")) {
    if (arguments[0] == "--help" || arguments[0] == "-h") return print_help(), success;
    if (arguments[0] == "--version") {
      std::cout << "ooc " OOCARRAY_VERSION "\n";
      return success;
    }
    const bool has_value = arguments[0] == "--store" && arguments.size() > 1;
    if (!has_value && !arguments[0].starts_with("--store="))
      throw usage_mistake("unknown option '" + arguments[0] + "' before the command; see ooc --help");
    const auto end = arguments.begin() + (has_value ? 2 : 1);
    before.insert(before.end(), arguments.begin(), end);
    arguments.erase(arguments.begin(), end);
  }
  if (arguments.empty()) throw usage_mistake("no command is given; see ooc --help");
  if (arguments[0] == "help") {
    if (arguments.size() == 1) return print_help(), success;
    arguments = {arguments[1], "--help"};
  }
  const std::string name = arguments[0];
  const auto c = std::find_if(commands.begin(), commands.end(), [&](const command* k) { return name == k->name; });
  if (c == commands.end()) throw usage_mistake("unknown command '" + name + "'; see ooc --help");
  arguments.erase(arguments.begin());
  arguments.insert(arguments.begin(), before.begin(), before.end());
  return (*c)->run(**c, arguments);
}

}  // namespace

int complain(std::string what) {
  std::replace(what.begin(), what.end(), '\n', ' ');
  std::cerr << "ooc: " << printable(what) << std::endl;
  return failed;
}

int run_and_report(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes (ulimit -f) is an error like others
  try {
    const int status = run({argv + 1, argv + argc});
    std::cout.flush();
    if (!std::cout) return complain("standard output cannot be written");
    return status;
  } catch (const interrupted& i) {
    complain("ended by signal " + std::to_string(i.signal) + "; " + i.left);
    end_by_signal(i.signal);
  } catch (const std::bad_alloc&) {
    return complain("not enough memory");
  } catch (const std::exception& e) {
    return complain(e.what());
  }
}

}  // namespace ooc::tool

int main(int argc, char** argv) { return ooc::tool::run_and_report(argc, argv); }
