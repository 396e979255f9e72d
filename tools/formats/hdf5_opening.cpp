#include "formats/hdf5_opening.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "formats/hdf5_signature.hpp"
#include "oocarray/error.hpp"
#include "storage/base/file_descriptor.hpp"

namespace ooc::tool::hdf5 {

namespace {

using storage::file_descriptor;

constexpr unsigned being_written = 1, being_written_swmr = 4;  // in the superblock

file_descriptor opened(const std::string& file) {
  file_descriptor f(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe is not waited for
  struct ::stat s {};
  if (f && ::fstat(f.get(), &s) == 0 && S_ISREG(s.st_mode)) return f;
  throw io_error({!f                   ? errno
                  : S_ISDIR(s.st_mode) ? EISDIR
                                       : EINVAL,
                  std::generic_category()},
                 "'" + file + "' cannot be read");
}

/// The superblock's flags on the processes that have the file open; versions before 3 have none.
unsigned flags_of(int file) {
  const auto at = hdf5_superblock(file);
  std::array<unsigned char, 12> head{};
  if (!at || ::pread(file, head.data(), head.size(), static_cast<off_t>(*at)) != static_cast<ssize_t>(head.size()))
    return 0;
  return head[8] >= 3 ? head[11] : 0;
}

/// The errno with which a lock for reading, as libhdf5 takes it, is refused now.
int lock_error(int file) {
  const int e = ::flock(file, LOCK_SH | LOCK_NB) == 0 ? 0 : errno;
  if (e == 0) static_cast<void>(::flock(file, LOCK_UN));
  return e;
}

/// Whether somebody on this machine has the file open for writing, without a lock; false, too, where it cannot be
/// known.
bool has_writer(int file) {
  if (::fcntl(file, F_SETSIG, SIGURG) != 0) return false;  // who opens it this very moment must not end us by SIGIO
  if (::fcntl(file, F_SETLEASE, F_RDLCK) != 0) return errno == EAGAIN;
  static_cast<void>(::fcntl(file, F_SETLEASE, F_UNLCK));
  return false;
}

[[noreturn]] void refuse_unopened(const std::string& file, int descriptor, const std::string& said) {
  const std::string name = "'" + file + "'";
  const int lock = lock_error(descriptor);
  if (lock == EWOULDBLOCK || lock == EACCES || has_writer(descriptor))
    throw usage_error(errc::busy, name + " is open for writing in another program: wait until that has closed it");
  if (lock != 0)
    throw usage_error(errc::invalid_request, name + " lies on a file system without file locks (" +
                                                 std::strerror(lock) +
                                                 "): where nobody is writing to it, set HDF5_USE_FILE_LOCKING=FALSE");
  if (flags_of(descriptor) & (being_written | being_written_swmr))
    throw usage_error(
        errc::invalid_request,
        name +
            " is marked as open for writing, though nobody on this machine writes to it: its writer has died, or "
            "runs on another host; where nobody has it open, `h5clear -s " +
            file + "` takes the mark away");
  if (said.find("driver should be used") != said.npos)
    throw usage_error(errc::invalid_request,
                      name + " is one part of what another driver of HDF5 has spread over several files (" + said +
                          "): make one file of them with `h5repart` or h5repack");
  throw usage_error(errc::invalid_request,
                    name + " cannot be opened as HDF5: " + said + "; where it was cut short, copy it again");
}

}  // namespace

handle open_for_reading(const std::string& file) {
  be_quiet();
  const file_descriptor f = opened(file);
  if (!hdf5_superblock(f.get()))
    throw usage_error(
        errc::invalid_request,
        "'" + file +
            "' is no HDF5 file: its signature is missing; NetCDF files of the classic format become one with "
            "`nccopy -k nc4`, and --format says what else it is");
  handle h(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  std::string said = h ? "" : last_error();
  if (!h && (flags_of(f.get()) & being_written_swmr)) {
    h = handle(H5Fopen(file.c_str(), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, H5P_DEFAULT), H5Fclose);
    if (!h) said = last_error();
  }
  if (!h) refuse_unopened(file, f.get(), said);
  return h;
}

}  // namespace ooc::tool::hdf5
