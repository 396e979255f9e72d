// random_io NAME [ROUNDS]: random MPI-IO on one file beside a model of it, the same one on all ranks.
//
// Views with holes, etypes that are longer than a stripe, memory with holes and negative displacements, requests of
// nothing, pieces that several ranks write (all the same there), sizes that change, in all ways of reading and writing.
// The seed is printed, and taken from OOC_TEST_SEED.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

int rank = 0, ranks = 1;
std::uint64_t seed = 0;
long round_number = 0;
std::string doing;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "random_io, OOC_TEST_SEED=%llu, %d ranks: round %ld, rank %d: %s: %s\n",
               static_cast<unsigned long long>(seed), ranks, round_number, rank, doing.c_str(), what.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int n = 0;
  MPI_Error_string(code, text, &n);
  fail(std::string(call) + ": " + text);
}
#define DO(call) check(call, #call)

using engine = std::mt19937_64;
std::uint64_t between(engine& e, std::uint64_t low, std::uint64_t high) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(e);
}
bool one_in(engine& e, std::uint64_t n) { return between(e, 1, n) == 1; }

struct block {
  std::uint64_t offset, bytes;
};

MPI_Datatype type_of(const std::vector<MPI_Aint>& offsets, const std::vector<int>& lengths, MPI_Aint lower,
                     MPI_Aint extent) {
  MPI_Datatype blocks, type;
  DO(MPI_Type_create_hindexed(static_cast<int>(offsets.size()), lengths.data(), offsets.data(), MPI_BYTE, &blocks));
  DO(MPI_Type_create_resized(blocks, lower, extent, &type));
  DO(MPI_Type_commit(&type));
  DO(MPI_Type_free(&blocks));
  return type;
}

struct view {
  std::uint64_t begin = 0, etype = 1;
  std::vector<block> tile{{0, 1}};
  std::uint64_t extent = 1, size = 1;

  static view random(engine& e) {
    view v;
    constexpr std::uint64_t etypes[] = {1, 1, 4, 8, 24, 4096, 10000};
    v.etype = etypes[between(e, 0, 6)];
    v.begin = one_in(e, 3) ? 0 : between(e, 0, 5000);
    v.tile.clear();
    v.size = 0;
    std::uint64_t at = 0;
    const std::uint64_t most = std::max<std::uint64_t>(1, 3000 / v.etype);
    for (std::uint64_t n = between(e, 1, 5); n > 0; --n) {
      if (!one_in(e, 3)) at += between(e, 0, most) * v.etype;
      const std::uint64_t bytes = between(e, 1, most) * v.etype;
      v.tile.push_back({at, bytes});
      v.size += bytes;
      at += bytes;
    }
    v.extent = at + (one_in(e, 2) ? 0 : between(e, 0, most) * v.etype);
    return v;
  }

  std::uint64_t place(std::uint64_t byte) const {
    std::uint64_t at = begin + byte / size * extent;
    byte %= size;
    for (const block& b : tile) {
      if (byte < b.bytes) return at + b.offset + byte;
      byte -= b.bytes;
    }
    fail("the test is wrong");
  }

  void set(MPI_File f) const {
    MPI_Datatype of, file;
    DO(MPI_Type_contiguous(static_cast<int>(etype), MPI_BYTE, &of));
    DO(MPI_Type_commit(&of));
    std::vector<MPI_Aint> offsets;
    std::vector<int> lengths;
    for (const block& b : tile) {
      offsets.push_back(static_cast<MPI_Aint>(b.offset));
      lengths.push_back(static_cast<int>(b.bytes));
    }
    file = type_of(offsets, lengths, 0, static_cast<MPI_Aint>(extent));
    DO(MPI_File_set_view(f, static_cast<MPI_Offset>(begin), of, file, "native", MPI_INFO_NULL));
    DO(MPI_Type_free(&of));
    DO(MPI_Type_free(&file));
  }
};

/// The caller's memory for so many bytes: where each of them is, what it is called by, and what surrounds it.
struct memory {
  std::vector<unsigned char> all;
  std::vector<std::size_t> place;
  MPI_Datatype type = MPI_BYTE;
  int count = 0;
  std::size_t origin = 0;

  memory(engine& e, std::uint64_t bytes) {
    if (bytes == 0 || one_in(e, 3)) {
      count = static_cast<int>(bytes);
      for (std::uint64_t i = 0; i < bytes; ++i) place.push_back(i);
      all.resize(bytes + 1);
      return;
    }
    // Elements of up to four pieces; some of them begin before the address that is passed.
    count = static_cast<int>(bytes % 3 == 0 ? 3 : bytes % 2 == 0 ? 2 : 1);
    const std::uint64_t element = bytes / static_cast<std::uint64_t>(count);
    std::vector<MPI_Aint> offsets;
    std::vector<int> lengths;
    MPI_Aint at = one_in(e, 2) ? 0 : -static_cast<MPI_Aint>(between(e, 1, 600));
    const MPI_Aint first = at;
    for (std::uint64_t left = element; left > 0;) {
      const std::uint64_t n = offsets.size() == 3 ? left : between(e, 1, left);
      at += static_cast<MPI_Aint>(one_in(e, 2) ? 0 : between(e, 1, 300));
      offsets.push_back(at);
      lengths.push_back(static_cast<int>(n));
      at += static_cast<MPI_Aint>(n);
      left -= n;
    }
    const MPI_Aint extent = at - first + static_cast<MPI_Aint>(between(e, 0, 50));
    type = type_of(offsets, lengths, first, extent);
    origin = 1000;
    for (int c = 0; c < count; ++c)
      for (std::size_t p = 0; p < offsets.size(); ++p)
        for (int i = 0; i < lengths[p]; ++i)
          place.push_back(static_cast<std::size_t>(static_cast<MPI_Aint>(origin) + c * extent + offsets[p] + i));
    all.resize(origin + static_cast<std::size_t>(extent) * static_cast<std::size_t>(count) + 1000);
  }
  ~memory() {
    if (type != MPI_BYTE) MPI_Type_free(&type);
  }
  memory(const memory&) = delete;
  void* address() { return all.data() + origin; }
};

constexpr unsigned char untouched = 0xEE;

class random_file {
 public:
  random_file(std::string name, engine& e)
      : name_(std::move(name)), e_(e), views_(static_cast<std::size_t>(ranks)), at_(static_cast<std::size_t>(ranks)) {
    if (rank == 0) MPI_File_delete(name_.c_str(), MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Info_create(&info_);
    MPI_Info_set(info_, "striping_unit", one_in(e_, 2) ? "4096" : "1000");
    open(MPI_MODE_CREATE | MPI_MODE_RDWR);
  }
  ~random_file() {
    MPI_File_close(&f_);
    MPI_Info_free(&info_);
  }

  void round() {
    switch (between(e_, 0, 15)) {
      case 0: return set_views();
      case 1: return resize();
      case 2: return reopen();
      case 3: return seek();
      case 4:
        doing = "atomic mode";
        DO(MPI_File_set_atomicity(f_, one_in(e_, 2)));
        return;
      case 5: return ordered();
      default: return transfer();
    }
  }

  void look_at_all() {
    doing = "the whole file";
    MPI_Offset size = -1;
    DO(MPI_File_get_size(f_, &size));
    if (static_cast<std::uint64_t>(size) != model_.size())
      fail("it has " + std::to_string(size) + " bytes, not " + std::to_string(model_.size()));
    view plain;
    plain.set(f_);
    std::vector<unsigned char> all(model_.size() + 1);
    MPI_Status s;
    DO(MPI_File_read_at(f_, 0, all.data(), static_cast<int>(all.size()), MPI_BYTE, &s));
    expect_count(s, model_.size());
    for (std::size_t i = 0; i < model_.size(); ++i)
      if (all[i] != model_[i]) fail_at(i, all[i]);
    for (view& v : views_) v = plain;
    std::fill(at_.begin(), at_.end(), 0);
    MPI_Barrier(MPI_COMM_WORLD);
  }

 private:
  struct piece {
    std::uint64_t from = 0, bytes = 0;  // of the view
  };

  view& mine() { return views_[static_cast<std::size_t>(rank)]; }

  void open(int mode) {
    doing = "opening";
    DO(MPI_File_open(MPI_COMM_WORLD, name_.c_str(), mode, info_, &f_));
    for (view& v : views_) v = {};
    std::fill(at_.begin(), at_.end(), mode & MPI_MODE_APPEND ? model_.size() : 0);
    MPI_Offset now = -1;
    DO(MPI_File_get_position(f_, &now));
    if (static_cast<std::uint64_t>(now) != at_[0]) fail("the pointer is at " + std::to_string(now));
  }

  void reopen() {
    DO(MPI_File_close(&f_));
    open(MPI_MODE_RDWR | (one_in(e_, 3) ? MPI_MODE_APPEND : 0) | (one_in(e_, 2) ? MPI_MODE_CREATE : 0));
  }

  void set_views() {
    doing = "views";
    const view common = view::random(e_);
    const bool same = one_in(e_, 3);
    for (view& v : views_) v = same ? common : view::random(e_);
    if (!same && one_in(e_, 3))  // interleaved
      for (std::size_t r = 0; r < views_.size(); ++r) {
        view& v = views_[r];
        v = {};
        v.etype = common.etype;
        v.tile = {{0, common.etype}};
        v.size = common.etype;
        v.begin = common.begin + r * common.etype;
        v.extent = common.etype * static_cast<std::uint64_t>(ranks);
      }
    mine().set(f_);
    std::fill(at_.begin(), at_.end(), 0);
  }

  void resize() {
    doing = "resizing";
    const std::uint64_t size = one_in(e_, 4) ? model_.size() : between(e_, 0, 150000);
    DO(MPI_File_set_size(f_, static_cast<MPI_Offset>(size)));
    model_.resize(size);
  }

  void seek() {
    doing = "seeking";
    for (std::size_t r = 0; r < views_.size(); ++r) {
      const view& v = views_[r];
      const std::uint64_t to = between(e_, 0, 30000 / v.etype) * v.etype;
      if (r == static_cast<std::size_t>(rank))
        DO(MPI_File_seek(f_, static_cast<MPI_Offset>(to / v.etype), MPI_SEEK_SET));
      at_[r] = to;
    }
  }

  unsigned char value(std::uint64_t offset) const {
    return static_cast<unsigned char>((offset * 2654435761U >> 7) + static_cast<std::uint64_t>(round_number) * 31);
  }

  // The writes of all ranks go into the model.
  void note_write(const view& v, const piece& p) {
    for (std::uint64_t i = 0; i < p.bytes; ++i) {
      const std::uint64_t at = v.place(p.from + i);
      if (at >= model_.size()) model_.resize(at + 1);
      model_[at] = value(at);
    }
  }

  void ordered() {
    doing = "ordered";
    const view common = one_in(e_, 2) ? view{} : view::random(e_);
    for (view& v : views_) v = common;
    mine().set(f_);
    std::fill(at_.begin(), at_.end(), 0);
    std::uint64_t shared = 0;
    for (int time = 0; time < 3; ++time) {
      if (one_in(e_, 2)) {
        shared = between(e_, 0, 20000 / common.etype) * common.etype;
        DO(MPI_File_seek_shared(f_, static_cast<MPI_Offset>(shared / common.etype), MPI_SEEK_SET));
      }
      const bool writes = one_in(e_, 2), split = one_in(e_, 3);
      piece own;
      std::vector<piece> all;
      for (int r = 0; r < ranks; ++r) {
        piece p{shared,
                one_in(e_, 4) ? 0 : between(e_, 1, std::max<std::uint64_t>(1, 8000 / common.etype)) * common.etype};
        shared += p.bytes;
        all.push_back(p);
        if (r == rank) own = p;
      }
      engine memories(e_() + static_cast<std::uint64_t>(rank));
      memory m(memories, own.bytes);
      prepare(m, common, own, writes);
      MPI_Status s;
      if (writes && split) {
        DO(MPI_File_write_ordered_begin(f_, m.address(), m.count, m.type));
        DO(MPI_File_write_ordered_end(f_, m.address(), &s));
      } else if (writes) {
        DO(MPI_File_write_ordered(f_, m.address(), m.count, m.type, &s));
      } else if (split) {
        DO(MPI_File_read_ordered_begin(f_, m.address(), m.count, m.type));
        DO(MPI_File_read_ordered_end(f_, m.address(), &s));
      } else {
        DO(MPI_File_read_ordered(f_, m.address(), m.count, m.type, &s));
      }
      if (!writes) compare(m, common, own);
      if (writes)
        for (const piece& p : all) note_write(common, p);
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Offset now = -1;
      DO(MPI_File_get_position_shared(f_, &now));
      if (static_cast<std::uint64_t>(now) * common.etype != shared)
        fail("the shared pointer is at " + std::to_string(now));
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }

  void prepare(memory& m, const view& v, const piece& p, bool writes) {
    std::fill(m.all.begin(), m.all.end(), untouched);
    if (!writes) return;
    for (std::uint64_t i = 0; i < p.bytes; ++i) m.all[m.place[i]] = value(v.place(p.from + i));
  }

  // What was read; returns how much of it the file has.
  std::uint64_t compare(const memory& m, const view& v, const piece& p) {
    std::vector<unsigned char> wanted(m.all.size(), untouched);
    std::uint64_t there = 0;
    for (std::uint64_t i = 0; i < p.bytes; ++i) {
      const std::uint64_t at = v.place(p.from + i);
      if (at >= model_.size()) continue;
      wanted[m.place[i]] = model_[at];
      ++there;
    }
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (m.all[i] != wanted[i]) {
        const auto of = std::find(m.place.begin(), m.place.end(), i);
        if (of == m.place.end()) fail("byte " + std::to_string(i) + " of the memory, a gap, was written to");
        fail_at(v.place(p.from + static_cast<std::uint64_t>(of - m.place.begin())), m.all[i]);
      }
    return there;
  }

  [[noreturn]] void fail_at(std::uint64_t offset, unsigned char found) {
    fail("byte " + std::to_string(offset) + " of " + std::to_string(model_.size()) + " is " + std::to_string(found) +
         ", not " + (offset < model_.size() ? std::to_string(model_[offset]) : "untouched"));
  }

  void expect_count(const MPI_Status& s, std::uint64_t bytes) {
    int n = -1;
    MPI_Get_count(&s, MPI_BYTE, &n);
    if (n < 0 || static_cast<std::uint64_t>(n) != bytes)
      fail("the status says " + std::to_string(n) + " bytes, not " + std::to_string(bytes));
  }

  void transfer() {
    const bool writes = one_in(e_, 2);
    const std::uint64_t way = between(e_, 0, 8);
    constexpr const char* names[] = {"at",  "pointer",   "i-at", "i-pointer",   "at_all",
                                     "all", "all_begin", "iall", "at_all_begin"};
    doing = std::string(writes ? "write " : "read ") + names[way];
    const bool explicit_place = way == 0 || way == 2 || way == 4 || way == 8;
    std::vector<piece> all;
    for (std::size_t r = 0; r < views_.size(); ++r) {
      const view& v = views_[r];
      const std::uint64_t from = explicit_place ? between(e_, 0, 20000 / v.etype) * v.etype : at_[r];
      const std::uint64_t bytes =
          one_in(e_, 5) ? 0 : between(e_, 1, std::max<std::uint64_t>(1, 12000 / v.etype)) * v.etype;
      all.push_back({from, bytes});
    }
    const piece own = all[static_cast<std::size_t>(rank)];
    const view& v = mine();
    engine memories(e_() + static_cast<std::uint64_t>(rank));
    memory m(memories, own.bytes);
    prepare(m, v, own, writes);
    const auto at = static_cast<MPI_Offset>(own.from / v.etype);
    MPI_Status s;
    MPI_Request q = MPI_REQUEST_NULL;
    void* const b = m.address();
    switch (way) {
      case 0:
        DO(writes ? MPI_File_write_at(f_, at, b, m.count, m.type, &s)
                  : MPI_File_read_at(f_, at, b, m.count, m.type, &s));
        break;
      case 1:
        DO(writes ? MPI_File_write(f_, b, m.count, m.type, &s) : MPI_File_read(f_, b, m.count, m.type, &s));
        break;
      case 2:
        DO(writes ? MPI_File_iwrite_at(f_, at, b, m.count, m.type, &q)
                  : MPI_File_iread_at(f_, at, b, m.count, m.type, &q));
        break;
      case 3:
        DO(writes ? MPI_File_iwrite(f_, b, m.count, m.type, &q) : MPI_File_iread(f_, b, m.count, m.type, &q));
        break;
      case 4:
        DO(writes ? MPI_File_write_at_all(f_, at, b, m.count, m.type, &s)
                  : MPI_File_read_at_all(f_, at, b, m.count, m.type, &s));
        break;
      case 5:
        DO(writes ? MPI_File_write_all(f_, b, m.count, m.type, &s) : MPI_File_read_all(f_, b, m.count, m.type, &s));
        break;
      case 6:
        if (writes) {
          DO(MPI_File_write_all_begin(f_, b, m.count, m.type));
          DO(MPI_File_write_all_end(f_, b, &s));
        } else {
          DO(MPI_File_read_all_begin(f_, b, m.count, m.type));
          DO(MPI_File_read_all_end(f_, b, &s));
        }
        break;
      case 7:
        DO(writes ? MPI_File_iwrite_all(f_, b, m.count, m.type, &q) : MPI_File_iread_all(f_, b, m.count, m.type, &q));
        break;
      default:
        if (writes) {
          DO(MPI_File_write_at_all_begin(f_, at, b, m.count, m.type));
          DO(MPI_File_write_at_all_end(f_, b, &s));
        } else {
          DO(MPI_File_read_at_all_begin(f_, at, b, m.count, m.type));
          DO(MPI_File_read_at_all_end(f_, b, &s));
        }
    }
    if (q != MPI_REQUEST_NULL) DO(MPI_Wait(&q, &s));
    if (!explicit_place) {
      for (std::size_t r = 0; r < views_.size(); ++r) at_[r] += all[r].bytes;
      MPI_Offset now = -1;
      DO(MPI_File_get_position(f_, &now));
      if (static_cast<std::uint64_t>(now) * v.etype != at_[static_cast<std::size_t>(rank)])
        fail("the pointer is at " + std::to_string(now) + " etypes, not at " +
             std::to_string(at_[static_cast<std::size_t>(rank)] / v.etype));
    }
    const std::uint64_t there = writes ? own.bytes : compare(m, v, own);
    // OMPIO says of blocking collective reads what was asked for.
    if (writes || way < 4 || way == 7) expect_count(s, there);
    if (writes)
      for (std::size_t r = 0; r < views_.size(); ++r) note_write(views_[r], all[r]);
    MPI_Barrier(MPI_COMM_WORLD);
  }

  const std::string name_;
  engine& e_;  // draws the same on all ranks
  MPI_Info info_ = MPI_INFO_NULL;
  MPI_File f_ = MPI_FILE_NULL;
  std::vector<unsigned char> model_;
  std::vector<view> views_;        // of each rank
  std::vector<std::uint64_t> at_;  // of each rank's pointer, in bytes of its view
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* given = std::getenv("OOC_TEST_SEED");
  if (rank == 0) seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("random_io: OOC_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
  }
  engine e(seed);
  const long rounds = argc > 2 ? std::atol(argv[2]) : 300;
  {
    random_file f(argv[1], e);
    for (round_number = 1; round_number <= rounds; ++round_number) {
      f.round();
      if (round_number % 20 == 0) f.look_at_all();
    }
    f.look_at_all();
  }
  MPI_Finalize();
  return 0;
}
