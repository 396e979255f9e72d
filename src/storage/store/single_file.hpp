// The metadata service of a store that is one file in place: an entry that never changes.
//
// The entry is made up when the file is opened (file_in_place.cpp); nothing is kept beside the file, so all that
// would change the name space, the size or the attributes is refused with errc::invalid_request.  Claims are
// open-file-description locks of the whole file: a writer alone has the exclusive one; readers, and writers
// together, share it.  In a store readers need no claim, as chunks and checksums tell half of a write from a whole
// one; here nothing does.
//
// Threads as in metadata_service.hpp.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "storage/node/plain_file_node.hpp"
#include "storage/service/metadata_service.hpp"

namespace ooc::storage {

[[noreturn]] void refuse_in_place(const entry& e, const char* what);

/// It can be looked at, and that is all.
class single_file_by_id final : public metadata_by_id {
 public:
  explicit single_file_by_id(const entry& e) noexcept : entry_(e) {}

  entry stat(file_id) override { return entry_; }
  entry look_in(const place&) override { refuse("hold names"); }
  folder_part list_in(file_id, std::string_view) override { refuse("hold names"); }
  entry make(const place&, const new_entry&) override { refuse("hold names"); }
  entry link(file_id, const place&) override { refuse("be given a name"); }
  entry unlink(const place&, bool) override { refuse("be removed"); }
  entry move(const place&, const place&, bool) override { refuse("be renamed"); }
  entry change(file_id, const entry_change&) override { refuse("be changed"); }
  void set_attribute(file_id, std::string_view, std::string_view) override {
    refuse("have attributes");
  }
  void remove_attribute(file_id, std::string_view) override { refuse("have attributes"); }

 private:
  [[noreturn]] void refuse(const char* what) const { refuse_in_place(entry_, what); }

  const entry& entry_;
};

class single_file final : public metadata_service {
 public:
  single_file(entry e, std::shared_ptr<const plain_file> file)
      : entry_(std::move(e)), file_(std::move(file)) {}

  entry lookup(std::string_view path) override;
  entry open(std::string_view path, bool write, bool unfinished) override;
  entry find(file_id) override { return entry_; }
  std::vector<entry> list(std::string_view) override { return {entry_}; }
  std::vector<file_id> files() override { return {entry_.id}; }
  std::vector<file_id> unfinished() override { return {}; }
  std::vector<file_id> dead() override { return {}; }

  std::shared_ptr<void> claim_writer(file_id, bool together, claim_holder* in_the_way) override;
  std::shared_ptr<void> claim_reader(file_id, claim_holder* in_the_way) override;

  // There is no place to note these.
  bool set_generation(file_id, std::uint64_t, std::uint64_t) override { return true; }
  void set_in_progress(file_id, std::string_view) override {}
  void sync() override {}
  void forget(file_id) override {}
  capability_ptr removal_capability(file_id) override { return {}; }
  capability_ptr size_capability(file_id, std::uint64_t) override { return {}; }

  entry create(std::string_view, const new_file&) override { refuse("hold another file"); }
  void commit(file_id) override { refuse("hold another file"); }
  void abandon(file_id) override {}
  void mkdir(std::string_view, std::uint32_t, bool) override { refuse("hold a folder"); }
  void rename(std::string_view, std::string_view) override { refuse("be renamed"); }
  entry remove(std::string_view) override { refuse("be removed"); }
  bool set_size(file_id, std::uint64_t, const std::vector<std::uint64_t>&, std::uint64_t,
                std::uint64_t) override {
    refuse("be resized");
  }
  size_lock_ptr lock_size(file_id) override { refuse("be resized"); }
  void set_attribute(std::string_view, std::string_view, std::string_view) override {
    refuse("have attributes");
  }
  void remove_attribute(std::string_view, std::string_view) override { refuse("have attributes"); }
  void set_mode(std::string_view, std::uint32_t) override { refuse("have its mode changed"); }
  void set_owner(std::string_view, std::uint32_t, std::uint32_t) override {
    refuse("have its owner changed");
  }

  metadata_by_id& by_id() noexcept override { return names_; }

 private:
  [[noreturn]] void refuse(const char* what) const { refuse_in_place(entry_, what); }
  std::shared_ptr<void> lock(short type, const char* doing, claim_holder* in_the_way);

  const entry entry_;
  single_file_by_id names_{entry_};
  const std::shared_ptr<const plain_file> file_;
};

}  // namespace ooc::storage
