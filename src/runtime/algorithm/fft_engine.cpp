// A Fourier transform in two passes (D. H. Bailey, *FFTs in external or hierarchical memory*, J. of Supercomputing
// 1990: his six steps, of which the transpositions are done in memory, between reading and writing).
//
// With n = n1 n2, x is a matrix of n1 rows and n2 columns.  The first pass has bands of columns in memory: their
// columns are transformed, element k of column j is multiplied by exp(-+ 2 pi i j k / n), and the band is written to a
// temporary file, one after the other.  The second pass has bands of rows, of which it reads a piece from each band of
// columns: the rows are transformed, and they are columns of y, a matrix of n2 rows and n1 columns.
//
// So what is temporary moves in long requests, and x and y in pieces of as many elements as a band has columns, or
// rows.
#include "oocarray/detail/fft_engine.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "oocarray/error.hpp"
#include "runtime/algorithm/algorithm_call.hpp"
#include "runtime/algorithm/buffered_stream.hpp"
#include "runtime/algorithm/fft_plan.hpp"
#include "runtime/algorithm/lent_memory.hpp"
#include "runtime/algorithm/thread_team.hpp"
#include "runtime/array/direct_array.hpp"
#include "runtime/ranks/shared_array.hpp"
#include "runtime/ranks/temporary_file.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::detail {
namespace {

/// Neighbouring lines across which a thread goes at a time: what the processor fetches of memory has so many elements.
std::size_t lines_at_once(std::size_t element_size) { return std::max<std::size_t>(64 / element_size, 1); }

constexpr std::uint64_t requests_of_band = 4;  // so that one is checked while another is transferred

/// What threads transform lines of one length with: who is done leaves it to the next.
class line_workers {
 public:
  struct worker {
    std::unique_ptr<line_transform> transform;
    std::vector<std::byte> lines;  ///< lines_at_once()
  };

  line_workers(const line_kernel& k, std::size_t length) : kernel_(k), length_(length) {}

  static std::uint64_t bytes(const line_kernel& k, std::uint64_t length) {
    return k.transform_bytes(length) + lines_at_once(k.element_size()) * length * k.element_size();
  }

  template <class F>
  void with(F f) {
    std::unique_ptr<worker> mine = take();
    f(*mine);
    const lock_guard lock(mutex_);
    idle_.push_back(std::move(mine));
  }

 private:
  std::unique_ptr<worker> take() {
    {
      const lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<worker> w = std::move(idle_.back());
        idle_.pop_back();
        return w;
      }
    }
    const std::size_t bytes = lines_at_once(kernel_.element_size()) * length_ * kernel_.element_size();
    return std::make_unique<worker>(worker{kernel_.transform(length_), std::vector<std::byte>(bytes)});
  }

  const line_kernel& kernel_;
  const std::size_t length_;
  mutex mutex_;
  std::vector<std::unique_ptr<worker>> idle_ OOC_GUARDED_BY(mutex_);
};

/// Copies elements `from_step` bytes apart to places `to_step` bytes apart.
void copy_elements(const std::byte* from, std::size_t from_step, std::byte* to, std::size_t to_step, std::size_t count,
                   std::size_t size) {
  const auto copy = [&]<std::size_t Size>() {
    for (; count > 0; --count, from += from_step, to += to_step) std::memcpy(to, from, Size);
  };
  size == 8 ? copy.operator()<8>() : copy.operator()<16>();
}

struct line_range {
  std::uint64_t first, last;
  std::uint64_t size() const noexcept { return last - first; }
};

class fft_call {
 public:
  fft_call(const char* name, array_core& from, array_core& to, line_kernel& kernel, const pass_options& options)
      : from_(from),
        to_(to),
        kernel_(kernel),
        size_(kernel.element_size()),
        given_size_(kernel.given_size()),
        wanted_(options.memory),
        call_(std::string(name) + " of '" + from.facts().path + "'" +
                  (&from == &to ? "" : " to '" + to.facts().path + "'"),
              to, {&to}, options),
        threads_(call_.threads()),
        elements_(algorithm_call::elements_of(from)) {
    from.check_open();
    for (const array_core* a : {&from, &to}) {
      call_.refuse_strangers(*a);
      call_.refuse_tiles(*a);
    }
    call_.refuse_other_group(from);
    if (algorithm_call::elements_of(to) != elements_)
      call_.refuse("'" + from.facts().path + "' has " + std::to_string(elements_) + " elements, and '" +
                   to.facts().path + "', for the result, " + std::to_string(algorithm_call::elements_of(to)) +
                   "; give one of as many");
  }

  pass_statistics run() {
    call_.must_agree(", " + std::to_string(elements_) + " elements");
    call_.together([] {});
    if (elements_ == 0) return done_;
    choose();
    if (call_.only_plans()) return done_;
    std::optional<direct_array> from, to;
    call_.together([&] {
      if (&from_ != &to_) from.emplace(from_.shared().local(), access_mode::read, "fft()");
      to.emplace(to_.shared().local(), access_mode::write, "fft()");
      extra_ = to_.shared().pager().reserve(plan_.line_bytes, call_.name());
      memory_.emplace(to_.shared().pager(), plan_.lent_bytes(), call_.name());
      kernel_.prepare(elements_);
      team_.emplace(threads_);
    });
    const storage::striped_file &source = from ? from->file() : to->file(), &target = to->file();
    call_.expect(done_.bytes_read + done_.bytes_written);
    if (plan_.in_memory) {
      transform_in_memory(source, target);
    } else {
      const temporary_file space(to_, elements_ * size_, "Fourier transform");
      call_.together([&] { transform_columns(source, space.file()); });
      call_.mark();
      call_.together([&] { transform_rows(space.file(), target); });
    }
    to_.shared().pager().count_direct(done_.bytes_read, done_.bytes_written);
    call_.finish();
    return done_;
  }

 private:
  // --- what each rank does

  line_range columns_of(std::uint64_t band) const {
    const std::uint64_t first = band * plan_.columns_of_band;
    return {first, std::min(first + plan_.columns_of_band, plan_.columns)};
  }
  line_range rows_of(std::uint64_t band) const {
    const std::uint64_t first = band * plan_.rows_of_band;
    return {first, std::min(first + plan_.rows_of_band, plan_.rows)};
  }
  /// Bands are this rank's in turn: number n of its own.
  std::uint64_t my_band(std::uint64_t n) const {
    return n * static_cast<std::uint64_t>(call_.ranks()) + static_cast<std::uint64_t>(call_.rank());
  }
  std::uint64_t my_bands(std::uint64_t all) const {
    const auto ranks = static_cast<std::uint64_t>(call_.ranks()), rank = static_cast<std::uint64_t>(call_.rank());
    return rank < all ? (all - 1 - rank) / ranks + 1 : 0;
  }

  /// The same plan on all ranks, for what the one with the least memory has.
  void choose() {
    const std::uint64_t spare = to_.shared().pager().spare();
    std::uint64_t memory = wanted_ != 0 ? std::min(wanted_, spare) : spare;
    if (call_.ranks() > 1) {
      std::uint64_t of_all[] = {memory, threads_};
      to_.shared().group().all_reduce(call_.name(), of_all, reduction::min);
      memory = of_all[0];
      threads_ = static_cast<unsigned>(of_all[1]);
    }
    const fft_facts facts{elements_, size_, [this](std::uint64_t length, std::uint64_t lines) {
                            return std::min<std::uint64_t>(threads_, lines) * line_workers::bytes(kernel_, length) +
                                   kernel_.prepared_bytes(elements_);
                          }};
    plan_ = plan_fft(facts, memory);
    call_.together([&] {
      if (plan_.rows == 0) call_.refuse_memory(least_fft_memory(facts), memory, spare);
    });
    std::uint64_t of_columns = 0, of_rows = 0;
    for (std::uint64_t n = 0; n < my_bands(plan_.column_bands()); ++n)
      of_columns += columns_of(my_band(n)).size() * plan_.rows;
    for (std::uint64_t n = 0; n < my_bands(plan_.row_bands()); ++n)
      of_rows += rows_of(my_band(n)).size() * plan_.columns;
    done_.passes = plan_.in_memory ? 1 : 2;
    done_.memory = plan_.bytes();
    done_.bytes_read = of_columns * given_size_;
    done_.bytes_written = of_rows * size_;
    if (!plan_.in_memory) {
      done_.bytes_written += of_columns * size_;
      done_.bytes_read += of_rows * size_;
    }
    // Aggarwal and Vitter, *The Input/Output Complexity of Sorting* (1988): a transform that does not fit in memory
    // takes the transfers of a sort.
    done_.bound = done_.bytes_read + done_.bytes_written;
  }

  // --- transfers

  /// Part of a matrix in a file, row-major; in memory its rows begin `memory_step` bytes apart.
  static request part_of_matrix(line_range rows, line_range columns, std::uint64_t all_columns, std::size_t size,
                                std::uint64_t memory_offset, std::uint64_t memory_step) {
    nested_request n;
    n.file_offset = (rows.first * all_columns + columns.first) * size;
    n.memory_offset = memory_offset;
    n.run = columns.size() * size;
    n.depth = 1;
    n.levels[0] = {rows.size(), all_columns * size, memory_step};
    request r;
    r.add(n);
    return r;
  }
  /// f(part), for parts of what is moved at a time.
  template <class F>
  static void in_requests(std::uint64_t count, F f) {
    const std::uint64_t each = (count - 1) / requests_of_band + 1;
    for (std::uint64_t first = 0; first < count; first += each) f(line_range{first, std::min(first + each, count)});
  }

  void begin_read_columns(const storage::striped_file& source, std::uint64_t band, direct_transfer& t, std::byte* to) {
    const line_range columns = columns_of(band);
    const std::uint64_t step = columns.size() * size_;
    in_requests(plan_.rows, [&](line_range rows) {
      t.begin_read(source,
                   part_of_matrix(rows, columns, plan_.columns, given_size_,
                                  rows.first * step + columns.size() * (size_ - given_size_), step),
                   to);
    });
  }
  /// A piece of each band of columns, one after the other in memory.
  void begin_read_rows(const storage::striped_file& temporary, std::uint64_t band, direct_transfer& t, std::byte* to) {
    const line_range rows = rows_of(band);
    in_requests(plan_.column_bands(), [&](line_range bands) {
      const std::uint64_t all = plan_.columns_of_band, whole = std::min(bands.last, plan_.columns / all);
      const auto place = [&](std::uint64_t columns, std::uint64_t width) {
        nested_request n;
        n.file_offset = (plan_.rows * columns + rows.first * width) * size_;
        n.memory_offset = rows.size() * columns * size_;
        n.run = rows.size() * width * size_;
        return n;
      };
      request r;
      if (whole > bands.first) {
        nested_request n = place(bands.first * all, all);
        n.depth = 1;
        n.levels[0] = {whole - bands.first, plan_.rows * all * size_, n.run};
        r.add(n);
      }
      if (whole < bands.last) r.add(place(whole * all, plan_.columns % all));
      t.begin_read(temporary, std::move(r), to);
    });
  }
  void begin_write_rows(const storage::striped_file& target, std::uint64_t band, direct_transfer& t,
                        const std::byte* from) {
    const line_range columns = rows_of(band);
    const std::uint64_t step = columns.size() * size_;
    in_requests(plan_.columns, [&](line_range rows) {
      t.begin_write(target, part_of_matrix(rows, columns, plan_.rows, size_, rows.first * step, step), from);
    });
  }

  // --- passes

  void transform_in_memory(const storage::striped_file& source, const storage::striped_file& target) {
    std::byte *const x = memory_->data(), *const y = x + plan_.buffer_bytes;
    const bool mine = my_bands(1) != 0;
    call_.together([&] {
      if (!mine) return;
      direct_transfer t;
      begin_read_columns(source, 0, t, x);
      t.wait();
      call_.advance(elements_ * given_size_);
      // One after the other: the budget has memory for either.
      std::optional<line_workers> workers(std::in_place, kernel_, plan_.rows);
      work_on_columns(*workers, 0, x);
      workers.emplace(kernel_, plan_.columns);
      work_on_rows(*workers, 0, x);
      turn_rows(0, x, y);
    });
    call_.mark();
    call_.together([&] {
      if (!mine) return;
      direct_transfer t;
      begin_write_rows(target, 0, t, y);
      t.wait();
      call_.advance(elements_ * size_);
    });
  }

  void transform_columns(const storage::striped_file& source, const storage::striped_file& temporary) {
    const element_file bands(temporary, size_);
    const std::uint64_t items = my_bands(plan_.column_bands());
    line_workers workers(kernel_, plan_.rows);
    buffered_stream stream(3, 2);
    stream.use(memory_->data(), plan_.buffer_bytes);
    for (std::uint64_t n = 0; n < items; ++n) {
      std::byte* const box = stream.read(n, items, [&](std::uint64_t item, direct_transfer& t, std::byte* to) {
        begin_read_columns(source, my_band(item), t, to);
      });
      work_on_columns(workers, my_band(n), box);
      const line_range columns = columns_of(my_band(n));
      stream.write(n).begin_write(bands, plan_.rows * columns.first, plan_.rows * columns.size(), box);
      call_.advance(plan_.rows * columns.size() * (given_size_ + size_));
    }
    stream.wait();
  }

  void transform_rows(const storage::striped_file& temporary, const storage::striped_file& target) {
    const std::uint64_t items = my_bands(plan_.row_bands());
    line_workers workers(kernel_, plan_.columns);
    buffered_stream reads(2, 2), writes(1, 0);
    reads.use(memory_->data(), plan_.buffer_bytes);
    writes.use(memory_->data() + 2 * plan_.buffer_bytes, plan_.buffer_bytes);
    for (std::uint64_t n = 0; n < items; ++n) {
      std::byte* const box = reads.read(n, items, [&](std::uint64_t item, direct_transfer& t, std::byte* to) {
        begin_read_rows(temporary, my_band(item), t, to);
      });
      work_on_rows(workers, my_band(n), box);
      std::byte* const turned = writes.fill(n);
      turn_rows(my_band(n), box, turned);
      begin_write_rows(target, my_band(n), writes.write(n), turned);
      call_.advance(2 * rows_of(my_band(n)).size() * plan_.columns * size_);
    }
    writes.wait();
  }

  // --- work in memory

  /// f(line_range), for all of `count`, at least so many at a time.
  template <class F>
  void in_parts(std::uint64_t count, std::uint64_t at_least, F f) {
    constexpr std::uint64_t parts_of_thread = 4;
    const std::uint64_t each = std::max((count - 1) / (parts_of_thread * team_->size()) + 1, at_least);
    team_->run((count - 1) / each + 1, [&](std::size_t p) {
      f(line_range{p * each, std::min((p + 1) * each, count)});
    });
  }

  void work_on_columns(line_workers& workers, std::uint64_t band, std::byte* box) {
    const line_range columns = columns_of(band);
    const std::uint64_t rows = plan_.rows, width = columns.size(), step = width * size_, line = rows * size_;
    if (given_size_ != size_)
      in_parts(rows, 16, [&](line_range part) {
        for (std::uint64_t r = part.first; r < part.last; ++r) kernel_.widen(box + r * step, width);
      });
    const std::size_t at_once = lines_at_once(size_);
    in_parts((width - 1) / at_once + 1, 1, [&](line_range groups) {
      workers.with([&](line_workers::worker& w) {
        for (std::uint64_t c = groups.first * at_once; c < std::min(groups.last * at_once, width); c += at_once) {
          const std::uint64_t last = std::min(c + at_once, width);
          // Across the lines, as far as these lie beside each other in memory.
          for (std::uint64_t r = 0; r < rows; ++r)
            copy_elements(box + r * step + c * size_, size_, w.lines.data() + r * size_, line, last - c, size_);
          for (std::uint64_t k = c; k < last; ++k) {
            std::byte* const x = w.lines.data() + (k - c) * line;
            w.transform->run(x);
            kernel_.turn(x, rows, columns.first + k);
          }
          for (std::uint64_t r = 0; r < rows; ++r)
            copy_elements(w.lines.data() + r * size_, line, box + r * step + c * size_, size_, last - c, size_);
        }
      });
    });
  }

  /// Each row is in as many pieces as there are bands of columns, and stays there.
  void work_on_rows(line_workers& workers, std::uint64_t band, std::byte* box) {
    const std::uint64_t rows = rows_of(band).size();
    in_parts(rows, 1, [&](line_range part) {
      workers.with([&](line_workers::worker& w) {
        for (std::uint64_t r = part.first; r < part.last; ++r) {
          const auto for_pieces = [&](auto f) {
            for (std::uint64_t b = 0; b < plan_.column_bands(); ++b) {
              const line_range columns = columns_of(b);
              f(box + (rows * columns.first + r * columns.size()) * size_, w.lines.data() + columns.first * size_,
                columns.size() * size_);
            }
          };
          for_pieces([](std::byte* piece, std::byte* line, std::size_t bytes) { std::memcpy(line, piece, bytes); });
          w.transform->run(w.lines.data());
          for_pieces([](std::byte* piece, std::byte* line, std::size_t bytes) { std::memcpy(piece, line, bytes); });
        }
      });
    });
  }

  /// Rows in pieces become columns of `to`.
  void turn_rows(std::uint64_t band, const std::byte* box, std::byte* to) {
    const std::uint64_t rows = rows_of(band).size(), at_once = lines_at_once(size_);
    in_parts(plan_.columns, 64, [&](line_range part) {
      for (std::uint64_t b = part.first / plan_.columns_of_band; b * plan_.columns_of_band < part.last; ++b) {
        const line_range all = columns_of(b);
        const line_range mine{std::max(all.first, part.first), std::min(all.last, part.last)};
        const std::byte* const piece = box + rows * all.first * size_;
        for (std::uint64_t r = 0; r < rows; r += at_once)
          for (std::uint64_t c = mine.first; c < mine.last; ++c)
            copy_elements(piece + (r * all.size() + c - all.first) * size_, all.size() * size_,
                          to + (c * rows + r) * size_, size_, std::min(at_once, rows - r), size_);
      }
    });
  }

  array_core& from_;
  array_core& to_;
  line_kernel& kernel_;
  const std::size_t size_;        ///< of a complex number
  const std::size_t given_size_;  ///< of an element that is transformed
  const std::uint64_t wanted_;    ///< bytes of memory; 0: what there is
  algorithm_call call_;
  unsigned threads_;
  const std::uint64_t elements_;
  fft_plan plan_;
  pager::reservation extra_;
  std::optional<lent_memory> memory_;
  std::optional<thread_team> team_;
  pass_statistics done_;
};

}  // namespace

pass_statistics run_fft(const char* name, array_core& from, array_core& to, line_kernel& kernel,
                        const pass_options& options) {
  return fft_call(name, from, to, kernel, options).run();
}

}  // namespace ooc::detail
