// Ranks that each read or write a box of columns of a row-major matrix: regions of a few bytes to some
// MiB, one in a row, between those of the other ranks.
//
//     independent   each rank sends its request for its columns to the nodes
//     ours          read_all(), write_all()
//     mpi_io        MPI_File_read_all(), MPI_File_write_all() through the components for MPI-IO, where they are built
//     contiguous    each rank transfers as many bytes at one place of the file
//
// In turns, whose order changes from round to round; the time is that of the last rank.  Writes count
// until they are acknowledged; each changes every byte, and is read back afterwards.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure/paired_ratio.hpp"
#include "measure/scratch.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/file.hpp"
#include "oocarray/mpi.hpp"
#include "oocarray/ooc_array.hpp"
#include "ranks/case.hpp"

namespace bench::ranks {
namespace {

using namespace ooc::literals;
using word = std::uint64_t;

constexpr std::uint64_t wanted_bytes = 256_MiB;
constexpr std::uint64_t regions[] = {64, 256, 1_KiB, 4_KiB, 16_KiB, 64_KiB, 256_KiB, 1_MiB, 4_MiB};
constexpr std::uint64_t small_region = 4_KiB;  ///< and below: over_independent

using ooc::access_kind;

class workload {
 public:
  workload(const options& o, ooc::process_group& all, std::uint64_t bytes)
      : store_(open_store(o, all)),
        mpi_name_((o.url.starts_with("ooc:") ? "" : "ooc:") + o.url + (o.url.ends_with('/') ? "" : "/") + "matrix"),
        bytes_(bytes),
        all_(all) {
    if (all.rank() == 0) {
      ooc::file f = ooc::file::create(store_, "matrix", {.size = bytes});
      std::vector<word> part(4_MiB / sizeof(word));
      for (std::uint64_t at = 0; at < bytes; at += 4_MiB) {
        fill(part, at / sizeof(word));
        f.write_at(at, std::as_bytes(std::span(part)));
      }
      f.sync();
    }
    all.barrier("filled");
  }

  /// The contents of the matrix; all of it is written anew after renew().
  word at(std::uint64_t i) const noexcept { return i * 0x9e3779b97f4a7c15u ^ writes_; }
  void fill(std::span<word> part, std::uint64_t first) const noexcept {
    for (std::size_t i = 0; i < part.size(); ++i) part[i] = at(first + i);
  }
  void renew() noexcept { ++writes_; }

  const ooc::store& store() const noexcept { return store_; }
  /// For MPI_File_open: ooc:local:FOLDER/matrix or ooc://HOST/matrix
  const std::string& mpi_name() const noexcept { return mpi_name_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

  /// The seconds that the slowest rank needs.
  template <class F>
  double timed(F&& f) {
    all_.barrier("begin");
    return seconds_of([&] {
      f();
      all_.barrier("end");
    });
  }

 private:
  static ooc::store open_store(const options& o, ooc::process_group& all) {
    if (all.rank() != 0) all.barrier("store");  // until it is made
    ooc::store s = ooc::store::open(o.url);
    if (all.rank() == 0) all.barrier("store");
    return s;
  }

  ooc::store store_;
  std::string mpi_name_;
  std::uint64_t bytes_;
  std::uint64_t writes_ = 0;
  ooc::process_group& all_;
};

#ifdef OOC_BENCH_MPI_IO
void require(int result, const char* what) {
  if (result != MPI_SUCCESS) throw std::runtime_error(std::string(what) + " failed");
}

/// The columns of one rank as a view of the file `name`, which all ranks open.
class mpi_columns {
 public:
  mpi_columns(const std::string& name, std::uint64_t rows, std::uint64_t piece, std::uint64_t row,
              std::uint64_t first) {
    require(MPI_File_open(MPI_COMM_WORLD, name.c_str(), MPI_MODE_RDWR, MPI_INFO_NULL, &file_), "MPI_File_open");
    MPI_Datatype column;
    MPI_Type_create_hvector(static_cast<int>(rows), static_cast<int>(piece), static_cast<MPI_Aint>(row), MPI_BYTE,
                            &column);
    MPI_Type_commit(&column);
    require(MPI_File_set_view(file_, static_cast<MPI_Offset>(first), MPI_BYTE, column, "native", MPI_INFO_NULL),
            "MPI_File_set_view");
    MPI_Type_free(&column);
  }
  ~mpi_columns() { MPI_File_close(&file_); }
  mpi_columns(const mpi_columns&) = delete;
  mpi_columns& operator=(const mpi_columns&) = delete;

  void transfer(access_kind kind, std::span<std::byte> memory) {
    const int n = static_cast<int>(memory.size());
    if (kind == access_kind::read)
      require(MPI_File_read_at_all(file_, 0, memory.data(), n, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_read_at_all");
    else
      require(MPI_File_write_at_all(file_, 0, memory.data(), n, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at_all");
  }

 private:
  MPI_File file_ = MPI_FILE_NULL;
};
#endif

/// A matrix over the same bytes in whose rows each rank has one piece.
class columns {
 public:
  columns(workload& w, ooc::runtime& rt, const std::shared_ptr<ooc::process_group>& all, std::uint64_t piece)
      : work_(w),
        file_(ooc::file::open(w.store(), "matrix", ooc::file_access::read_write)),
        width_(piece / sizeof(word)),
        row_(width_ * static_cast<std::size_t>(all->size())),
        rows_(w.bytes() / (row_ * sizeof(word))),
        first_(width_ * static_cast<std::size_t>(all->rank())),
        matrix_(rt, w.store(), "matrix", ooc::open, {rows_, row_}, {.group = all}),
        memory_(rows_ * width_) {
#ifdef OOC_BENCH_MPI_IO
    mpi_file_.emplace(w.mpi_name(), rows_, width_ * sizeof(word), row_ * sizeof(word), first_ * sizeof(word));
#endif
  }

  double independent(access_kind kind) {
    return checked(kind, [&] { transfer_alone(kind); });
  }
  double ours(access_kind kind) {
    const ooc::box<2> mine{{0, first_}, {rows_, first_ + width_}};
    return checked(kind, [&] {
      if (kind == access_kind::read)
        matrix_.read_all(mine, memory_);
      else
        matrix_.write_all(mine, memory_);
    });
  }
#ifdef OOC_BENCH_MPI_IO
  double mpi_io(access_kind kind) {
    return checked(kind, [&] { mpi_file_->transfer(kind, bytes()); });
  }
#endif
  double contiguous(access_kind kind) {
    const std::uint64_t begin = first_ * rows_;
    if (kind == access_kind::read) return work_.timed([&] { file_.read_at(begin * sizeof(word), bytes()); });
    work_.renew();
    work_.fill(memory_, begin);
    return work_.timed([&] { file_.write_at(begin * sizeof(word), bytes()); });
  }

 private:
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(memory_)); }

  void transfer_alone(access_kind kind) {
    const ooc::nested_request r{.file_offset = first_ * sizeof(word),
                                .run = width_ * sizeof(word),
                                .depth = 1,
                                .levels = {{{rows_, row_ * sizeof(word), width_ * sizeof(word)}}}};
    if (kind == access_kind::read)
      file_.read(r, bytes());
    else
      file_.write(r, bytes());
  }

  template <class F>
  double checked(access_kind kind, F&& f) {
    if (kind == access_kind::write) {
      work_.renew();
      for (std::size_t i = 0; i < rows_; ++i)
        work_.fill(std::span(memory_).subspan(i * width_, width_), i * row_ + first_);
    } else {
      forget();
    }
    const double seconds = work_.timed(f);
    if (kind == access_kind::write) {
      forget();
      transfer_alone(access_kind::read);
    }
    for (std::size_t i = 0; i < rows_; ++i)
      for (std::size_t j = 0; j < width_; ++j)
        if (memory_[i * width_ + j] != work_.at(i * row_ + first_ + j))
          throw std::runtime_error("a rank was given other bytes than its own");
    return seconds;
  }
  void forget() { std::fill(memory_.begin(), memory_.end(), 0); }

  workload& work_;
  ooc::file file_;
  std::size_t width_, row_, rows_, first_;  // in elements
  ooc::ooc_array<word, 2> matrix_;
  std::vector<word> memory_;
#ifdef OOC_BENCH_MPI_IO
  std::optional<mpi_columns> mpi_file_;
#endif
};

struct times {
  double ours = 0, mpi_io = 0, independent = 0, contiguous = 0;
};

/// Two runs of each, whose better one counts: a disk's own cache favours what was read a moment
/// ago.
times in_turns(columns& c, access_kind kind, bool ours_first) {
  times best;
  const auto note = [](double& time, double seconds) { time = time == 0 ? seconds : std::min(time, seconds); };
  for (int run = 0; run < 2; ++run) {
    if (ours_first) note(best.ours, c.ours(kind));
#ifdef OOC_BENCH_MPI_IO
    note(best.mpi_io, c.mpi_io(kind));
#endif
    note(best.independent, c.independent(kind));
    if (!ours_first) note(best.ours, c.ours(kind));
    note(best.contiguous, c.contiguous(kind));
  }
  return best;
}

struct figures {
  figures(const std::string& kind, const std::string& piece)
      : over_independent(kind + "over_independent_" + piece),
        over_contiguous(kind + "over_contiguous_" + piece),
        mpi_io_of_ours(kind + "mpi_io_of_native_" + piece) {}
  paired_ratio over_independent, over_contiguous, mpi_io_of_ours;
};

std::string text_of(std::uint64_t bytes) {
  if (bytes >= 1_MiB) return std::to_string(bytes / 1_MiB) + "MiB";
  if (bytes >= 1_KiB) return std::to_string(bytes / 1_KiB) + "KiB";
  return std::to_string(bytes) + "B";
}

/// The figure whose median is the smallest, under another name.
json least(const std::string& name, const std::map<std::uint64_t, figures>& all, paired_ratio figures::*which,
           std::uint64_t largest_region) {
  const figures* found = nullptr;
  for (const auto& [piece, f] : all)
    if (piece <= largest_region && (!found || (f.*which).middle() < (found->*which).middle())) found = &f;
  json one;
  (found->*which).put(one);
  json renamed;
  const char* suffix[] = {"", "_min", "_max"};
  std::size_t i = 0;
  for (const auto& item : one.items()) renamed[name + suffix[i++]] = item.value();
  return renamed;
}

}  // namespace

json collective(const options& o) {
  const auto all = ooc::mpi_group(MPI_COMM_WORLD);
  const std::uint64_t row = 4_MiB * static_cast<std::uint64_t>(all->size());
  workload work(o, *all, std::max<std::uint64_t>(1, wanted_bytes / row) * row);
  ooc::runtime rt({.memory = o.memory_or(512_MiB)});
  struct kind_of_transfer {
    access_kind kind;
    std::string prefix;
    std::map<std::uint64_t, figures> by_region;
  };
  kind_of_transfer kinds[] = {{access_kind::read, "", {}}, {access_kind::write, "write_", {}}};
  for (kind_of_transfer& k : kinds)
    for (const std::uint64_t piece : regions) k.by_region.emplace(piece, figures(k.prefix, text_of(piece)));
  for (unsigned round = 0; round < o.rounds_or(7); ++round)
    for (const std::uint64_t piece : regions) {
      columns c(work, rt, all, piece);
      for (kind_of_transfer& k : kinds) {
        const times t = in_turns(c, k.kind, round % 2 == 0);
        if (all->rank() != 0) continue;
        figures& f = k.by_region.at(piece);
        f.over_independent.add(t.independent, t.ours);
        f.over_contiguous.add(t.contiguous, t.ours);
        if (t.mpi_io > 0) f.mpi_io_of_ours.add(t.ours, t.mpi_io);
      }
    }
  if (all->rank() != 0) return {};
  json result{{"bytes", work.bytes()}, {"memory_per_rank", rt.memory()}};
  for (const kind_of_transfer& k : kinds) {
    result.update(least(k.prefix + "over_independent", k.by_region, &figures::over_independent, small_region));
    result.update(least(k.prefix + "worst_over_independent", k.by_region, &figures::over_independent, row));
    result.update(least(k.prefix + "over_contiguous", k.by_region, &figures::over_contiguous, small_region));
    for (const auto& [piece, f] : k.by_region) {
      f.over_independent.put(result);
      f.over_contiguous.put(result);
#ifdef OOC_BENCH_MPI_IO
      f.mpi_io_of_ours.put(result);
#endif
    }
  }
  return result;
}

}  // namespace bench::ranks
