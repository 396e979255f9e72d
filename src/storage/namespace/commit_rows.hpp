// Rows of the tables `last_commit` and `committed_attribute`: what files with commits had at their last one.
//
// All functions run inside a transaction of the caller.
#pragma once

#include <map>
#include <string>

#include "storage/namespace/sqlite.hpp"
#include "storage/service/metadata_call.hpp"

namespace ooc::storage {

/// A file that has just been made keeps its commits; so does the store from now on.
void begin_commits(sqlite::connection& c, file_id id, std::uint64_t number = 0);

/// The last commit of the file `old`, if it keeps any, is that of the file `next` from now on.
void move_commits(sqlite::connection& c, file_id next, file_id old);

/// Whether there is any file that keeps commits.
bool has_commits(sqlite::connection& c);

/// Fills `e.commit`; nothing where the file keeps none.
void read_last_commit(sqlite::connection& c, entry& e);

/// Size, extents and attributes of `e` become those of its last commit; nothing where it keeps none.
void look_back(sqlite::connection& c, entry& e);

/// The present size, extents and attributes of `e` are those of its next commit, made at `time_ns`.
void raise_commit(sqlite::connection& c, const entry& e, std::int64_t time_ns,
                  const std::map<std::string, std::string>& given);

/// The size, extents and attributes in the tables become those of the last commit.
void restore_commit(sqlite::connection& c, const entry& e);

}  // namespace ooc::storage
