// The entries of remote_metadata by their ids.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "storage/service/metadata_by_id.hpp"

namespace ooc::storage {

class metadata_client;

class remote_metadata_by_id final : public metadata_by_id {
 public:
  explicit remote_metadata_by_id(std::shared_ptr<metadata_client> link) : link_(std::move(link)) {}

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
  const std::shared_ptr<metadata_client> link_;
};

}  // namespace ooc::storage
