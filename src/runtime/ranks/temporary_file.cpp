#include "runtime/ranks/temporary_file.hpp"

#include <vector>

#include "oocarray/error.hpp"
#include "oocarray/open_file.hpp"
#include "runtime/ranks/shared_array.hpp"
#include "storage/base/packed.hpp"
#include "storage/collective/rank_messages.hpp"
#include "storage/service/under_name.hpp"
#include "storage/service/unpublished_file.hpp"

namespace ooc::detail {

temporary_file::temporary_file(array_core& beside, std::uint64_t bytes, const std::string& purpose)
    : store_(beside.shared().local().file().store()) {
  process_group& group = beside.shared().group();
  try {
    if (group.size() == 1)
      make(beside, bytes, purpose);
    else
      share(group, beside, bytes, purpose);
  } catch (...) {
    if (made_) store_->abandon(file_);
    throw;
  }
}

temporary_file::~temporary_file() {
  if (made_) store_->abandon(file_);
}

void temporary_file::make(array_core& beside, std::uint64_t bytes, const std::string& purpose) {
  const std::string path = beside.current_path();  // its folder may have been renamed
  const std::string told = path + "." + purpose, passing = storage::passing_path(path);
  storage::new_file f;
  f.size = bytes;
  f.striping = beside.facts().stripes;
  f.mode = 0600;
  try {
    if (beside.shared().local().file().entry().in_place) {  // and its store holds no other file
      store_ = nameless_file_beside(path, bytes, told).core();
      file_ = store_->opened(store_->metadata().find(0));
      return;
    }
    storage::under_name(passing, told, [&] { file_ = store_->make(passing, f); });
    made_ = true;
  } catch (const error& e) {
    throw_if({e.code(),
              "a temporary file of " + std::to_string(bytes) + " bytes, '" + told + "', cannot be made: " + e.what()});
  }
}

void temporary_file::share(process_group& group, array_core& beside, std::uint64_t bytes, const std::string& purpose) {
  const std::string name = "'" + beside.facts().path + "." + purpose + "'";
  const auto told = group.together("making " + name, [&] {
    if (group.rank() != 0) return process_group::bytes{};
    make(beside, bytes, purpose);
    return storage::packer().number(file_.meta.capability ? 1 : 0).bytes(storage::encode_entry(file_.meta)).take();
  });
  group.together("opening " + name, [&] {
    if (group.rank() == 0) return process_group::bytes{};
    storage::unpacker u(told.front());
    const bool has_capability = u.number() != 0;  // which everybody must have for himself
    storage::entry e = storage::decode_entry(u.bytes());
    if (has_capability) e.capability = store_->metadata().find(e.id).capability;
    e.opened = storage::next_moment();
    file_ = store_->opened(std::move(e));
    return process_group::bytes{};
  });
}

}  // namespace ooc::detail
