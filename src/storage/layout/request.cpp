// Building requests: validation, and the simplest form of what was asked.
//
// An entry is stored in its normal form: no level that repeats once, and no innermost level whose
// repetitions touch in the file and in memory (they are one longer run).  That changes neither the
// bytes nor their order, and lets a whole-row request travel and be served as one run.
#include "oocarray/request.hpp"

#include <algorithm>
#include <string>

#include "oocarray/error.hpp"
#include "storage/base/refuse.hpp"

namespace ooc {
namespace {

using wide = unsigned __int128;

constexpr std::uint64_t limit = (std::uint64_t{1} << 63) - 1;

// One past the last byte that `run` bytes at `offset` touch, repeated as `levels` say.
std::uint64_t end_of(std::uint64_t offset, const nested_request& n, std::uint64_t stride_level::*step,
                     const char* where) {
  wide end = wide{offset} + n.run;
  for (std::uint32_t i = 0; i < n.depth && end <= limit; ++i) {
    const wide reach = wide{n.levels[i].count - 1} * (n.levels[i].*step);
    end = reach > limit ? reach : end + reach;
  }
  if (end > limit)
    refuse(std::string("a request reaches past 2^63 - 1 in ") + where + " (offset " + std::to_string(offset) +
           ", run " + std::to_string(n.run) + ", " + std::to_string(n.depth) + " levels)");
  return static_cast<std::uint64_t>(end);
}

nested_request normal_form(const nested_request& n) {
  nested_request r;
  r.file_offset = n.file_offset;
  r.memory_offset = n.memory_offset;
  r.run = n.run;
  for (std::uint32_t i = 0; i < n.depth; ++i)
    if (n.levels[i].count != 1) r.levels[r.depth++] = n.levels[i];
  while (r.depth > 0) {
    stride_level& inner = r.levels[r.depth - 1];
    if (inner.file_step != r.run || inner.memory_step != r.run) break;
    r.run *= inner.count;
    inner = {};
    --r.depth;
  }
  return r;
}

std::string text(const strided_request& r) {
  std::string t = "request (rl " + std::to_string(r.rl);
  t += ", fs " + std::to_string(r.fs) + ", gs " + std::to_string(r.gs);
  t += ", gc " + std::to_string(r.gc) + ", sd " + std::to_string(r.sd);
  return t + ", ls " + std::to_string(r.ls) + ")";
}

}  // namespace

std::uint64_t nested_request::runs() const noexcept {
  std::uint64_t n = 1;
  for (std::uint32_t i = 0; i < depth; ++i) n *= levels[i].count;
  return n;
}

std::uint64_t nested_request::bytes() const noexcept { return runs() * run; }

request request::contiguous(std::uint64_t offset, std::uint64_t length) {
  request r;
  r.add(offset, 0, length);
  return r;
}

request request::strided(const strided_request& s, access_kind kind) {
  const bool contiguous = s.gs == 0 && s.gc == 0 && s.ls == 0;
  if (s.gc > 0 && s.gs == 0) refuse(text(s) + ": groups without bytes (gs = 0, gc > 0)");
  if (!contiguous && s.fs > s.gs) refuse(text(s) + ": the partial first group exceeds gs");
  if (!contiguous && s.ls > s.gs) refuse(text(s) + ": the partial last group exceeds gs");
  if (kind == access_kind::write && s.sd < s.gs) refuse(text(s) + ": groups of a write overlap (sd < gs)");
  for (std::uint64_t v : {s.rl, s.fs, s.gs, s.gc, s.sd, s.ls})
    if (v > limit) refuse(text(s) + ": a parameter passes 2^63 - 1");

  request r;
  r.add(s.rl, 0, s.fs);
  // The first group, where `fs` is the tail of one, begins gs - fs before fs did, a step later.
  __int128 group = s.rl;
  if (s.fs > 0) group += static_cast<__int128>(s.fs) + s.sd - s.gs;
  if (s.gc > 0) {
    if (group < 0 || group > static_cast<__int128>(limit)) refuse(text(s) + ": a group lies outside 0 .. 2^63 - 1");
    nested_request groups;
    groups.file_offset = static_cast<std::uint64_t>(group);
    groups.memory_offset = s.fs;
    groups.run = s.gs;
    groups.depth = 1;
    groups.levels[0] = {s.gc, s.sd, s.gs};
    r.add(groups);
    group += static_cast<__int128>(s.gc) * s.sd;  // both below 2^63
  }
  if (s.ls > 0) {
    if (group < 0 || group > static_cast<__int128>(limit))
      refuse(text(s) + ": the partial last group lies outside 0 .. 2^63 - 1");
    r.add(static_cast<std::uint64_t>(group), r.memory_end(), s.ls);
  }
  return r;
}

void request::add(std::uint64_t file_offset, std::uint64_t memory_offset, std::uint64_t length) {
  nested_request n;
  n.file_offset = file_offset;
  n.memory_offset = memory_offset;
  n.run = length;
  add(n);
}

void request::add(const nested_request& given) {
  if (given.depth > nested_request::max_levels)
    refuse("a nested request of " + std::to_string(given.depth) + " levels; at most " +
           std::to_string(nested_request::max_levels) + " are possible");
  wide bytes = given.run;
  for (std::uint32_t i = 0; i < given.depth; ++i)
    if (given.levels[i].count == 0) bytes = 0;
  if (bytes == 0) return;
  for (std::uint32_t i = 0; i < given.depth && bytes <= limit; ++i) bytes *= given.levels[i].count;
  if (bytes + bytes_ > limit) refuse("a request of more than 2^63 - 1 bytes");

  const std::uint64_t file_end = end_of(given.file_offset, given, &stride_level::file_step, "the file");
  const std::uint64_t memory_end = end_of(given.memory_offset, given, &stride_level::memory_step, "memory");

  const nested_request n = normal_form(given);
  nested_request* last = entries_.empty() ? nullptr : &entries_.back();
  if (last != nullptr && last->depth == 0 && n.depth == 0 && last->file_offset + last->run == n.file_offset &&
      last->memory_offset + last->run == n.memory_offset) {
    last->run += n.run;
  } else {
    entries_.push_back(n);
  }
  bytes_ += static_cast<std::uint64_t>(bytes);
  file_end_ = std::max(file_end_, file_end);
  memory_end_ = std::max(memory_end_, memory_end);
}

}  // namespace ooc
