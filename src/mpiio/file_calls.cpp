// The calls of file_handle.h: no exception passes them.
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "mpiio/error_class.hpp"
#include "mpiio/file_handle.h"
#include "mpiio/file_name.hpp"
#include "mpiio/kept_stores.hpp"
#include "mpiio/shared_pointer.hpp"
#include "mpiio/stored_file.hpp"
#include "oocarray/mpi.hpp"
#include "storage/base/log.hpp"

using namespace ooc;
using namespace ooc::mpiio;

namespace {

struct open_file : ooc_mpiio_file {
  std::string name;
  store of;
  std::shared_ptr<stored_file> file;
  std::atomic<int> failed{MPI_SUCCESS};
  bool noting = false;
  std::vector<ooc_mpiio_extent> noted;
  int not_noted = MPI_SUCCESS;           ///< why not all was, where OMPIO drops the error
  std::shared_ptr<process_group> ranks;  ///< made by the first transfer that all make together
  std::string path;                      ///< in the store, as the program gave it
  std::unique_ptr<shared_pointer> pointer;

  open_file(std::string n, store s, std::string p) : name(std::move(n)), of(std::move(s)), path(std::move(p)) {}
};

struct started_transfer : ooc_mpiio_transfer {
  std::shared_ptr<transfer> running;  // null: it did not begin
  int failed = MPI_SUCCESS;
};

open_file& opened(ooc_mpiio_file* f) { return *static_cast<open_file*>(f); }

/// MPI_SUCCESS, or the class of what `call` threw, of which a line says more unless it is not `said`.
template <class Call>
int guarded(const char* doing, const char* name, Call&& call, bool said = true) noexcept {
  try {
    call();
    return MPI_SUCCESS;
  } catch (...) {
    try {
      return said ? report((std::string(doing) + " " + name).c_str()) : report(nullptr);
    } catch (...) {
      return MPI_ERR_NO_MEM;
    }
  }
}

int close_stores(MPI_Comm, int, void* stores, void*) {
  static_cast<kept_stores*>(stores)->close();
  return MPI_SUCCESS;
}

/// MPI_Finalize begins with deleting the attributes of MPI_COMM_SELF.
void keep_until_finalize(kept_stores& stores) {
  int begun = 0, over = 0, key = MPI_KEYVAL_INVALID;
  MPI_Initialized(&begun);
  MPI_Finalized(&over);
  if (!begun || over) return;
  if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, close_stores, &key, nullptr) != MPI_SUCCESS) return;
  if (MPI_Comm_set_attr(MPI_COMM_SELF, key, &stores) == MPI_SUCCESS) stores.keep();
  MPI_Comm_free_keyval(&key);
}

/// Never destroyed: a program that ends without MPI_Finalize, or a child of it, leaves the stores to the kernel.
kept_stores& stores() {
  static kept_stores* const all = [] {
    auto* const made = new kept_stores;
    keep_until_finalize(*made);
    return made;
  }();
  return *all;
}

/// 0: not given, or not to be had, which a line says.
std::uint64_t hint(const char* name, const char* value, std::uint64_t least, std::uint64_t most) {
  if (value == nullptr) return 0;
  std::uint64_t n = 0;
  const char* end = value + std::strlen(value);
  const auto r = std::from_chars(value, end, n);
  if (r.ec == std::errc() && r.ptr == end && n >= least && n <= most) return n;
  detail::log_error("MPI-IO: the hint " + std::string(name) + "=" + value + " is ignored: it can be " +
                    std::to_string(least) + " to " + std::to_string(most));
  return 0;
}

striping striping_of(const ooc_mpiio_opening& o, std::uint32_t nodes) {
  striping s;
  s.nn = static_cast<std::uint32_t>(hint("striping_factor", o.striping_factor, 1, nodes));
  s.sf = hint("striping_unit", o.striping_unit, 1, std::uint64_t{1} << 40);
  s.sn = static_cast<std::uint32_t>(hint("start_iodevice", o.start_iodevice, 0, nodes - 1));
  return s;
}

std::span<const ooc_mpiio_extent> as_span(const ooc_mpiio_extent* extents, int count) {
  return {extents, static_cast<std::size_t>(count)};
}

std::shared_ptr<transfer> begin(open_file& f, int write, std::span<const ooc_mpiio_extent> extents, int atomic) {
  return write ? f.file->write(extents, atomic != 0) : f.file->read(extents, atomic != 0);
}

const char* doing(int write) { return write ? "writing" : "reading"; }

ssize_t transfer_now(ooc_mpiio_file* handle, int write, const ooc_mpiio_extent* extents, int count, int atomic) {
  open_file& f = opened(handle);
  ssize_t bytes = f.noting ? 0 : -1;
  if (f.noting) {
    const int error =
        guarded(doing(write), f.name.c_str(), [&] { f.noted.insert(f.noted.end(), extents, extents + count); });
    for (int i = 0; i < count; ++i) bytes += static_cast<ssize_t>(extents[i].length);
    if (error == MPI_SUCCESS) return bytes;
    f.not_noted = error;
    return -1;
  }
  const int error = guarded(doing(write), f.name.c_str(), [&] {
    bytes = static_cast<ssize_t>(begin(f, write, as_span(extents, count), atomic)->wait());
  });
  int none = MPI_SUCCESS;
  if (error != MPI_SUCCESS) f.failed.compare_exchange_strong(none, error);
  return bytes;
}

ooc_mpiio_transfer* start(ooc_mpiio_file* handle, int write, const ooc_mpiio_extent* extents, int count, int atomic) {
  open_file& f = opened(handle);
  auto t = std::unique_ptr<started_transfer>(new (std::nothrow) started_transfer);
  if (!t) return nullptr;
  t->calls = f.calls;
  t->failed =
      guarded(doing(write), f.name.c_str(), [&] { t->running = begin(f, write, as_span(extents, count), atomic); });
  return t.release();
}

int ended(const ooc_mpiio_transfer* handle, ssize_t* bytes, int* error) {
  const auto& t = static_cast<const started_transfer&>(*handle);
  *bytes = 0;
  *error = t.failed;
  if (!t.running) return 1;
  if (!t.running->has_ended()) return 0;
  *error = guarded("a transfer", "that was started before", [&] { *bytes = static_cast<ssize_t>(t.running->wait()); });
  return 1;
}

void release(ooc_mpiio_transfer* t) { delete static_cast<started_transfer*>(t); }

void begin_together(ooc_mpiio_file* handle) {
  opened(handle).noting = true;
  opened(handle).noted.clear();
  opened(handle).not_noted = MPI_SUCCESS;
}

int together(ooc_mpiio_file* handle, MPI_Comm communicator, int write, int atomic, int failed, std::size_t* bytes) {
  open_file& f = opened(handle);
  f.noting = false;
  int error = guarded(doing(write), f.name.c_str(), [&] {
    // A rank of an MPI program waits for the others as long as it takes.
    if (!f.ranks) f.ranks = mpi_group(communicator, {.deadline = std::chrono::hours(24 * 365), .notice_after = {}});
  });
  if (error != MPI_SUCCESS) return error;
  const bool says = f.ranks->rank() == 0;
  const auto transfer = [&] {
    // A rank for which memory is wanting may end alone.  Its group ends with it, which tells the others not to wait;
    // they give theirs up, and the next time all make another one.
    std::shared_ptr<process_group> ranks = std::move(f.ranks);
    try {
      ranks->together("the extents of '" + f.name + "'", [&] {
        if (failed != MPI_SUCCESS || f.not_noted != MPI_SUCCESS)
          throw io_error(std::make_error_code(std::errc::not_enough_memory), "Open MPI");
        return process_group::bytes{};
      });
      *bytes = f.file->transfer_together(*ranks, write ? access_kind::write : access_kind::read, f.noted, atomic != 0);
    } catch (const ooc::error& e) {
      if (e.code() != std::errc::connection_aborted) f.ranks = std::move(ranks);
      throw;
    }
    f.ranks = std::move(ranks);
  };
  // The exception is mostly the same on all ranks: one of them says it.
  error = guarded(doing(write), f.name.c_str(), transfer, says);
  f.noted.clear();
  return error;
}

int share_pointer(ooc_mpiio_file* handle, std::uint64_t token) {
  open_file& f = opened(handle);
  return guarded("the shared pointer of", f.name.c_str(),
                 [&] { f.pointer = std::make_unique<shared_pointer>(f.of.core(), f.path, token); });
}

int advance_pointer(ooc_mpiio_file* handle, std::uint64_t bytes, std::uint64_t* before) {
  open_file& f = opened(handle);
  return guarded("the shared pointer of", f.name.c_str(),
                 [&] { *before = bytes == 0 ? f.pointer->position() : f.pointer->advance(bytes); });
}

int move_pointer(ooc_mpiio_file* handle, std::uint64_t position) {
  open_file& f = opened(handle);
  return guarded("the shared pointer of", f.name.c_str(), [&] { f.pointer->move_to(position); });
}

int remove_pointer(ooc_mpiio_file* handle) {
  open_file& f = opened(handle);
  return guarded("removing the shared pointer of", f.name.c_str(), [&] {
    if (f.pointer) f.pointer->remove();
  });
}

constexpr ooc_mpiio_calls calls{transfer_now, start,         ended,           release,      begin_together,
                                together,     share_pointer, advance_pointer, move_pointer, remove_pointer};

template <class Open>
int open_with(const ooc_mpiio_opening* o, ooc_mpiio_file** out, Open&& open) {
  return guarded("opening", o->name, [&] {
    const file_name n = parse_file_name(o->name);
    auto f = stores().in_store(n.store, [&](const store& s) {
      auto made = std::make_unique<open_file>(o->name, s, n.path);
      made->calls = &calls;
      made->file = open(s, n.path);
      return made;
    });
    *out = f.release();
  });
}

}  // namespace

int ooc_mpiio_is_ours(const char* name) { return is_file_name(name); }

int ooc_mpiio_open_first(const ooc_mpiio_opening* o, ooc_mpiio_file** out, std::uint64_t* id) {
  return open_with(o, out, [&](const store& s, const std::string& path) {
    auto f = stored_file::open(s, {.path = path,
                                   .create = o->create != 0,
                                   .exclusive = o->exclusive != 0,
                                   .write = o->write != 0,
                                   .striping = striping_of(*o, s.nodes())});
    *id = f->id();
    return f;
  });
}

int ooc_mpiio_open_as_first(const ooc_mpiio_opening* o, std::uint64_t id, ooc_mpiio_file** out) {
  return open_with(o, out,
                   [&](const store& s, const std::string&) { return stored_file::open_known(s, id, o->write != 0); });
}

int ooc_mpiio_size(ooc_mpiio_file* f, std::uint64_t* size) {
  return guarded("the size of", opened(f).name.c_str(), [&] { *size = opened(f).file->size(); });
}

int ooc_mpiio_resize(ooc_mpiio_file* f, std::uint64_t size) {
  return guarded("resizing", opened(f).name.c_str(), [&] { opened(f).file->resize(size); });
}

void ooc_mpiio_forget_size(ooc_mpiio_file* f) { opened(f).file->forget_size(); }

int ooc_mpiio_sync(ooc_mpiio_file* f) {
  return guarded("syncing", opened(f).name.c_str(), [&] { opened(f).file->sync(); });
}

int ooc_mpiio_take_failure(ooc_mpiio_file* f) { return opened(f).failed.exchange(MPI_SUCCESS); }

int ooc_mpiio_leave(ooc_mpiio_file* f) {
  return guarded("closing", opened(f).name.c_str(), [&] { opened(f).file->leave(); });
}

int ooc_mpiio_close(ooc_mpiio_file* f, int last) {
  const std::unique_ptr<open_file> closed(&opened(f));
  if (!last) return MPI_SUCCESS;
  return guarded("closing", closed->name.c_str(), [&] { closed->file->give_back(); });
}

int ooc_mpiio_remove(const char* name) {
  return guarded("removing", name, [&] {
    const file_name n = parse_file_name(name);
    stores().in_store(n.store, [&](const store& s) { s.remove(n.path); });
  });
}

void ooc_mpiio_say(const char* line) { detail::log_error(line); }
