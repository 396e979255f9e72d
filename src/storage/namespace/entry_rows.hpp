// Rows of the tables `entry` and `attribute` as values.
//
// All functions run inside a transaction of the caller.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "storage/base/process_identity.hpp"
#include "storage/namespace/sqlite.hpp"
#include "storage/service/metadata_call.hpp"

namespace ooc::storage {

/// Extents and tiles as they are stored: decimal, comma-separated.
std::string numbers_to_text(const std::vector<std::uint64_t>& v);
std::vector<std::uint64_t> numbers_from_text(const std::string& s);

/// Of a new file whose array may grow in any dimension: what the table `growth` has of it.
void put_growth(sqlite::connection& c, file_id id, const array_description& a);
/// Of a file that has been cut off.
void note_cut(sqlite::connection& c, file_id id);
/// The array has these extents from now on, if it is such a one.
void note_reached(sqlite::connection& c, file_id id, const std::vector<std::uint64_t>& extents);

/// The value of the column `max_extent`.
std::int64_t max_extent_column(const array_description& a);

/// The entry with this id and its attributes; `path` is where it is.  Throws ENOENT.
entry read_entry(sqlite::connection& c, file_id id, std::string path);

/// The committed entries of a folder by name, with their attributes; `path` is the folder's.
std::vector<entry> read_folder(sqlite::connection& c, file_id folder, const std::string& path);

/// The same for names greater than `after`, until there are `max_entries` of them or what they hold
/// passes `max_bytes`; at least one where there is one.
folder_part read_folder_part(sqlite::connection& c, file_id folder, const std::string& path, std::string_view after,
                             std::size_t max_entries, std::size_t max_bytes);

/// Ids of committed files: at most `max` above `after`, ascending.
std::vector<file_id> read_file_ids(sqlite::connection& c, file_id after, std::uint64_t max);

/// A file that is being made, or that was removed and is still used, and whose it is.
struct file_maker {
  file_id file;
  process_identity maker;
};
std::vector<file_maker> read_makers(sqlite::connection& c);

/// Of a file that is in use; throws ENOENT.
std::uint64_t generation_of(sqlite::connection& c, file_id id);

void delete_entry(sqlite::connection& c, file_id id);
/// The entry `next` gets everything from the entry `old` but for what says where its bytes are, and `old` is deleted;
/// its id stands for `next` (now_at) from then on.
void replace_rows(sqlite::connection& c, file_id next, file_id old);
/// The entry that has taken the place of this one; 0: none has.
file_id now_at(sqlite::connection& c, file_id id);
/// A file that is being made is gone, but for its stripe objects; nothing where nobody is making it.
bool bury(sqlite::connection& c, file_id id);

/// Sets an attribute; throws EINVAL where name, value or all attributes together are too long.
void put_attribute(sqlite::connection& c, file_id id, std::string_view key, std::string_view value,
                   std::string_view path);

}  // namespace ooc::storage
