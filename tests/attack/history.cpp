#include "attack/history.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "attack/elements.hpp"
#include "oocarray/ooc_array.hpp"
#include "support/pauses.hpp"

namespace ooc::attack {

namespace {

constexpr std::size_t chunk = 512;  // elements in the 4 KiB that one checksum covers

}  // namespace

history::history(std::uint64_t seed, std::size_t elements, std::uint64_t epochs, bool with_durable)
    : elements_(elements) {
  std::mt19937_64 g(seed);
  for (std::uint64_t e = 0; e < epochs; ++e) {
    epoch now;
    std::set<std::uint32_t> written;
    for (std::uint64_t n = draw(g, 1, 4); n > 0; --n) {
      const std::uint64_t begin = draw(g, 0, elements - 1);
      const std::uint64_t most = draw(g, 0, 2) == 0 ? 6000 : 100;
      for (std::uint64_t i = begin; i < std::min(elements, begin + draw(g, 1, most)); ++i)
        written.insert(static_cast<std::uint32_t>(i));
    }
    for (int n = 0; n < 10; ++n) written.insert(static_cast<std::uint32_t>(draw(g, 0, elements - 1)));
    now.elements.assign(written.begin(), written.end());
    now.durable = with_durable && draw(g, 0, 3) == 0;
    epochs_.push_back(std::move(now));
  }
}

writer_options draw_writer(round& r, std::string url, std::uint64_t nodes) {
  writer_options o;
  o.url = std::move(url);
  o.block = 4096 << r.between(0, 5);
  o.memory = nodes * 64_KiB + o.block * r.between(10, 40);
  o.shared = r.one_in(3);
  o.sparse = r.one_in(3);
  o.promise = r.one_in(3);
  return o;
}

store open_store(const writer_options& o) {
  store_options s;
  s.workers = 1;
  s.staging = 64_KiB;
  s.deadline = o.deadline;
  return store::open(o.url, s);
}

report_pipe::report_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  read_ = ends[0];
  write_ = ends[1];
}
report_pipe::~report_pipe() {
  ::close(read_);
  if (write_ >= 0) ::close(write_);
}
void report_pipe::write(std::uint64_t epoch) const {
  if (::write(write_, &epoch, sizeof epoch) != sizeof epoch) ::_exit(1);
}
void report_pipe::writer_started() {
  ::close(write_);
  write_ = -1;
}
std::uint64_t report_pipe::wait_for(std::uint64_t wanted, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (last_ < wanted) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd p{read_, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&p, 1, static_cast<int>(left.count())) != 1) break;
    if (::read(read_, &last_, sizeof last_) != sizeof last_) break;
  }
  return last_;
}
std::uint64_t report_pipe::last() { return wait_for(~std::uint64_t{0}, std::chrono::seconds(10)); }

void write_history(const history& h, const writer_options& o, const report_pipe& to, totals& t) {
  const store s = open_store(o);
  runtime rt{{.memory = o.memory}};
  array_options<std::uint64_t> options;
  options.block = o.block;
  options.shared = o.shared;
  options.sparse = o.sparse;
  ooc_array<std::uint64_t, 1> a{rt, s, o.path, create, {h.elements()}, options};
  a.writeback(durable);
  to.write(0);
  for (std::uint64_t e = 1; e <= h.epochs(); ++e) {
    const auto& elements = h.writes(e).elements;
    for (std::size_t n = 0; n < elements.size();) {
      std::size_t end = n + 1;
      while (end < elements.size() && elements[end] == elements[end - 1] + 1) ++end;
      const box<1> run{{elements[n]}, {elements[end - 1] + std::size_t{1}}};
      if (o.promise && end - n > 20) a.overwrite(run);
      for (; n < end; ++n) a[elements[n]] = history::value(e, elements[n]);
    }
    a.writeback(h.writes(e).durable ? durable : durability::acknowledged);
    to.write(e);
    t.operations += elements.size();
    t.acknowledged_bytes += elements.size() * sizeof(std::uint64_t);
    testing::let_pass(o.pause);  // so that it lasts until it is disturbed
  }
  a.close();
}

void check_history(const history& h, const writer_options& o, const after_crash& c, round& r) {
  std::vector<std::uint64_t> must(h.elements(), 0);  // the epoch of the value that is certain
  std::map<std::uint32_t, std::vector<std::uint64_t>> may;
  for (std::uint64_t e = 1; e <= std::min(c.kept, h.epochs()); ++e)
    for (const std::uint32_t i : h.writes(e).elements) must[i] = e;
  for (std::uint64_t e = c.kept + 1; e <= std::min(c.last, h.epochs()); ++e)
    for (const std::uint32_t i : h.writes(e).elements) may[i].push_back(e);

  const store s = open_store(o);
  runtime rt{{.memory = o.memory + 1_MiB}};
  auto a = c.read_only ? ooc_array<std::uint64_t, 1>{rt, s, o.path, open_read_only}
                       : ooc_array<std::uint64_t, 1>{rt, s, o.path, open};
  if (a.size() != h.elements()) throw finding(verdict::wrong, "the array has another size");
  std::vector<std::uint64_t> got(chunk);
  for (std::size_t begin = 0; begin < h.elements(); begin += chunk) {
    const std::size_t end = std::min(begin + chunk, h.elements());
    got.resize(end - begin);
    try {
      a.read_all({{begin}, {end}}, got);
    } catch (const io_error& e) {
      // Only what a later epoch was writing may be cut short.
      const auto changed = may.lower_bound(static_cast<std::uint32_t>(begin));
      if (changed == may.end() || changed->first >= end)
        throw finding(verdict::lost, "elements from " + std::to_string(begin) + " on, which no epoch after " +
                                         std::to_string(c.kept) + " wrote, cannot be read: " + e.what());
      ++r.counts().torn;
      continue;
    }
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint64_t v = got[i - begin];
      if (v == (must[i] == 0 ? 0 : history::value(must[i], i))) continue;
      const auto later = may.find(static_cast<std::uint32_t>(i));
      if (later != may.end() && std::any_of(later->second.begin(), later->second.end(),
                                            [&](std::uint64_t e) { return v == history::value(e, i); }))
        continue;
      const bool old = v == 0 || ((v & 0xffffffff) == i && v >> 32 < must[i]);
      throw finding(old ? verdict::lost : verdict::wrong,
                    "element " + std::to_string(i) + " reads as " + std::to_string(v >> 32) + "/" +
                        std::to_string(v & 0xffffffff) + ", kept was epoch " + std::to_string(must[i]) + " (block " +
                        std::to_string(o.block) + (o.shared ? ", shared" : "") + (o.promise ? ", promises" : "") +
                        "; epochs up to " + std::to_string(c.kept) + " are kept)");
    }
  }
}

std::uint64_t verify_store(const std::string& url, bool corrupt_too) {
  const command_result v = run_command({OOC_COMMAND, "verify", "--json", "--store", url});
  const auto begin = v.output.find('{');
  if (begin == std::string::npos)
    throw finding(verdict::failed, "ooc verify: status " + std::to_string(v.status) + ": " + v.output);
  const auto j = nlohmann::json::parse(v.output.substr(begin), nullptr, false);
  if (j.is_discarded()) throw finding(verdict::failed, "ooc verify prints no JSON: " + v.output);
  if (!corrupt_too && j.at("corrupt") != 0) throw finding(verdict::lost, "ooc verify: " + v.output);
  return j.at("torn").get<std::uint64_t>();
}

}  // namespace ooc::attack
