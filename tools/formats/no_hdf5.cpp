// hdf5_file.hpp without libhdf5.
#include <cstdlib>

#include "base/command.hpp"
#include "formats/hdf5_file.hpp"

namespace ooc::tool {

struct hdf5_input::impl {};
struct hdf5_output::impl {};

namespace {

[[noreturn]] void refuse(const std::string& file) {
  throw usage_mistake("'" + file +
                      "': this ooc was built without HDF5; build it where libhdf5 (Debian: libhdf5-dev) "
                      "is found, or say --format npy or raw");
}

}  // namespace

std::vector<std::string> hdf5_dataset_names(const std::string& file) { refuse(file); }
std::vector<hdf5_group> hdf5_groups(const std::string& file) { refuse(file); }
std::map<std::string, std::string> added_attributes(const std::map<std::string, std::string>&,
                                                    std::map<std::string, std::string>) {
  std::abort();
}
hdf5_place hdf5_in_place(const std::string&, const hdf5_input&) { std::abort(); }
hdf5_input::hdf5_input(const std::string& file, const std::string&) { refuse(file); }
hdf5_input::~hdf5_input() = default;
const std::string& hdf5_input::dataset() const { std::abort(); }
const storage::array_description& hdf5_input::array() const { std::abort(); }
const std::string& hdf5_input::description() const { std::abort(); }
bool hdf5_input::is_stored_as_described() const { std::abort(); }
const storage::index& hdf5_input::chunk() const { std::abort(); }
const std::vector<std::byte>& hdf5_input::fill() const { std::abort(); }
const std::map<std::string, std::string>& hdf5_input::attributes() const { std::abort(); }
const std::vector<std::string>& hdf5_input::left_out() const { std::abort(); }
void hdf5_input::read(const storage::index&, const storage::index&, std::span<std::byte>) { std::abort(); }
void hdf5_input::check_sources(const storage::index&, const storage::index&, bool) { std::abort(); }
std::string hdf5_input::filled() const { std::abort(); }
void hdf5_input::check_memory(const detail::memory_limit&) const { std::abort(); }

hdf5_output::hdf5_output(const std::string&, const std::string& file, const hdf5_dataset&) { refuse(file); }
hdf5_output::~hdf5_output() = default;
void hdf5_output::write(const storage::index&, const storage::index&, std::span<const std::byte>) { std::abort(); }
void hdf5_output::finish() { std::abort(); }

}  // namespace ooc::tool
