// The effect of each call of the metadata service on the database, in the caller's name, and inside a transaction.
//
// local_metadata holds the database's mutex meanwhile, begins and ends the transaction, and records what was done.
// Copies are other handles to the same database, which closes with the last.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "storage/namespace/path_resolution.hpp"
#include "storage/namespace/reply_cache.hpp"
#include "storage/namespace/sqlite.hpp"
#include "storage/service/metadata_call.hpp"

namespace ooc::storage {

struct metadata_database;

class call_runner {
 protected:
  /// `call`: of servers, the call of a client that is being answered.
  call_runner(std::shared_ptr<metadata_database> db, credentials who, std::optional<client_call> call = std::nullopt)
      : db_(std::move(db)), who_(std::move(who)), call_(call) {}
  ~call_runner() = default;
  call_runner(const call_runner&) = default;

  struct transacted {
    sqlite::connection& c;
    path_resolution walk;
  };

  entry run(const calls::lookup& q, const transacted& t) const;
  entry run(const calls::open& q, const transacted& t) const;
  entry run(const calls::find& q, const transacted& t) const;
  folder_part run(const calls::list& q, const transacted& t) const;
  capability_ptr run(const calls::capability& q, const transacted& t) const;

  entry run(const calls::create& q, const transacted& t) const;
  nothing run(const calls::commit& q, const transacted& t) const;
  nothing run(const calls::abandon& q, const transacted& t) const;
  nothing run(const calls::forget& q, const transacted& t) const;
  nothing run(const calls::make_folder& q, const transacted& t) const;
  entry run(const calls::make& q, const transacted& t) const;
  entry run(const calls::link& q, const transacted& t) const;
  entry run(const calls::move& q, const transacted& t) const;
  entry run(const calls::remove& q, const transacted& t) const;
  entry run(const calls::unlink& q, const transacted& t) const;
  entry run(const calls::take_over& q, const transacted& t) const;

  bool run(const calls::set_size& q, const transacted& t) const;
  bool run(const calls::set_generation& q, const transacted& t) const;
  nothing run(const calls::set_in_progress& q, const transacted& t) const;
  nothing run(const calls::decide& q, const transacted& t) const;
  nothing run(const calls::roll_back& q, const transacted& t) const;
  entry run(const calls::change& q, const transacted& t) const;
  nothing run(const calls::set_attribute& q, const transacted& t) const;
  nothing run(const calls::remove_attribute& q, const transacted& t) const;

  const std::shared_ptr<metadata_database> db_;
  const credentials who_;
  const std::optional<client_call> call_;

 private:
  /// An entry as its writer has it.
  entry present(const place& where, const transacted& t) const;
  /// The mode of what is made, without the bits that the umask of a local caller takes.
  std::uint32_t masked(std::uint32_t mode) const;
  /// The file is being made by the caller: if he dies, who opens the store next finds it dead.
  void give_to_caller(sqlite::connection& c, file_id id) const;
  entry drop_name(const transacted& t, const path_resolution::slot& p) const;
  /// By a client, only the maker of a file commits or abandons it.
  void require_maker(sqlite::connection& c, file_id id) const;
  /// By a client, the caller needs permission to write the file.
  void require_writer(const transacted& t, file_id id, const char* doing) const;
};

}  // namespace ooc::storage
