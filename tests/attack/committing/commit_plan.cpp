#include "attack/committing/commit_plan.hpp"

#include <algorithm>
#include <utility>

#include "attack/elements.hpp"
#include "oocarray/commit.hpp"
#include "support/pauses.hpp"

namespace ooc::attack {

namespace {

constexpr std::size_t greatest_size = 40'000;

std::mt19937_64 dice_of(std::uint64_t seed, std::uint64_t step, std::size_t i) {
  return std::mt19937_64(seed * 0x9e3779b97f4a7c15u + step * 64 + i);
}

std::uint64_t value(std::uint64_t step, std::size_t element) { return step << 32 | element; }

}  // namespace

commit_plan::commit_plan(std::uint64_t seed, std::string url, totals& t)
    : seed_(seed), url_(std::move(url)), totals_(t) {
  std::mt19937_64 g(seed);
  arrays_ = draw(g, 1, 5);
  block_ = 4096 << draw(g, 0, 2);
  blocks_ = draw(g, 20, 60);
  stripe_ = draw(g, 0, 1) == 0 ? 0 : 4096 * draw(g, 1, 4);
  pause_ = std::chrono::milliseconds(draw(g, 0, 3));
}

store commit_plan::open_store() const { return store::open(url_, {.workers = 1, .staging = 64_KiB}); }

runtime_options commit_plan::memory() const { return {.memory = 3 * 64_KiB + block_ * blocks_ * arrays_}; }

std::size_t commit_plan::first_size(std::size_t i) const {
  std::mt19937_64 g = dice_of(seed_, 0, i);
  return draw(g, 1, greatest_size);
}

commit_plan::change commit_plan::of(std::uint64_t step, std::size_t i, std::size_t size) const {
  std::mt19937_64 g = dice_of(seed_, step, i);
  change c;
  c.size = draw(g, 0, 5) == 0 ? draw(g, 1, greatest_size) : size;
  for (std::uint64_t n = draw(g, 0, 4); n > 0; --n) {
    const std::size_t begin = draw(g, 0, c.size - 1);
    const std::uint64_t most = draw(g, 0, 2) == 0 ? c.size : 100;
    c.runs.push_back({begin, std::min<std::size_t>(c.size, begin + draw(g, 1, most))});
  }
  c.notes = draw(g, 0, 2) == 0;
  return c;
}

bool commit_plan::rolled_back(std::uint64_t step) const {
  std::mt19937_64 g = dice_of(seed_, step, 63);
  return draw(g, 0, 7) == 0;
}

std::uint64_t commit_plan::next_commit(std::uint64_t step) const {
  for (++step; step <= steps && rolled_back(step);) ++step;
  return step;
}

commit_plan::content commit_plan::after(std::uint64_t last, std::size_t i) const {
  content now{std::vector<std::uint64_t>(first_size(i)), ""};
  for (std::uint64_t s = next_commit(0); s <= last; s = next_commit(s)) {
    const change c = of(s, i, now.elements.size());
    now.elements.resize(c.size);
    for (const auto& r : c.runs)
      for (std::size_t k = r.begin; k < r.end; ++k) now.elements[k] = value(s, k);
    if (c.notes) now.note = std::to_string(s);
  }
  return now;
}

void commit_plan::run(rank_board& board, const std::shared_ptr<process_group>& group) const {
  const std::size_t rank = group ? static_cast<std::size_t>(group->rank()) : 0;
  const std::size_t ranks = group ? static_cast<std::size_t>(group->size()) : 1;
  board.pids[rank] = ::getpid();
  if (rank == 0) open_store();
  if (group) group->barrier("the store is there");
  const store s = open_store();
  runtime rt(memory());
  std::vector<array> all;
  std::vector<array_base*> pointers;
  for (std::size_t i = 0; i < arrays_; ++i) {
    array_options<std::uint64_t> o;
    o.block = block_;
    o.stripes.sf = stripe_;
    o.max_extents = {greatest_size};
    o.sparse = seed_ % 2 == i % 2;  // gives back what the commit before had
    o.commits = true;
    o.group = group;
    all.push_back({rt, s, path(i), create, {first_size(i)}, o});
  }
  for (array& a : all) pointers.push_back(&a);
  commit(pointers);  // durably there
  if (rank == 0) board.made = true;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    std::mt19937_64 g = dice_of(seed_, step, 62);
    for (std::size_t i = 0; i < arrays_; ++i) {
      array& a = all[i];
      const change c = of(step, i, a.size());
      if (c.size != a.size()) a.resize(c.size);
      for (const auto& r : c.runs)
        for (std::size_t k = r.begin; k < r.end; ++k)
          if (k % ranks == rank) a[k] = value(step, k);
      if (c.notes && rank == 0) a.set_attribute("note", std::to_string(step));
      if (draw(g, 0, 3) == 0) a.writeback();
      if (draw(g, 0, 7) == 0) a.sync();
    }
    if (rolled_back(step)) {
      for (array& a : all) a.roll_back();
    } else {
      commit(pointers, {{"step", std::to_string(step)}});
      if (rank == 0) board.acknowledged = step;
      if (rank == 0 && draw(g, 0, 9) == 0) keep(s, step);
    }
    ++totals_.operations;
    testing::let_pass(pause_);  // so that it lasts until it is disturbed
  }
}

void commit_plan::keep(const store& s, std::uint64_t step) const {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < arrays_; ++i) paths.push_back(path(i));
  s.snapshot(paths, std::to_string(step), {.copy = true});
}

void commit_plan::check_kept(const store& s, runtime& rt) const {
  for (const store_entry& e : s.list("committed")) {
    const auto at = e.path.find('@');
    if (at == std::string::npos) continue;
    const std::size_t i = std::stoull(e.path.substr(e.path.find('/') + 1));
    const array a(rt, s, e.path, open_read_only);
    check_content(a, "snapshot " + e.path, after(std::stoull(e.path.substr(at + 1)), i));
  }
}

std::uint64_t commit_plan::step_of(const array& a, std::size_t i, std::uint64_t kept) const {
  const commit_info last = *a.last_commit();
  const auto given = last.attributes.find("step");
  const std::uint64_t step = given == last.attributes.end() ? 0 : std::stoull(given->second);
  if (step != kept && step != next_commit(kept))
    throw finding(step < kept ? verdict::lost : verdict::wrong,
                  "array " + std::to_string(i) + " is at the commit of step " + std::to_string(step) +
                      ", the last one that returned was that of step " + std::to_string(kept));
  return step;
}

void commit_plan::check_one(const array& a, std::size_t i, std::uint64_t step) const {
  check_content(a, "array " + std::to_string(i) + " at the commit of step " + std::to_string(step), after(step, i));
}

void commit_plan::check_content(const array& a, const std::string& what, const content& must) const {
  if (a.size() != must.elements.size())
    throw finding(verdict::wrong,
                  what + " has " + std::to_string(a.size()) + " elements, not " + std::to_string(must.elements.size()));
  std::vector<std::uint64_t> got(a.size());
  try {
    a.read_all(a.whole(), got);
  } catch (const io_error& e) {
    throw finding(verdict::lost, what + " cannot be read: " + e.what());
  }
  for (std::size_t k = 0; k < got.size(); ++k)
    if (got[k] != must.elements[k])
      throw finding(verdict::wrong, what + ": element " + std::to_string(k) + " is of step " +
                                        std::to_string(got[k] >> 32) + ", not " +
                                        std::to_string(must.elements[k] >> 32));
  const auto notes = a.attributes();
  const auto note = notes.find("note");
  if ((note == notes.end() ? "" : note->second) != must.note)
    throw finding(verdict::wrong,
                  what + " has note '" + (note == notes.end() ? "" : note->second) + "', not '" + must.note + "'");
}

void commit_plan::check(std::uint64_t kept) const {
  const store s = open_store();
  runtime rt(memory());
  std::uint64_t step = kept;
  for (std::size_t i = 0; i < arrays_; ++i) {
    const array a(rt, s, path(i), open_read_only);
    const std::uint64_t found = step_of(a, i, kept);
    if (i > 0 && found != step)
      throw finding(verdict::wrong, "array " + std::to_string(i) + " is at the commit of step " +
                                        std::to_string(found) + ", others at that of step " + std::to_string(step));
    step = found;
    check_one(a, i, step);
  }
  check_kept(s, rt);
}

void commit_plan::go_on(std::uint64_t kept, std::chrono::seconds patience) const {
  const store s = open_store();
  runtime rt(memory());
  array_options<std::uint64_t> o;
  o.wait_for_writer = patience;
  std::vector<array> all;
  std::vector<array_base*> pointers;
  for (std::size_t i = 0; i < arrays_; ++i) {
    all.push_back({rt, s, path(i), open, o});
    check_one(all.back(), i, step_of(all.back(), i, kept));
  }
  for (array& a : all) {
    pointers.push_back(&a);
    a[a.size() - 1] = 1;
  }
  commit(pointers, {{"after", "the crash"}});
  for (array& a : all) {
    a[0] = 2;
    a.roll_back();
    if (a[a.size() - 1] != 1) throw finding(verdict::wrong, "a commit after the crash does not hold its last element");
  }
}

}  // namespace ooc::attack
