// One client of the concurrent read and write experiment by MPI-IO: moves its own region of a file whose name the
// components of src/mpiio know.
//
//     mpi_regions FILE NODES      does what serve_regions.hpp says; the file has NODES I/O nodes
//
// Each client is a job of its own (MPI_COMM_SELF), so that it can be started like the others.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

#include "serve_regions.hpp"

namespace {

using papers::region;

class mpi_client {
 public:
  mpi_client(std::string name, unsigned nodes) : name_(std::move(name)), nodes_(nodes) {}
  ~mpi_client() {
    if (file_ != MPI_FILE_NULL) MPI_File_close(&file_);
  }
  mpi_client(const mpi_client&) = delete;
  mpi_client& operator=(const mpi_client&) = delete;

  void create(std::uint64_t bytes, std::uint64_t sf) {
    MPI_Info hints;
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "striping_unit", std::to_string(sf).c_str());
    require(
        MPI_File_open(MPI_COMM_SELF, name_.c_str(), MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, hints, &file_));
    MPI_Info_free(&hints);
    require(MPI_File_set_size(file_, static_cast<MPI_Offset>(bytes)));
    stripe_ = sf;
  }
  void write(const region& r, std::span<const std::byte> data) {
    MPI_Status status;
    require(MPI_File_write_at(open(), at(r), data.data(), words_of(r), MPI_UINT64_T, &status));
    require_all(r, status);
  }
  void read(const region& r, std::span<std::byte> data) {
    MPI_Status status;
    require(MPI_File_read_at(open(), at(r), data.data(), words_of(r), MPI_UINT64_T, &status));
    require_all(r, status);
  }
  /// As the client of the store (regions.cpp); who has not made the file takes the papers' stripe.
  void prepare() {
    std::uint64_t word = 0;
    for (int time = 0; time < 2; ++time)
      for (std::uint64_t stripe = 0; stripe < nodes_; ++stripe)
        read({stripe * stripe_, sizeof word}, std::as_writable_bytes(std::span(&word, 1)));
  }

 private:
  MPI_File open() {
    if (file_ == MPI_FILE_NULL)
      require(MPI_File_open(MPI_COMM_SELF, name_.c_str(), MPI_MODE_RDWR, MPI_INFO_NULL, &file_));
    return file_;
  }
  static MPI_Offset at(const region& r) { return static_cast<MPI_Offset>(r.offset); }
  static int words_of(const region& r) { return static_cast<int>(r.bytes / 8); }

  static void require(int result) {
    if (result == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(result, text, &length);
    throw std::runtime_error(text);
  }
  static void require_all(const region& r, const MPI_Status& status) {
    int words = 0;
    MPI_Get_count(&status, MPI_UINT64_T, &words);
    if (words != words_of(r)) throw std::runtime_error("not all bytes were transferred");
  }

  std::string name_;
  unsigned nodes_;
  std::uint64_t stripe_ = 64 * 1024;
  MPI_File file_ = MPI_FILE_NULL;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "mpi_regions: see the head of mpi_regions.cpp for its arguments\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  int status = 0;
  try {
    mpi_client client(argv[1], static_cast<unsigned>(std::atoi(argv[2])));
    papers::serve_regions(client, true);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "mpi_regions: %s\n", e.what());
    status = 1;
  }
  MPI_Finalize();
  return status;
}
