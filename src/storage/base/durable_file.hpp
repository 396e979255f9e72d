// Files and folders that must be there after a loss of power, and names that no two stores stripe object.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

namespace ooc::storage {

/// A random identity, "xxxxxxxx-xxxx-4xxx-xxxx-xxxxxxxxxxxx".  Throws io_error.
std::string new_uuid();

/// As new_uuid() writes it.
std::string uuid_text(const std::array<std::uint8_t, 16>& id);

/// The names in the folder become durable.  Throws io_error.
void sync_folder(const std::filesystem::path& folder);

/// Makes or replaces a small file; its bytes are durable on return, its name after sync_folder().
/// Throws io_error.
void write_durably(const std::filesystem::path& file, const std::string& text);

}  // namespace ooc::storage
