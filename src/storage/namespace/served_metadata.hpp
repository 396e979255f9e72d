// The name space of a store as a metadata server has it: for calls in the names of its clients.
//
// served_metadata is the database, opened by the server itself, and what it asks of it for its own sake;
// served_call is one call of one client.  Both are local_metadata, with the same promises.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/namespace/local_metadata.hpp"

namespace ooc::storage {

/// A changing call is recorded together with its change (reply_cache.hpp), files that it makes belong to the client,
/// and calls that name a file by its id are checked: set_size() and find() need the caller's permission, commit() and
/// abandon() must come from the maker, removal_capability() is for ids that were in use; long answers come in parts.
class served_call final : public local_metadata {
 public:
  served_call(std::shared_ptr<metadata_database> db, credentials who, const client_call& call);

  /// If this very call was done before.
  std::optional<std::string> kept_reply() const;
  struct unfinished_file {
    entry meta;  ///< without its path
    bool by_caller = false;
  };
  /// This file where the client, or another one of the same user, is making it.
  std::optional<unfinished_file> being_made(file_id id) const;
};

class served_metadata final : public local_metadata {
 public:
  /// Opens the database and makes the tables that servers need.  `alive` says which of the clients that make
  /// files may still be there; it is called under the database's mutex.
  served_metadata(const std::filesystem::path& file, std::string_view store_uuid,
                  std::function<bool(const client_key&)> alive, sqlite::open_as how = sqlite::open_as::existing);

  /// For further tables, in the one thread of the server and outside of its calls.
  sqlite::connection& connection() const;

  served_call of(credentials who, const client_call& call) const;
  /// True where the client is making some file.
  bool makes_files(const client_key& client) const;
  /// The clients that the database knows, but for lost ones: by their last call or by a file that they are making.
  std::vector<client_key> clients() const;
  /// The last call of this client need not be remembered any more.
  void forget_client(const client_key& client);
  /// It need not be remembered for ever: nothing has been heard of the client for long.
  void lose_client(const client_key& client);
};

}  // namespace ooc::storage
