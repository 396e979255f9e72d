// The programs that belong to this one.
#pragma once

#include <filesystem>
#include <string>

namespace ooc::cluster {

/// The program `name` ("ooc-iod"): beside the running program, in ../libexec/oocarray or ../bin of
/// an installation, in the sibling folders of a build tree, or in PATH.  Throws usage_error
/// (errc::invalid_request) that tells where it was looked for.
std::filesystem::path find_program(const std::string& name);

}  // namespace ooc::cluster
