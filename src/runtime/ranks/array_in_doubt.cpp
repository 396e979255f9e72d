#include "runtime/ranks/array_in_doubt.hpp"

#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "storage/base/packed.hpp"
#include "storage/service/striped_file.hpp"

namespace ooc::detail {
namespace {

using bytes = process_group::bytes;

class refusing_node : public storage::io_service {
 public:
  explicit refusing_node(failure why) : why_(std::move(why)) {}

  void answer(storage::node_call, storage::completion done) override { done(why_); }
  std::string name() const override { return "of an array in doubt"; }
  io_stats stats() const override { return {}; }
  std::uint64_t staging_bytes() const override { return 0; }

 private:
  const failure why_;
};

}  // namespace

void refuse_all(shared_array& a, const failure& why) {
  array_file& f = a.local().file();
  const storage::striped_file::nodes none(f.store()->nodes().size(), std::make_shared<refusing_node>(why));
  f.use({f.entry(), std::make_shared<const storage::striped_file>(f.striped()->shape_handle(), none)});
  a.local().attach(array_geometry(a.geometry()));
}

void or_refuse_all(std::span<shared_array* const> arrays, const std::string& follows, const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    const auto* const known = dynamic_cast<const error*>(&e);
    const failure why{known ? known->code() : std::make_error_code(std::errc::not_enough_memory),
                      std::string(e.what()) + "; " + follows};
    for (shared_array* a : arrays) refuse_all(*a, why);
    throw io_error::in_full(why.code, why.what);
  }
}

bytes changed_by_rank_0(std::span<shared_array* const> arrays, const std::string& call, const std::string& follows,
                        const std::function<bytes()>& change) {
  process_group& group = arrays.front()->group();
  std::exception_ptr failed;
  const auto outcome = [&] {
    storage::packer told;
    if (group.rank() != 0) return told.take();
    try {
      const bytes result = change();
      told.number(1).bytes(result);
    } catch (const std::exception&) {
      failed = std::current_exception();
      told.number(0);
    }
    return told.take();
  };
  std::vector<bytes> all;
  or_refuse_all(arrays, follows, [&] {
    // Who gives up in the meeting before this one, just as rank 0 passes it, is missed here.
    group.barrier("all ranks for " + call);
    all = group.together(call, outcome);
  });
  storage::unpacker told(all.front());
  if (told.number() == 0)  // which all know
    group.together("failure of " + call, [&] {
      if (failed) std::rethrow_exception(failed);
      return bytes{};
    });
  const auto result = told.bytes();
  return {result.begin(), result.end()};
}

}  // namespace ooc::detail
