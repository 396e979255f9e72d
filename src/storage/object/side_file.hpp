// The `.side` file beside a stripe object whose file has commits: which side of each chunk counts (sides.hpp).
//
// A bit for each chunk, three times.  The *present* bits say where the chunk is read and were written last; the
// *committed* bits exist in two copies, each with the number of its commit and a checksum.  A commit writes the
// present bits into the copy that does not count, with the next number.  It counts once the metadata have that
// number, so of the two the one counts that has the highest number which is not above that of the metadata:
//
//     open       copy 0: 7   copy 1: 6   metadata: 7      chunks that were written since 7 are at the other side
//     prepared   copy 0: 7   copy 1: 8   metadata: 7      all of 8 is durable; if nothing comes of it, 7 counts
//     decided    copy 0: 7   copy 1: 8   metadata: 8
//
// A page covers a *group* of 31 regions, 124 MiB of chunks; groups that a commit finds unchanged are not written.
// Before anything is written to a region, its present bits are there, and before those, both copies of its group's
// committed bits.  So zeros where something was written are damage, as is what fails its checksum, except after a
// loss of power: mend() then puts an intact copy in the place of one that was being written, and the present bits
// follow from the committed ones.
//
// docs/disk-format.md describes the bytes.  A file descriptor with typed access, as checksum_file: no state, no locks.
// Functions return an errno, 0 for success; EBADMSG: damaged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "storage/base/file_descriptor.hpp"
#include "storage/object/checksum_file.hpp"

namespace ooc::storage {

/// A bit for each chunk of a region: 0, the first side; 1, the second.
using side_bits = std::array<std::uint8_t, checksum_file::region_chunks / 8>;

constexpr unsigned side_of(const side_bits& b, std::uint64_t chunk) noexcept {
  const std::uint64_t i = chunk % checksum_file::region_chunks;
  return b[i / 8] >> (i % 8) & 1U;
}

class side_file {
 public:
  static constexpr std::uint64_t group_regions = 31;
  using group_bits = std::array<side_bits, group_regions>;

  /// No file: of a stripe object without commits.
  side_file() = default;
  side_file(file_descriptor fd, const object_seeds& seeds) noexcept : fd_(std::move(fd)), seeds_(seeds) {}

  explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
  int fd() const noexcept { return fd_.get(); }

  /// The length of the file for so many places (sides.hpp).
  static std::uint64_t bytes_for(std::uint64_t places) noexcept;
  /// Gets that length, with its space if `reserved`.
  int lengthen(std::uint64_t places, bool reserved) const;

  /// `there` becomes false, and all bits 0, where nothing was written to the region yet.  `how`: flags of preadv2().
  int read_present(std::uint64_t region, side_bits& bits, bool& there, int how = 0) const noexcept;
  int write_present(std::uint64_t region, const side_bits& bits) const noexcept;

  /// The bits of a group that count in that commit.  `there` becomes false, and all are 0, where none of its regions
  /// was written to.  ESTALE: both copies are of later commits.
  int read_committed(std::uint64_t group, std::uint64_t commit, group_bits& bits, bool& there) const noexcept;
  /// Before the first write to a group.
  int begin_group(std::uint64_t group) const noexcept;

  /// Whether anything was ever written to a region, as other files say.
  using look_at_region = std::function<int(std::uint64_t region, bool& written)>;
  /// With the whole stripe object locked: the present bits of all groups become those of commit + 1.  It may be
  /// repeated.  `begin` is called before anything is changed.
  int prepare(std::uint64_t commit, const look_at_region& look, const std::function<int()>& begin) const;
  /// With the whole stripe object locked: the bits of that commit become the present ones.  It may be
  /// repeated.  `begin` as above; `add` is called for the regions whose present bits were others.
  int roll_back(std::uint64_t commit, const look_at_region& look, const std::function<int()>& begin,
                const std::function<void(std::uint64_t region)>& add) const;
  /// After a loss of power, with the whole stripe object locked, of a stripe object with so many places: whatever was
  /// being written becomes readable, durably, so that roll_back() can be called.
  int mend(std::uint64_t places, const look_at_region& look) const;

  /// Calls `add` for the regions with chunks that were written after commit `since` for one up to `commit`; perhaps
  /// also for others.  Of a region it is known for 65,535 commits.  ESTALE as
  /// read_committed().
  int find_changes(std::uint64_t since, std::uint64_t commit,
                   const std::function<void(std::uint64_t region)>& add) const;

 private:
  /// How many commits before that of its page the last one was that changed a region; the greatest: so many or more.
  using unchanged_for = std::array<std::uint16_t, group_regions>;

  struct committed_page {
    std::uint64_t commit = 0;
    std::uint32_t check = 0;  ///< CRC32C of the page with this field zero, XOR a seed of its place
    std::uint32_t reserved[13] = {};
    group_bits bits{};
    unchanged_for ages{};
    std::uint8_t unused[2] = {};
  };
  static_assert(sizeof(committed_page) == chunk_size);
  struct present_record {
    side_bits bits{};
    std::uint32_t check = 0;  ///< of the bits, as above; never 0
  };
  static_assert(sizeof(present_record) * group_regions <= chunk_size);

  static std::uint16_t age_in(const committed_page& next, const committed_page& before, std::uint64_t i) noexcept;

  using present_page = std::array<present_record, group_regions>;
  using committed_copies = std::array<committed_page, 2>;

  int mend_copies(std::uint64_t group, bool in_use) const;
  int groups(std::uint64_t& count) const noexcept;
  int read_presents(std::uint64_t group, present_page& page) const noexcept;
  int check(std::uint64_t region, const present_record& r, bool& there) const noexcept;
  int read_copies(std::uint64_t group, committed_copies& copies) const noexcept;
  /// The same and which of them counts.
  int read_counting(std::uint64_t group, std::uint64_t commit, committed_copies& copies,
                    unsigned& which) const noexcept;
  int write_copy(std::uint64_t group, unsigned which, committed_page p) const noexcept;
  std::uint32_t check_of(std::uint64_t group, unsigned which, committed_page p) const noexcept;
  bool intact(std::uint64_t group, unsigned which, const committed_page& p) const noexcept {
    return p.check == check_of(group, which, p);
  }
  /// Which copy counts; 2: there are none yet.
  int counting(std::uint64_t group, const committed_copies& copies, std::uint64_t commit,
               unsigned& which) const noexcept;
  std::uint32_t check_of(std::uint64_t region, const side_bits& bits) const noexcept;

  file_descriptor fd_;
  object_seeds seeds_;
};

}  // namespace ooc::storage
