// The object of RADOS that says what there is of a file: its bytes, the size of its objects, its cuts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/layout/file_shape.hpp"
#include "storage/rados/rados_pool.hpp"

namespace ooc::storage {

/// Of a file with commits: its last one is a snapshot of its objects.
struct commit_snapshots {
  std::uint64_t number = 0;  ///< of the commit that `snapshot` has
  std::uint64_t snapshot = 0;
  std::uint64_t next = 0;  ///< has the commit after that, if the metadata know of it; 0: there is none
  bool written = false;    ///< objects may be others than in `snapshot`

  bool operator==(const commit_snapshots&) const = default;
};

inline constexpr std::string_view rank_prefix = "oocarray.rank.";

/// Of a rank that writes the file under the claim of its rank 0 (file_ranks.hpp).
struct file_rank {
  std::string attribute;  ///< that says it
  write_claim claim;
  std::string address;
};

struct file_object {
  std::uint64_t size = 0;    ///< bytes that have been given to the file
  std::uint64_t object = 0;  ///< bytes of each of its objects
  std::uint64_t cuts = 0;    ///< as file_shape::cuts
  std::optional<commit_snapshots> commits{};
  /// Writes of who has looked the file up before this generation do not count: it was about to be given other objects
  /// then.  An attribute of the object, which earlier releases ignore; nothing: there is none.
  std::optional<std::uint64_t> writes_since{};
  /// Attributes as well, which write_file_object() leaves as they are.
  std::vector<file_rank> ranks{};

  std::uint64_t objects() const { return (size + object - 1) / object; }
};

/// "0000000000000012", and of its objects "0000000000000012.000000000000000a".
std::string object_name(file_id id);
std::string object_name(file_id id, std::uint64_t number);
/// The file that an object of such a name is of; 0 where it is none of a file.
file_id file_of(const std::string& object_name);

/// All but the attributes.
std::string text_of(const file_object& f);
/// The value of its attribute.
std::string text_of(const file_rank& r);
/// False where the text is none of text_of().
bool parse(const std::string& text, file_object& f);

/// Calls `found` with 0, or with the errno of RADOS, negative; -EBADMSG where the object has something else in it.
void read_file_object(rados_pool& pool, file_id id, const std::string& what,
                      std::function<void(int, const file_object&)> found);
/// All of it at once; `fresh`: -EEXIST where there is one.
void write_file_object(rados_pool& pool, file_id id, const file_object& f, bool fresh, const std::string& what,
                       rados_pool::end ended);

}  // namespace ooc::storage
