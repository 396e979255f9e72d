#include "copying/commit_copy.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/service/commits.hpp"

namespace ooc::tool {

namespace {

constexpr const char* record = "ooc.copy_of";

// Who commits to the copy may give with it what was given before: then the number is not its own.
std::string record_text(const byte_source& from, std::uint64_t copied, std::uint64_t number) {
  return from.origin() + "@" + std::to_string(copied) + " at " + std::to_string(number);
}

std::string commit_text(std::uint64_t number) { return "commit " + std::to_string(number); }

/// The commit of `from` that it is a copy of; 0: of none.
std::uint64_t copied_commit(const storage::entry& there, const byte_source& from) {
  if (!there.commit) return 0;
  const auto found = there.commit->attributes.find(record);
  const std::string before = from.origin() + "@";
  if (from.origin().empty() || found == there.commit->attributes.end() || !found->second.starts_with(before)) return 0;
  std::uint64_t number = 0;
  (void)std::from_chars(found->second.data() + before.size(), found->second.data() + found->second.size(), number);
  return found->second == record_text(from, number, there.commit->number) ? number : 0;
}

/// The commit that the copy is at.  Throws where that is not `since`.
std::uint64_t check_copy(const storage::entry& there, const byte_source& from, std::uint64_t since) {
  const std::uint64_t is = copied_commit(there, from);
  const std::string of = " of '" + from.meta.path + "'";
  if (is == 0)
    throw usage_error(errc::invalid_request, "'" + there.path + "' is no copy of a commit" + of +
                                                 ", or has been changed since it was; without --since it is replaced");
  if (since != 0 && since != is)
    throw usage_error(errc::invalid_request, "'" + there.path + "' is a copy of " + commit_text(is) + of + ", not of " +
                                                 commit_text(since) + "; give --since " + std::to_string(is));
  return is;
}

class updated_copy : public byte_target {
 public:
  updated_copy(storage::store_core& core, storage::file_to_change there, byte_source& from)
      : core_(core), there_(std::move(there)), from_(from) {
    storage::opened_file& f = there_.file;
    if (f.meta.array.extents != from.meta.array.extents) f = core.resize(f, from.meta.size, from.meta.array.extents);
  }

  void append(std::span<std::byte> bytes) override {
    throw_if(there_.file.file->write(request::contiguous(at_, bytes.size()), bytes.data()));
    at_ += bytes.size();
  }
  void skip(std::uint64_t bytes) override { at_ += bytes; }

  // Whatever was written until then counts only if this succeeds.
  void publish() override {
    storage::opened_file& f = there_.file;
    const auto& wanted = from_.meta.attributes;
    for (const auto& [key, value] : f.meta.attributes)
      if (!wanted.contains(key)) core_.metadata().remove_attribute(f.meta.id, key);
    for (const auto& [key, value] : wanted) core_.metadata().set_attribute(f.meta.id, key, value);
    (void)storage::commit(core_, {&f, 1}, given_with_copy(from_, f.meta.commit->number + 1));
  }

 private:
  storage::store_core& core_;
  storage::file_to_change there_;
  const byte_source& from_;
  std::uint64_t at_ = 0;
};

}  // namespace

std::map<std::string, std::string> given_with_copy(const byte_source& from, std::uint64_t number) {
  if (!from.meta.commit) return {};
  auto given = from.meta.commit->attributes;
  given.erase(record);
  if (!from.origin().empty()) given[record] = record_text(from, from.meta.commit->number, number);
  return given;
}

std::unique_ptr<byte_target> update_copy(storage::store_core& core, const storage::entry& there, byte_source& from,
                                         std::uint64_t since) {
  (void)check_copy(there, from, since);
  auto opened = storage::open_to_change(core, there, "brought up to date");
  // It may have been changed before it was opened.
  const std::uint64_t is = check_copy(opened.file.meta, from, since);
  const storage::array_description& a = from.meta.array;
  const bool same_layout = a.extents == opened.file.meta.array.extents || !has_reserved_grid(a);
  if (!same_layout || is > from.meta.commit->number) return nullptr;
  from.leave_out_before(is);
  return std::make_unique<updated_copy>(core, std::move(opened), from);
}

}  // namespace ooc::tool
