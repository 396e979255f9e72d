#include "harness/command_line.hpp"

#include <boost/program_options.hpp>
#include <charconv>
#include <cmath>
#include <iostream>

namespace po = boost::program_options;

namespace examples {
namespace {

[[noreturn]] void refuse(const std::string& option, const std::string& text, const std::string& remedy) {
  throw bad_option("--" + option + " " + text + ": " + remedy);
}

/// Power of 1024 of a unit, or -1.
int unit_power(std::string unit, bool bytes) {
  if (!unit.empty() && unit.front() == '_') unit.erase(0, 1);
  if (unit.empty()) return 0;
  if (bytes && (unit == "B" || unit == "bytes")) return 0;
  const std::size_t power = std::string("KMGT").find(unit.front());
  if (power == std::string::npos) return -1;
  const std::string rest = unit.substr(1);
  const bool known = rest.empty() || (bytes && (rest == "iB" || rest == "i" || rest == "B"));
  return known ? static_cast<int>(power) + 1 : -1;
}

std::string with_thousands(std::uint64_t n) {
  std::string s = std::to_string(n);
  for (std::size_t at = s.size(); at > 3;) s.insert(at -= 3, "_");
  return s;
}

}  // namespace

std::uint64_t parse_quantity(const std::string& option, const std::string& text, bool bytes) {
  const std::string remedy =
      bytes ? "give a size such as 512M, 2G or 512_MiB" : "give a whole number such as 10_000, 64K or 256M";
  std::string digits;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    const bool separator = c == '_' && at + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[at + 1]));
    if (separator) continue;
    if (!std::isdigit(static_cast<unsigned char>(c)) && c != '.') break;
    digits += c;
  }
  const int power = unit_power(text.substr(at), bytes);
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (digits.empty() || error != std::errc{} || stop != end || power < 0) refuse(option, text, remedy);
  std::uint64_t whole = 0;
  if (digits.find('.') == std::string::npos) {
    if (std::from_chars(digits.data(), end, whole).ec != std::errc{} ||
        __builtin_mul_overflow(whole, std::uint64_t{1} << (10 * power), &whole) || whole >> 63)
      refuse(option, text, "more than 2^63 - 1; " + remedy);
    return whole;
  }
  const double scaled = value * std::ldexp(1.0, 10 * power);
  if (scaled >= std::ldexp(1.0, 63)) refuse(option, text, "more than 2^63 - 1; " + remedy);
  return static_cast<std::uint64_t>(scaled);
}

struct command_line::state {
  std::string program;
  std::string what;
  po::options_description list{"Options"};
};

command_line::command_line(std::string program, std::string what)
    : state_(new state{std::move(program), std::move(what)}) {
  state_->list.add_options()("help,h", "print this text");
}

command_line::~command_line() = default;

namespace {

/// A string option with a default, handed to `set`.
po::typed_value<std::string>* value(const std::string& shown, std::function<void(const std::string&)> set) {
  return po::value<std::string>()->value_name(shown.empty() ? "X" : "X (" + shown + ")")->notifier(std::move(set));
}

}  // namespace

void command_line::count(const char* name, std::uint64_t& v, std::uint64_t low, std::uint64_t high, const char* help) {
  state_->list.add_options()(name,
                             value(with_thousands(v),
                                   [=, &v](const std::string& text) {
                                     const std::uint64_t n = parse_quantity(name, text, false);
                                     if (n < low || n > high)
                                       refuse(name, text,
                                              "must be from " + with_thousands(low) + " to " + with_thousands(high));
                                     v = n;
                                   }),
                             help);
}

void command_line::bytes(const char* name, std::uint64_t& v, std::uint64_t low, const char* help) {
  state_->list.add_options()(name,
                             value(with_thousands(v >> 20) + "_MiB",
                                   [=, &v](const std::string& text) {
                                     const std::uint64_t n = parse_quantity(name, text, true);
                                     if (n < low)
                                       refuse(name, text, "must be at least " + with_thousands(low) + " bytes");
                                     v = n;
                                   }),
                             help);
}

void command_line::real(const char* name, double& v, double low, double high, const char* help) {
  state_->list.add_options()(
      name,
      value(std::to_string(v),
            [=, &v](const std::string& text) {
              double x = 0;
              const char* end = text.data() + text.size();
              const auto [stop, error] = std::from_chars(text.data(), end, x);
              if (error != std::errc{} || stop != end || !(x >= low && x <= high))
                refuse(name, text, "must be a number from " + std::to_string(low) + " to " + std::to_string(high));
              v = x;
            }),
      help);
}

void command_line::choice(const char* name, std::string& v, std::initializer_list<const char*> from, const char* help) {
  std::vector<std::string> allowed(from.begin(), from.end());
  state_->list.add_options()(name,
                             value(v,
                                   [=, &v](const std::string& text) {
                                     std::string list;
                                     for (const std::string& a : allowed) {
                                       if (a == text) {
                                         v = text;
                                         return;
                                       }
                                       list += (list.empty() ? "" : ", ") + a;
                                     }
                                     refuse(name, text, "must be one of " + list);
                                   }),
                             help);
}

void command_line::text(const char* name, std::string& v, const char* help) {
  state_->list.add_options()(name, value(v, [&v](const std::string& text) { v = text; }), help);
}

void command_line::flag(const char* name, bool& v, const char* help) {
  state_->list.add_options()(name, po::bool_switch(&v), help);
}

bool command_line::parse(int argc, const char* const* argv) {
  try {
    po::variables_map found;
    po::store(po::command_line_parser(argc, argv)
                  .options(state_->list)
                  .style(po::command_line_style::unix_style ^ po::command_line_style::allow_guessing)
                  .positional({})
                  .run(),
              found);
    if (found.count("help")) {
      std::cout << state_->what << "\nUsage: " << state_->program << " [options]\n\n" << state_->list;
      return false;
    }
    po::notify(found);
    return true;
  } catch (const po::error& e) {
    throw bad_option(std::string(e.what()) + "; see " + state_->program + " --help");
  }
}

void common_options::add_to(command_line& c) {
  c.bytes("memory", memory, 1 << 20, "memory budget of the runtime, on every rank: 512M, 2G, 512_MiB");
  c.text("store", store, "the store: local:FOLDER[,FOLDER...] or ooc://HOST:PORT");
  c.choice("vm", vm, {"none", "mmap", "anonymous"},
           "run the same loop on plain memory instead: a mapped file beside the store's, or "
           "anonymous memory that the data are first read into");
  c.choice("stage", stage, {"all", "create", "compute"},
           "make the data and leave them; or compute with those that a run with the same options made");
  c.flag("keep", keep, "leave the arrays in the store");
  c.flag("json", json, "end with one line that is a JSON object");
  c.flag("quiet", quiet, "no progress bar");
}

ooc::store common_options::open_store(const ranks& all) const {
  ooc::store_options options;
  if (memory < (64 << 20)) {
    options.workers = memory < (8 << 20) ? 1 : 2;
    options.staging = 64 << 10;
  }
  if (!all.leads()) all.barrier();
  ooc::store opened = ooc::store::open(store, options);
  if (all.leads()) all.barrier();
  return opened;
}

}  // namespace examples
