// The limit: what the disk gives a program that does nothing but transfers.
//
// All functions go through whole files once, in order unless they say otherwise, and return seconds.
// Direct transfers are of 2 MiB unless they say otherwise, `depth` at once; they go by threads, as
// these work everywhere.  Throw std::system_error.
//
// `memory`: bytes of fresh memory that the transfers use in turn; a write fills its part of it first.
// With 0 every request in flight has a small buffer of its own: these stay in the processor's cache,
// which suits the virtual disk of a hypervisor, and which no program has that keeps what it reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace bench::raw {

inline constexpr unsigned depth = 16;
inline constexpr std::uint64_t request_bytes = std::uint64_t{2} << 20;

using path = std::filesystem::path;

/// Makes a file of `bytes` (a multiple of 2 MiB), every byte written, of doubles that are 1.
void make_file(const path& file, std::uint64_t bytes);

double direct_read(const std::vector<path>& files, std::uint64_t memory = 0);
/// The same bytes in another order: each file is a matrix of regions (of at most 2 MiB), `columns` to a
/// row, and is read column by column.
double direct_read_columns(const std::vector<path>& files, std::uint64_t piece, std::uint64_t columns,
                           std::uint64_t memory = 0);
/// Rewrites files that exist.
double direct_write(const std::vector<path>& files, std::uint64_t memory = 0);
/// Reads one file and rewrites another of the same size: a sweep that reads and writes.
double direct_copy(const path& from, const path& to);
/// Reads a square matrix, whose rows have so many bytes, in squares whose rows are `piece` bytes (at
/// most 2 MiB), and writes each row of a square to the place of a row of its mirror image; 64 at once.
double direct_transpose(const path& from, const path& to, std::uint64_t row, std::uint64_t piece);
/// Reads files and rewrites another, all of the same size, side by side.
double direct_combine(const std::vector<path>& from, const path& to);
/// Through the page cache, which is dropped before.
double buffered_read(const path& file);
/// Through the page cache, until the bytes are on the disk.
double buffered_write(const path& file);

}  // namespace bench::raw
