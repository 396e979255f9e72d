#include "storage/wire/messages.hpp"

#include "storage/wire/messages.pb.h"

namespace ooc::wire {

using storage::file_id;
using storage::file_shape;
using storage::io_kind;
using storage::node_answer;

namespace {

constexpr std::uint64_t max_size = std::uint64_t{1} << 63;

[[noreturn]] void malformed_message(const std::string& why) {
  throw usage_error(errc::invalid_request, "a message that cannot be read: " + why);
}

template <class Message>
Message parse(std::string_view body) {
  Message m;
  if (!m.ParseFromArray(body.data(), static_cast<int>(body.size())))
    malformed_message("its body is not a " + std::string(m.GetTypeName()));
  return m;
}

}  // namespace

void write_request(const request& r, request_numbers& to) {
  for (const nested_request& n : r.entries()) {
    for (const std::uint64_t number : {n.file_offset, n.memory_offset, n.run, std::uint64_t{n.depth}}) to.Add(number);
    for (std::uint32_t level = 0; level < n.depth; ++level)
      for (const std::uint64_t number : {n.levels[level].count, n.levels[level].file_step, n.levels[level].memory_step})
        to.Add(number);
  }
}

request read_request(const request_numbers& n, std::size_t most) {
  request r;
  int at = 0;
  std::size_t entries = 0;
  while (at < n.size()) {
    if (++entries > most) malformed_message("more than " + std::to_string(most) + " nested requests");
    if (n.size() - at < 4) malformed_message("a nested request is cut short");
    nested_request one;
    one.file_offset = n[at];
    one.memory_offset = n[at + 1];
    one.run = n[at + 2];
    if (n[at + 3] > nested_request::max_levels) malformed_message("a nested request has too many levels");
    one.depth = static_cast<std::uint32_t>(n[at + 3]);
    at += 4;
    if (n.size() - at < static_cast<int>(one.depth) * 3) malformed_message("a nested request is cut short");
    for (std::uint32_t level = 0; level < one.depth; ++level, at += 3)
      one.levels[level] = {n[at], n[at + 1], n[at + 2]};
    r.add(one);
  }
  return r;
}

namespace {

void write_file(const file_shape& f, pb::File& file) {
  file.set_id(f.id);
  file.set_sn(f.striping.sn);
  file.set_nn(f.striping.nn);
  file.set_sf(f.striping.sf);
  file.set_size(f.size);
  file.set_sparse(f.sparse);
  file.set_fill(f.fill.data(), f.fill.size());
  file.set_name(f.name);
  file.set_generation(f.generation);
  file.set_claimed_since(f.claim.since);
  file.set_alone(f.claim.alone);
  file.set_cuts(f.cuts);
  file.set_cut(f.cut);
  file.set_commits(f.commits);
  file.set_commit(f.commit);
  file.set_at_commit(f.at_commit);
}

std::shared_ptr<file_shape> read_file(const pb::File& file) {
  auto f = std::make_shared<file_shape>();
  f->id = file.id();
  f->striping = {file.sn(), file.nn(), file.sf()};
  f->size = file.size();
  f->sparse = file.sparse();
  const auto* fill = reinterpret_cast<const std::byte*>(file.fill().data());
  f->fill.assign(fill, fill + file.fill().size());
  f->name = file.name();
  f->generation = file.generation();
  f->claim = {file.claimed_since(), file.alone()};
  f->cuts = file.cuts();
  f->cut = file.cut();
  f->commits = file.commits();
  f->commit = file.commit();
  f->at_commit = file.at_commit();
  if (f->claim.since > f->generation) malformed_message("a claim to write that is newer than the file");
  if (f->size >= max_size) malformed_message("a file of 2^63 bytes or more");
  if (f->striping.nn != 0 && f->striping.sf > max_size / f->striping.nn)
    malformed_message("a striping whose stripes pass 2^63 bytes");
  return f;
}

}  // namespace

std::string encode(const io_request& r) {
  pb::IoRequest m;
  write_file(*r.file, *m.mutable_file());
  m.set_stripe_index(r.stripe_index);
  if (r.wanted) write_request(*r.wanted, *m.mutable_entries());
  m.set_first_byte(r.range.first);
  m.set_bytes(r.range.count);
  m.set_old_size(r.old_size);
  m.set_since(r.since);
  m.set_lost(r.lost || (r.kind == io_kind::read && r.file->still_there));
  m.set_copies(r.copies);
  if (r.file->capability) m.set_capability(r.file->capability->bytes());
  if (r.into) {
    write_file(*r.into, *m.mutable_into());
    if (r.into->capability) m.set_into_capability(r.into->capability->bytes());
  }
  return m.SerializeAsString();
}

std::vector<storage::region> regions_of(const io_request& r) {
  std::vector<storage::region> regions;
  if (!regions_within(r, max_steps, regions))
    throw usage_error(errc::invalid_request, "'" + r.file->name + "': a request of more than " +
                                                 std::to_string(max_steps) +
                                                 " regions on one node; it is to be made in several, of a part of the "
                                                 "repetitions each");
  return regions;
}

bool regions_within(const io_request& r, std::uint64_t steps, std::vector<storage::region>& regions) {
  if (!object_regions_within(*r.wanted, r.file->striping, r.stripe_index, steps, regions)) return false;
  if (r.range != storage::byte_range{}) cut(regions, r.range);
  return true;
}

io_request decode_io_request(std::string_view body) {
  const auto m = parse<pb::IoRequest>(body);
  if (m.old_size() >= max_size) malformed_message("a file that had 2^63 bytes or more");
  io_request r;
  r.stripe_index = m.stripe_index();
  r.range = {m.first_byte(), m.bytes()};
  r.old_size = m.old_size();
  r.since = m.since();
  r.lost = m.lost();
  r.copies = m.copies();
  r.capability = m.capability();
  auto file = read_file(m.file());
  file->still_there = m.lost();
  r.file = std::move(file);
  if (m.has_into()) r.into = read_file(m.into());
  r.into_capability = m.into_capability();
  r.wanted = std::make_shared<const request>(read_request(m.entries(), max_entries));
  return r;
}

void write_failure(const failure& f, pb::Failure& m) {
  const bool own = f.code.category() == error_category();
  m.set_category(own ? 1 : 0);
  m.set_code(own ? f.code.value() : f.code.default_error_condition().value());
  m.set_text(f.what);
}

std::string encode(const failure& f) {
  pb::Failure m;
  write_failure(f, m);
  return m.SerializeAsString();
}

failure decode_failure(std::string_view body) { return read_failure(parse<pb::Failure>(body)); }

failure read_failure(const pb::Failure& m) {
  failure f;
  f.what = m.text();
  if (m.category() == 1)
    f.code = {m.code(), error_category()};
  else
    f.code = {m.code(), std::generic_category()};
  if (!f.code) f.code = std::make_error_code(std::errc::io_error);
  return f;
}

std::string encode_answer(io_kind kind, const node_answer& a) {
  if (kind == io_kind::list) {
    pb::FileIds m;
    m.mutable_ids()->Add(a.ids.begin(), a.ids.end());
    return m.SerializeAsString();
  }
  if (kind == io_kind::find_changes) {
    pb::Changes m;
    for (const storage::byte_interval& r : a.ranges) {
      m.add_ends(r.begin);
      m.add_ends(r.end);
    }
    return m.SerializeAsString();
  }
  if (kind != io_kind::verify) return {};
  pb::VerifyReport m;
  m.set_chunks(a.report.chunks);
  m.set_torn(a.report.torn);
  m.set_corrupt(a.report.corrupt);
  m.set_lost(a.report.lost);
  for (const std::string& p : a.report.problems) m.add_problems(p);
  return m.SerializeAsString();
}

void decode_answer(io_kind kind, std::string_view body, node_answer& a) {
  if (kind == io_kind::list) {
    const auto m = parse<pb::FileIds>(body);
    a.ids.assign(m.ids().begin(), m.ids().end());
  } else if (kind == io_kind::find_changes) {
    const auto m = parse<pb::Changes>(body);
    if (m.ends_size() % 2 != 0) malformed_message("changes of which one has no end");
    a.ranges.clear();
    for (int i = 0; i < m.ends_size(); i += 2) {
      if (m.ends(i) >= m.ends(i + 1) || (i > 0 && m.ends(i - 1) > m.ends(i)))
        malformed_message("changes that do not ascend");
      a.ranges.push_back({m.ends(i), m.ends(i + 1)});
    }
  } else if (kind == io_kind::verify) {
    const auto m = parse<pb::VerifyReport>(body);
    a.report = {.chunks = m.chunks(), .torn = m.torn(), .lost = m.lost(), .problems = {}, .corrupt = m.corrupt()};
    a.report.problems.assign(m.problems().begin(), m.problems().end());
  }
}

std::string encode_fence(const std::vector<std::uint64_t>& connections) {
  pb::Fence m;
  m.mutable_connections()->Add(connections.begin(), connections.end());
  return m.SerializeAsString();
}

std::vector<std::uint64_t> decode_fence(std::string_view body) {
  const auto m = parse<pb::Fence>(body);
  if (static_cast<std::size_t>(m.connections_size()) > max_fenced)
    malformed_message("a fence of more than " + std::to_string(max_fenced) + " connections");
  return {m.connections().begin(), m.connections().end()};
}

namespace {

constexpr std::uint64_t io_stats::*counters[] = {
    &io_stats::read_requests,     &io_stats::write_requests,       &io_stats::read_regions, &io_stats::write_regions,
    &io_stats::bytes_read,        &io_stats::bytes_written,        &io_stats::device_reads, &io_stats::device_writes,
    &io_stats::device_bytes_read, &io_stats::device_bytes_written, &io_stats::syncs};
constexpr std::size_t io_counters = sizeof(io_stats) / sizeof(std::uint64_t);
static_assert(std::size(counters) == io_counters);

}  // namespace

std::string encode(const node_statistics& s) {
  pb::Statistics m;
  for (const auto counter : counters) m.add_io(s.io.*counter);
  m.set_clients(s.clients);
  m.set_waiting(s.waiting);
  m.set_running(s.running);
  m.set_buffer_bytes(s.buffer_bytes);
  m.set_buffer_limit(s.buffer_limit);
  m.set_disk_bytes(s.disk_bytes);
  m.set_disk_free(s.disk_free);
  m.set_started_ns(s.started_ns);
  m.set_version(s.version);
  m.set_disk(s.disk);
  return m.SerializeAsString();
}

node_statistics decode_statistics(std::string_view body) {
  const auto m = parse<pb::Statistics>(body);
  node_statistics s;
  for (std::size_t i = 0; i < io_counters && i < static_cast<std::size_t>(m.io_size()); ++i)
    s.io.*counters[i] = m.io(static_cast<int>(i));
  s.clients = m.clients();
  s.waiting = m.waiting();
  s.running = m.running();
  s.buffer_bytes = m.buffer_bytes();
  s.buffer_limit = m.buffer_limit();
  s.disk_bytes = m.disk_bytes();
  s.disk_free = m.disk_free();
  s.started_ns = m.started_ns();
  s.version = m.version();
  s.disk = m.disk();
  return s;
}

}  // namespace ooc::wire
