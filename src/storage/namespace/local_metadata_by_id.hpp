// The entries of local_metadata by their ids.
#pragma once

#include <string_view>

#include "storage/namespace/metadata_caller.hpp"
#include "storage/namespace/path_resolution.hpp"
#include "storage/service/metadata_by_id.hpp"

namespace ooc::storage {

class local_metadata_by_id final : public metadata_by_id, private metadata_caller {
 public:
  explicit local_metadata_by_id(const metadata_caller& caller) : metadata_caller(caller) {}

  entry stat(file_id id) override;
  entry look_in(const place& at) override;
  folder_part list_in(file_id folder, std::string_view after) override;
  entry make(const place& at, const new_entry& what) override;
  entry link(file_id id, const place& at) override;
  entry unlink(const place& at, bool folder) override;
  entry move(const place& from, const place& to, bool replace) override;
  entry change(file_id id, const entry_change& what) override;
  void set_attribute(file_id id, std::string_view key, std::string_view value) override;
  void remove_attribute(file_id id, std::string_view key) override;

 private:
  template <class F>
  entry change_entry(file_id id, F f);
  entry drop_name(const path_resolution& walk, const path_resolution::place& p) const;
};

}  // namespace ooc::storage
