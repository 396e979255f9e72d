#include "storage/store/store_url.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "oocarray/error.hpp"
#include "storage/base/duration.hpp"
#include "storage/base/refuse.hpp"
#include "storage/base/url_options.hpp"

namespace ooc::storage {

namespace {

namespace fs = std::filesystem;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decode(std::string_view url, std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '%') {
      out += name[i];
      continue;
    }
    const int high = i + 1 < name.size() ? hex_digit(name[i + 1]) : -1;
    const int low = i + 2 < name.size() ? hex_digit(name[i + 2]) : -1;
    if (high < 0 || low < 0 || high + low == 0)
      refuse(errc::not_a_store, "store", url,
             "'%' must be followed by two hexadecimal digits; write %25 for a percent sign");
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

/// Absolute, without "." and "..", symbolic links resolved as far as the path exists.
fs::path normal(std::string_view url, const std::string& name) {
  std::error_code ec;
  fs::path p = fs::absolute(name, ec);
  if (!ec) p = fs::weakly_canonical(p, ec);
  if (ec) throw io_error(ec, "store '" + std::string(url) + "': folder '" + name + "' cannot be used");
  if (p.has_relative_path() && !p.has_filename()) p = p.parent_path();
  return p;
}

constexpr std::string_view lost_option = "lost=", hosts_option = "hosts=";

/// Where the options of a "local:" URL begin, with their '?'; its length where there are none.
std::size_t begin_of_options(std::string_view rest) {
  const auto mark = rest.rfind('?');
  if (mark == rest.npos) return rest.size();
  const std::string_view options = rest.substr(mark + 1);
  return options.starts_with(lost_option) || options.starts_with(hosts_option) ? mark : rest.size();
}

}  // namespace

store_url parse_store_url(std::string_view url) {
  const auto colon = url.find(':');
  const bool has_scheme = colon != url.npos && colon != 0 &&
                          std::all_of(url.begin(), url.begin() + static_cast<std::ptrdiff_t>(colon), [](char c) {
                            return std::isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '-' || c == '.';
                          });
  if (!has_scheme)
    refuse(errc::not_a_store, "store", url, "no scheme; for folders of this machine write local:FOLDER[,FOLDER...]");
  if (url.find('\0') != url.npos)
    refuse(errc::not_a_store, "store", url.substr(0, url.find('\0')), "holds a zero byte");
  return {std::string(url.substr(0, colon)), std::string(url.substr(colon + 1))};
}

std::vector<fs::path> local_folders(const store_url& url) {
  const std::string whole = url.scheme + ":" + url.rest;
  std::vector<fs::path> folders;
  std::string_view rest = std::string_view(url.rest).substr(0, begin_of_options(url.rest));
  for (bool more = true; more;) {
    const auto comma = rest.find(',');
    const std::string_view name = rest.substr(0, comma);
    more = comma != rest.npos;
    if (more) rest.remove_prefix(comma + 1);
    if (name.empty())
      refuse(errc::not_a_store, "store", whole,
             "a folder's name is empty; write local:FOLDER[,FOLDER...], and %2C for a comma "
             "in a name");
    if (name == "~" || name.starts_with("~/"))
      refuse(errc::not_a_store, "store", whole,
             "'~' stands for the home folder in a shell only, and only at the beginning of a "
             "word; write the folder in full (local:$HOME/...), or local:./~ for one of that name");
    fs::path p = normal(whole, decode(whole, name));
    if (std::find(folders.begin(), folders.end(), p) != folders.end())
      refuse(errc::not_a_store, "store", whole,
             "folder '" + p.string() + "' is named twice; each I/O node needs its own");
    folders.push_back(std::move(p));
  }
  for (const fs::path& a : folders)
    for (const fs::path& b : folders) {
      const auto split = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
      if (a != b && split.first == a.end())
        refuse(errc::not_a_store, "store", whole,
               "folder '" + b.string() + "' lies inside '" + a.string() + "'; give each I/O node a folder of its own");
    }
  return folders;
}

local_options local_options_of(const store_url& url) {
  const std::string whole = url.scheme + ":" + url.rest;
  local_options o;
  std::string_view rest = std::string_view(url.rest).substr(begin_of_options(url.rest));
  if (rest.empty()) return o;
  const auto folders = local_folders(url);
  for_each_option(rest.substr(1), [&](std::string_view name, std::string_view value, std::string_view one) {
    if (one == "hosts=one") {
      o.one_host = true;
    } else if (name == "lost" && one != name) {
      fs::path p = normal(whole, decode(whole, value));
      if (std::find(folders.begin(), folders.end(), p) == folders.end())
        refuse(errc::not_a_store, "store", whole, "lost folder '" + p.string() + "' is none of the store's");
      o.lost.push_back(std::move(p));
    } else {
      refuse(errc::not_a_store, "store", whole,
             "option '" + std::string(one) + "' is unknown; write ?lost=FOLDER or ?hosts=one, with & between two");
    }
  });
  return o;
}

url_options options_of(const store_url& url) {
  url_options o;
  const auto begin = url.rest.find('?');
  if (begin == url.rest.npos) return o;
  const std::string whole = url.scheme + ":" + url.rest;
  for_each_option(std::string_view(url.rest).substr(begin + 1), [&](std::string_view name, std::string_view value,
                                                                    std::string_view one) {
    if (name == "encrypt" && one != name) {
      if (value != "on" && value != "off")
        refuse(errc::not_a_store, "store", whole,
               "encrypt is '" + std::string(value) + "'; write encrypt=on or encrypt=off");
      o.encrypt = value == "on";
      return;
    }
    if (name != "deadline" || one == name)
      refuse(errc::not_a_store, "store", whole,
             "option '" + std::string(one) + "' is unknown; write ?deadline=10s or ?encrypt=off, with & between two");
    try {
      o.deadline = parse_duration(value, "deadline");
    } catch (const usage_error& e) {
      refuse(errc::not_a_store, "store", whole, e.what());
    }
  });
  return o;
}

std::chrono::milliseconds deadline_of(const store_url& url, std::optional<std::chrono::milliseconds> own,
                                      std::chrono::milliseconds of_program, std::chrono::milliseconds usual) {
  using namespace std::chrono_literals;
  std::string what = "store_options::deadline";
  std::chrono::milliseconds deadline = of_program;
  if (own) {
    what = "store '" + url.scheme + ":" + url.rest + "': deadline";
    deadline = *own;
  } else if (deadline == 0ms) {
    const char* const text = std::getenv("OOC_DEADLINE");
    if (text == nullptr || *text == '\0') return usual;
    what = "the environment variable OOC_DEADLINE";
    deadline = parse_duration(text, what);
  }
  if (deadline < 100ms || deadline > 24h)
    throw usage_error(errc::invalid_request,
                      what + " is " + std::to_string(deadline.count()) + " ms; give 100 ms to 24 h");
  return deadline;
}

std::string local_url(const std::vector<fs::path>& folders, const local_options& options) {
  const auto encoded = [](const fs::path& folder) {
    std::string text;
    for (const char c : folder.string())
      text += c == ',' ? "%2C" : c == '%' ? "%25" : c == '?' ? "%3F" : c == '&' ? "%26" : std::string(1, c);
    return text;
  };
  std::string url;
  for (const fs::path& f : folders) url += (url.empty() ? "local:" : ",") + encoded(f);
  char before = '?';
  const auto add = [&](const std::string& option) {
    url += before + option;
    before = '&';
  };
  for (const fs::path& f : options.lost) add(std::string(lost_option) + encoded(f));
  if (options.one_host) add("hosts=one");
  return url;
}

}  // namespace ooc::storage
