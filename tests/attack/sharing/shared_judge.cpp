#include "attack/sharing/shared_judge.hpp"

#include <algorithm>
#include <optional>

#include "oocarray/error.hpp"
#include "oocarray/units.hpp"

namespace ooc::attack {

namespace {

shared_content after(shared_content c, const deed& d) {
  if (is_write(d.o.what)) c.write(d.where, d.o.number);
  if (d.o.what == action::truncate) c.truncate(d.o.length);
  return c;
}

touched_chunks touched_by(const shared_file& f, const deed& d) {
  return d.o.what == action::truncate ? touched_chunks::of_cut(f.striping, d.o.length)
                                      : touched_chunks(f.striping, d.where);
}

}  // namespace

void shared_judge::bytes_and_size(shared_file& f, const std::vector<deed*>& deeds) {
  if (f.removed && std::any_of(deeds.begin(), deeds.end(), [](deed* d) { return !d->done(); })) f.unknown = true;
  // Every order in which they may have been done, and what each may have met.
  const shared_content before = f.content;
  std::vector<shared_content> ends, met{before};
  const auto both = [&](const deed& a, const deed& b) {
    ends.push_back(after(after(before, a), b));
    if (!b.done()) ends.push_back(after(before, a));
    if (!a.done()) ends.push_back(after(before, b));
    if (!a.done() && !b.done()) ends.push_back(before);
  };
  if (deeds.size() == 1) {
    ends.push_back(after(before, *deeds[0]));
    if (!deeds[0]->done()) ends.push_back(before);
  } else {
    both(*deeds[0], *deeds[1]);
    both(*deeds[1], *deeds[0]);
    for (const deed* d : deeds) met.push_back(after(before, *d));
    met.insert(met.end(), ends.begin(), ends.end());
  }
  for (const deed* d : deeds)
    if (d->cut_short && changes_bytes(d->o.what)) f.torn.add(touched_by(f, *d));
  for (const deed* d : deeds) check(f, *d, met);
  // A call that changed nothing leaves no doubt.
  if (std::any_of(deeds.begin(), deeds.end(), [](const deed* d) { return changes_bytes(d->o.what); }))
    f.content = shared_content::any_of(ends);
}

void shared_judge::check(shared_file& f, const deed& d, const std::vector<shared_content>& met) {
  if (d.cut_short) return;
  if (!d.a.ok) {
    if (f.removed) return;
    if (d.a.is(errc::torn) && f.torn.meet(touched_by(f, d))) {
      ++w_.r.counts().torn;
      return;
    }
    fail(d);
  }
  if (is_write(d.o.what))
    for (const extent& e : d.where) w_.r.counts().acknowledged_bytes += e.end - e.begin;
  if (f.unknown) return;
  const auto expect = [&](std::uint64_t low, std::uint64_t high) {
    if (d.a.value < low || d.a.value > high)
      throw finding(d.a.value < low && (is_read(d.o.what) || d.o.what == action::size) ? verdict::lost : verdict::wrong,
                    text_of(d) + " gives " + std::to_string(d.a.value) + " instead of " + std::to_string(low) + " to " +
                        std::to_string(high));
  };
  std::uint64_t least = ~std::uint64_t{0}, most = 0;
  for (const shared_content& c : met) {
    least = std::min(least, c.size());
    most = std::max(most, c.size());
  }
  if (d.o.what == action::size) expect(least, most);
  if (d.o.what == action::open || d.o.what == action::create) expect(f.id, f.id);
  if (d.o.what == action::write || d.o.what == action::append) expect(d.where[0].end, d.where[0].end);
  if (d.o.what == action::read_at || d.o.what == action::read_blindly) {
    const auto readable = [&](std::uint64_t size) { return std::min(d.o.length, size - std::min(size, d.o.offset)); };
    expect(readable(least), d.o.what == action::read_at ? readable(most) : d.o.length);
    compare(f, d, {{d.o.offset, d.o.offset + d.a.value}}, met);
  }
  if (d.o.what == action::read_strided) compare(f, d, d.where, met);
}

void shared_judge::compare(const shared_file& f, const deed& d, const std::vector<extent>& where,
                           const std::vector<shared_content>& met) {
  const std::byte* got = w_.board(d.program).data;
  for (const extent& e : where)
    for (std::uint64_t i = e.begin; i < e.end; ++i, ++got)
      if (std::none_of(met.begin(), met.end(), [&](const shared_content& c) { return c.may_be(i, *got, f.fill); }))
        differs(f, d, {i, e.end}, got, met.front().number(i));
}

void shared_judge::differs(const shared_file& f, const deed& d, extent e, const std::byte* got, write_number expected) {
  std::string what =
      text_of(d) + ": byte " + std::to_string(e.begin) + " is not that of write " + std::to_string(expected);
  const std::uint64_t end = std::min(e.end, e.begin + 8);
  for (write_number n = 0; n <= w_.last_number; ++n) {
    const std::byte* b = got;
    std::uint64_t i = e.begin;
    while (i < end && *b == byte_of(n, i, f.fill)) ++i, ++b;
    if (i != end || n == expected) continue;
    throw finding(verdict::lost,
                  what + ", but " + (n == 0 ? "the fill pattern" : "that of write " + std::to_string(n)));
  }
  throw finding(verdict::wrong, what + ", nor of any other");
}

void shared_judge::handles_after(const deed& d, bool beside_another) {
  handle& h = w_.handles[d.program][d.o.slot];
  if (d.o.what == action::open && !d.cut_short) {
    if (!d.file) {
      if (d.a.ok || !d.a.is(std::errc::no_such_file_or_directory)) fail(d);
      h = {};
    } else if (d.a.ok) {
      h = {};
      h.file = d.file;
      h.read_only = d.o.read_only;
    }
  }
  if (d.o.what == action::close) h = {};
  if (!h.file) return;
  if (is_write(d.o.what)) {
    if (d.grows && !beside_another && d.done()) ++h.growths;
    h.growths_perhaps += beside_another ? 2 : d.grows ? 1 : 0;
    if ((d.o.what == action::write || d.o.what == action::append) && d.done()) h.position = d.where[0].end;
  }
}

void shared_judge::settle(const file_ptr& f, const std::vector<deed*>& deeds, bool killed) {
  std::size_t p = deeds.back()->program;
  std::optional<std::uint32_t> slot;
  for (std::uint32_t s = 0; s < w_.files; ++s)
    if (w_.handles[p][s].file == f) slot = s;
  if (!slot || (killed && w_.r.one_in(2))) {
    if (killed) p = deeds.front()->program;
    slot = w_.slot_of(f);
    open_and_read(p, *slot);
  } else {
    ask_size(p, *slot);
    read_all(p, *slot);
  }
}

void shared_judge::open_and_read(std::size_t p, std::uint32_t slot) {
  deed d = w_.call(p, action::open, slot);
  w_.must(d);
  handles_after(d, false);
  ask_size(p, slot);
  read_all(p, slot);
}

void shared_judge::ask_size(std::size_t p, std::uint32_t slot) {
  deed d = w_.call(p, action::size, slot);
  w_.must(d);
  shared_content& c = d.file->content;
  std::set<std::uint64_t> sizes = c.sizes();
  if (sizes.empty()) sizes.insert(c.size());
  if (sizes.count(d.a.value) == 0) {
    std::string may;
    for (const std::uint64_t s : sizes) may += " " + std::to_string(s);
    throw finding(d.a.value < *sizes.begin() ? verdict::lost : verdict::wrong,
                  text_of(d) + " gives " + std::to_string(d.a.value) + " instead of" + may);
  }
  c.has_size(d.a.value);
}

void shared_judge::read_all(std::size_t p, std::uint32_t slot) {
  const file_ptr f = w_.handles[p][slot].file;
  deed d = reading(p, slot, 0, f->content.size());
  w_.ask(d);
  if (d.a.is(errc::torn))
    mend_torn(p, slot);
  else
    check(*f, d, {f->content});
  f->torn = {f->striping, {}};
}

deed shared_judge::reading(std::size_t p, std::uint32_t slot, std::uint64_t offset, std::uint64_t length) {
  deed d = w_.call(p, action::read_at, slot);
  d.o.offset = offset;
  d.o.length = length;
  d.where = {{offset, offset + length}};
  return d;
}

/// Only what was being written by somebody who was killed may be refused as torn; written as a whole, it is good again.
void shared_judge::mend_torn(std::size_t p, std::uint32_t slot) {
  const file_ptr f = w_.handles[p][slot].file;
  for (std::uint64_t at = 0, size = f->content.size(); at < size;) {
    const std::uint64_t length =
        std::min({size - at, f->striping.sf - at % f->striping.sf, 4_KiB - f->striping.node_offset(at) % 4_KiB});
    deed d = reading(p, slot, at, length);
    w_.ask(d);
    check(*f, d, {f->content});
    at += length;
  }
  if (w_.handles[p][slot].read_only) {
    deed again = w_.call(p, action::open, w_.slot_of(f));
    slot = again.o.slot;
    w_.must(again);
    handles_after(again, false);
  }
  deed d = reading(p, slot, 0, f->content.size());
  d.o.what = action::write_at;
  d.o.number = ++w_.last_number;
  w_.must(d);
  f->content.write(d.where, d.o.number);
  d = reading(p, slot, 0, f->content.size());
  w_.ask(d);
  f->torn = {f->striping, {}};
  check(*f, d, {f->content});
}

}  // namespace ooc::attack
