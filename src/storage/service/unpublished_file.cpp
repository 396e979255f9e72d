#include "storage/service/unpublished_file.hpp"

#include <cstdio>
#include <random>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/base/log.hpp"
#include "storage/service/commits.hpp"
#include "storage/service/under_name.hpp"

namespace ooc::storage {

std::string passing_path(const std::string& path) {
  std::random_device random;
  char text[40];
  std::snprintf(text, sizeof text, ".ooc-%08x%08x", random(), random());
  return path.substr(0, path.find_last_of('/') + 1) + text;  // npos + 1 == 0: in the root
}

unpublished_file::unpublished_file(store_core& core, std::string path, std::string passing, const new_file& f,
                                   named when)
    : core_(core), path_(std::move(path)), passing_(std::move(passing)), named_(when == named::at_once) {
  under_name(passing_, path_, [&] { file = named_ ? core_.create(passing_, f) : core_.make(passing_, f); });
}

unpublished_file::~unpublished_file() {
  if (published_) return;
  try {
    if (named_)
      core_.remove(passing_);
    else
      core_.abandon(file);
  } catch (const std::exception& e) {
    detail::log_error("what was half made of '" + path_ + "' cannot be removed; `ooc rm` it later: " + e.what());
  }
}

void unpublished_file::publish(const std::map<std::string, std::string>& attributes, bool replace,
                               const std::map<std::string, std::string>& given) {
  under_name(passing_, path_, [&] {
    throw_if(file.file->sync());
    if (!std::exchange(named_, true)) core_.commit(file);
    for (const auto& [key, value] : attributes) core_.metadata().set_attribute(passing_, key, value);
    if (file.meta.commit) {
      const auto claim = core_.claim_unused(file.meta, "committed");
      file = core_.refresh(file);
      (void)commit(core_, {&file, 1}, given);
    }
    if (passing_ != path_) {
      if (replace)
        core_.replace(passing_, path_);
      else
        core_.metadata().rename(passing_, path_);
    }
    published_ = true;
    core_.sync_entry(file);
  });
}

void unpublished_file::take_over(const entry& of) {
  under_name(passing_, path_, [&] {
    throw_if(file.file->sync());
    if (of.commit && of.commit->number != 0) {
      if (!std::exchange(named_, true)) core_.commit(file);
      const auto claim = core_.claim_unused(file.meta, "committed");
      file = core_.refresh(file);
      file = commit(core_, {&file, 1}, of.commit->attributes).front();
      // Its stripe objects say so, too: of earlier commits, whose readers come here, they have nothing.
      throw_if(file.file->roll_back_objects());
    }
    storage::take_over(core_, file, of);
    published_ = true;
    core_.sync_entry(core_.refresh(file));  // or a stripe object that is lost later would count as never written
  });
}

}  // namespace ooc::storage
