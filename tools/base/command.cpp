#include "base/command.hpp"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>

#include "base/named_path.hpp"
#include "storage/service/store_core.hpp"
#include "storage/store/store_url.hpp"

namespace ooc::tool {
namespace {

/// That an option of numbers was given one.  Boost's own texts do not say what is expected, and it takes -1 for a
/// number without a sign.
void check_number(const po::option& given, const po::value_semantic& expected) {
  const auto holds = [&](auto number, const char* what) {
    for (const std::string& text : given.value) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error != std::errc() || end != text.data() + text.size())
        throw usage_mistake("--" + given.string_key + ": '" + text + "' is not " + what);
    }
  };
  if (dynamic_cast<const po::typed_value<std::uint32_t>*>(&expected) != nullptr)
    holds(std::uint32_t{}, "a whole number from 0 to 4294967295");
  if (dynamic_cast<const po::typed_value<double>*>(&expected) != nullptr)
    holds(double{}, "a number; write for instance 0.5");
}

/// A number below 0 is no option.
std::vector<po::option> negative_number(std::vector<std::string>& arguments) {
  const std::string& first = arguments.front();
  if (first.size() < 2 || first[0] != '-' ||
      (std::isdigit(static_cast<unsigned char>(first[1])) == 0 && first[1] != '.'))
    return {};
  po::option positional;
  positional.value = positional.original_tokens = {first};
  arguments.erase(arguments.begin());
  return {positional};
}

}  // namespace

command_line::command_line(const command& c) : command_(c), options_("Options") {
  options_.add_options()("store", po::value<std::string>()->value_name("URL"),
                         "the store; otherwise the environment variable OOC_STORE");
  options_.add_options()("help,h", "print this");
}

void command_line::key_option() {
  option()("key", po::value<std::string>()->value_name("FILE"),
           "cluster key; otherwise OOC_KEY or ~/.config/oocarray/key");
}

void command_line::recursive_option(const char* what) {
  options_.add_options()("recursive,r", what);
  hidden_.add_options()(",R", "the same");
}

void command_line::positional(const std::string& name, bool many) {
  if (many)
    hidden_.add_options()(name.c_str(), po::value<std::vector<std::string>>());
  else
    hidden_.add_options()(name.c_str(), po::value<std::string>());
  positions_.add(name.c_str(), many ? -1 : 1);
}

bool command_line::parse(const std::vector<std::string>& arguments) {
  po::options_description all;
  all.add(options_).add(hidden_);
  // Options are written in full, so that a new one never changes what an old script means.
  const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
  const auto given = po::command_line_parser(arguments)
                         .options(all)
                         .positional(positions_)
                         .style(style)
                         .extra_style_parser(&negative_number)
                         .run();
  for (const po::option& o : given.options)
    if (const auto* const known = all.find_nothrow(o.string_key, false)) check_number(o, *known->semantic());
  po::store(given, values_);
  if (has("help")) {
    std::cout << "Usage: ooc " << command_.usage << "\n" << command_.summary << "\n\n" << options_;
    return false;
  }
  po::notify(values_);
  return true;
}

std::vector<std::string> command_line::texts(const std::string& name) const {
  return has(name) ? values_[name].as<std::vector<std::string>>() : std::vector<std::string>();
}

std::string command_line::required(const std::string& name) const {
  if (!has(name)) throw usage_mistake(name + " is missing; usage: ooc " + command_.usage);
  return text(name);
}

std::uint64_t command_line::bytes(const std::string& name, std::uint64_t otherwise) const {
  return has(name) ? parse_bytes(text(name), "--" + name) : otherwise;
}

std::string command_line::store_url(const std::string& name) const {
  if (has(name)) return text(name);
  const char* environment = std::getenv("OOC_STORE");
  const std::string url = text_or("store", environment ? environment : "");
  if (url.empty())
    throw usage_mistake(
        "no store is named; give --store local:FOLDER[,FOLDER...] or ooc://HOST:PORT, or set "
        "OOC_STORE");
  return url;
}

ooc::store command_line::open_store(bool create) const {
  store_options options;
  options.create = create;
  return ooc::store::open(store_url("store"), options);
}

ooc::store command_line::open_store_of(const std::string& option) const {
  store_options options;
  options.create = false;
  return ooc::store::open(store_url(option), options);
}

located command_line::locate(const std::string& argument, const std::string& option) const {
  const url_path named = is_url(argument) ? split_url(argument) : url_path{store_url(option), argument};
  auto known = stores_.find(named.url);
  if (known == stores_.end()) {
    store_options options;
    options.create = false;
    known = stores_.emplace(named.url, ooc::store::open(named.url, options)).first;
  }
  return {known->second, named.path};
}

std::vector<located> command_line::locate_matches(const std::string& argument) const {
  const located l = locate(argument);
  std::vector<located> all;
  for (const std::string& path : expand(l.store.core()->metadata(), l.path)) all.push_back({l.store, path});
  return all;
}

std::vector<located> command_line::locate_all(const std::string& name) const {
  const auto arguments = texts(name);
  if (arguments.empty()) (void)required(name);
  std::vector<located> all;
  for (const std::string& argument : arguments)
    for (located& l : locate_matches(argument)) all.push_back(std::move(l));
  return all;
}

std::uint64_t parse_bytes(const std::string& text, const std::string& option) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  const auto refuse = [&]() -> std::uint64_t {
    throw usage_mistake(option + ": '" + text + "' is not a size up to 2^63 - 1; write for instance 65536 or 64KiB");
  };
  const char* const end = text.data() + text.size();
  double number = 0;
  const auto r = std::from_chars(text.data(), end, number);
  if (r.ec != std::errc() || !(number >= 0)) return refuse();
  std::string unit(r.ptr, end);
  int shift = 0;
  if (!unit.empty()) {
    const auto power = std::string("KMGTP").find(unit[0]);
    if (power != std::string::npos) {
      shift = 10 * (static_cast<int>(power) + 1);
      unit.erase(0, 1);
      if (unit == "iB" || unit == "i") unit.clear();
    }
    if (!unit.empty() && unit != "B") return refuse();
  }
  // A double has 53 bits; only a fraction needs one.
  std::uint64_t whole = 0;
  if (const auto w = std::from_chars(text.data(), end, whole); w.ec == std::errc() && w.ptr == r.ptr)
    return whole <= most >> shift ? whole << shift : refuse();
  number = std::ldexp(number, shift);
  if (number >= 0x1p63 || number != std::floor(number)) return refuse();
  return static_cast<std::uint64_t>(number);
}

std::uint32_t node_number(const std::string& text) {
  std::uint32_t node = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), node);
  if (error != std::errc() || end != text.data() + text.size())
    throw usage_mistake("'" + text + "' is no number of a node; `ooc info` shows them");
  return node;
}

std::filesystem::path folder_of_node(const std::string& text) {
  const auto folders = storage::local_folders({"local", text});
  if (folders.size() != 1)
    throw usage_mistake(
        "'" + text + "' names " + std::to_string(folders.size()) +
        " folders, and a node has one; give one folder in each argument, and write a comma in a name as %2C");
  return folders.front();
}

std::vector<std::uint64_t> parse_shape(const std::string& text, const std::string& option) {
  std::vector<std::uint64_t> shape;
  const char* p = text.data();
  const char* const end = p + text.size();
  for (;;) {
    std::uint64_t n = 0;
    const auto r = std::from_chars(p, end, n);
    if (r.ec != std::errc() || n > std::uint64_t{std::numeric_limits<std::int64_t>::max()} ||
        (r.ptr != end && *r.ptr != 'x' && *r.ptr != ','))
      throw usage_mistake(option + ": '" + text + "' is not a shape; write for instance 1000x500");
    shape.push_back(n);
    if (r.ptr == end) return shape;
    p = r.ptr + 1;
  }
}

}  // namespace ooc::tool
