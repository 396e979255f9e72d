#include "attack/sharing/shared_names.hpp"

#include <algorithm>

#include "oocarray/error.hpp"
#include "support/pauses.hpp"

namespace ooc::attack {

using std::chrono::milliseconds;
using std::chrono::seconds;

void shared_names::after(deed& d) {
  const std::uint32_t from = d.o.slot, to = d.o.to;
  const file_ptr had = w_.names[from], target = w_.names[to];
  if (d.o.what != action::remove) wait_for_maker(d);
  switch (d.o.what) {
    case action::create:
      if (!d.cut_short && had) {
        if (!d.a.is(std::errc::file_exists)) fail(d);
        return;
      }
      if (!d.cut_short) {
        if (!d.a.ok) fail(d);
        d.file->id = d.a.value;
        w_.names[from] = d.file;
        if (d.killed) return;
        w_.handles[d.program][from] = {};
        w_.handles[d.program][from].file = d.file;
        return;
      }
      if (!had) {
        w_.made_by_dead[from] = std::chrono::steady_clock::now() + w_.forgotten_after;
        return identify(from, {nullptr, d.file});
      }
      return identify(from, {had});
    case action::remove:
      if (d.cut_short) {
        identify(from, {had, nullptr});
        if (had && !w_.names[from]) had->removed = true;
        return;
      }
      if (refused(d, had, had)) return;
      w_.names[from] = nullptr;
      had->removed = true;
      return;
    case action::rename:
      if (!d.cut_short && target && had) {
        if (!d.a.is(std::errc::file_exists)) fail(d);
        return;
      }
      [[fallthrough]];
    default:
      if (d.cut_short) {
        const bool may = had && (d.o.what == action::replace || !target);
        identify(to, may ? std::vector<file_ptr>{target, had} : std::vector<file_ptr>{target});
        const bool moved = may && w_.names[to] == had;
        identify(from, {moved ? nullptr : had});
        if (moved && target) target->removed = true;
        return;
      }
      if (refused(d, had, target)) return;
      w_.names[to] = had;
      w_.names[from] = nullptr;
      if (target) target->removed = true;
  }
}

void shared_names::wait_for_maker(deed& d) const {
  const std::uint32_t place = d.o.what == action::create ? d.o.slot : d.o.to;
  const auto in_the_way = [&] {
    return !d.cut_short && !w_.names[place] &&
           (d.a.is(std::errc::file_exists) || d.a.is(std::errc::device_or_resource_busy));
  };
  while (in_the_way() && std::chrono::steady_clock::now() < w_.made_by_dead[place]) {
    testing::let_pass(milliseconds(50));
    w_.ask(d);
  }
}

bool shared_names::refused(deed& d, const file_ptr& source, const file_ptr& gone) {
  if (!source) {
    // An entry that would be replaced is looked at first.
    if (!d.a.is(std::errc::no_such_file_or_directory) && !(gone && d.a.is(errc::busy))) fail(d);
    return true;
  }
  if (!gone) {
    if (!d.a.ok) fail(d);
    return false;
  }
  // A program that was killed after its answer may have reserved space itself.
  bool must = false, may = d.killed || std::chrono::steady_clock::now() < gone->claimed_by_dead;
  for (std::size_t p = 0; p < w_.handles.size(); ++p)
    for (const handle& h : w_.handles[p]) {
      if (h.file != gone) continue;
      must = must || (p != d.program && h.growths > 1);
      may = may || h.growths_perhaps > 1;
    }
  if (d.a.ok) {
    if (must)
      throw finding(verdict::failed, text_of(d) + ": done, although another program reserves space for the file");
    return false;
  }
  if (!may || !d.a.is(errc::busy)) fail(d);
  ++w_.r.counts().refused;
  close_everywhere(gone);
  const auto until = std::max(gone->claimed_by_dead, std::chrono::steady_clock::now() + seconds(5));
  for (;;) {
    w_.ask(d);
    if (d.a.ok) return false;
    if (!d.a.is(errc::busy) || std::chrono::steady_clock::now() > until) fail(d);
    testing::let_pass(milliseconds(50));
  }
}

void shared_names::close_everywhere(const file_ptr& f) {
  for (std::size_t p = 0; p < w_.handles.size(); ++p)
    for (std::uint32_t s = 0; s < w_.files; ++s) {
      if (w_.handles[p][s].file != f) continue;
      deed d = w_.call(p, action::close, s);
      w_.must(d);
      judge_.handles_after(d, false);
    }
}

void shared_names::identify(std::uint32_t slot, const std::vector<file_ptr>& may) {
  deed d = w_.call(0, action::identify, slot);
  w_.must(d);
  for (const file_ptr& f : may) {
    if (f && f->id == no_file && d.a.value != no_file) f->id = d.a.value;
    if (d.a.value != (f ? f->id : no_file)) continue;
    w_.names[slot] = f;
    return;
  }
  throw finding(verdict::wrong,
                text_of(d) + ": the name stands for file " + std::to_string(static_cast<std::int64_t>(d.a.value)));
}

}  // namespace ooc::attack
