// The URL of a store: "local:/disk1,/disk2?lost=/disk2" (one folder per I/O node) or
// "ooc://host:port/?deadline=10s&encrypt=off".  Those of RADOS are read by rados_url.hpp.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ooc::storage {

struct store_url {
  std::string scheme;  ///< "local", "ooc", "rados"
  std::string rest;    ///< what follows "scheme:"
};

/// Throws usage_error (errc::not_a_store) where there is no scheme.
store_url parse_store_url(std::string_view url);

/// The folders of a "local:" URL as absolute, normal paths, in order.  In a folder's name "%2C" is
/// a comma, "%25" a percent sign and "%3F" a question mark.  Throws usage_error (errc::not_a_store) for an empty name,
/// a malformed escape and for the same folder twice, io_error where a folder cannot be reached.
std::vector<std::filesystem::path> local_folders(const store_url& url);

/// The options after the last '?' in a "local:" URL; any text there but one of these is a part of a folder's name.
struct local_options {
  std::vector<std::filesystem::path> lost;  ///< "?lost=/disk2": this folder is gone for good; what is left is read
  bool one_host = false;  ///< "?hosts=one": on a network file system, but only one host uses the store
};

/// Throws usage_error (errc::not_a_store) where a lost folder is none of the store's.
local_options local_options_of(const store_url& url);

/// The options after '?' in an "ooc:" URL.
struct url_options {
  std::optional<std::chrono::milliseconds> deadline;  ///< "?deadline=10s", "1500ms", "2min"
  bool encrypt = true;  ///< "?encrypt=off": where there are keys, frames after the handshake are not
};

/// Throws usage_error (errc::not_a_store) for what cannot be read, naming what can.
url_options options_of(const store_url& url);

/// How long a call to the store `url` may go unanswered: `own` as its URL says, else `of_program` (0: it does not),
/// else $OOC_DEADLINE, else `usual`.  Throws usage_error where that is not between 100 ms and 24 h.
std::chrono::milliseconds deadline_of(const store_url& url, std::optional<std::chrono::milliseconds> own,
                                      std::chrono::milliseconds of_program, std::chrono::milliseconds usual);

/// The URL of a store in these folders; local_folders() reads it back, local_options_of() the rest.
std::string local_url(const std::vector<std::filesystem::path>& folders, const local_options& options = {});

}  // namespace ooc::storage
