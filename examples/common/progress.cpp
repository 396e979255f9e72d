#include "common/progress.hpp"
namespace examples {
struct progress::state {};
progress::progress(const std::string&, std::uint64_t, bool) {}
progress::~progress() = default;
void progress::step(std::uint64_t) {}
}  // namespace examples
