#include "attack/sharing/shared_world.hpp"

#include <algorithm>
#include <iostream>

namespace ooc::attack {

std::string text_of(const deed& d) {
  std::string s = "program " + std::to_string(d.program) + ", " + name_of(d.o.what) + " " + file_name(d.o.slot);
  if (d.o.read_only) s += " read-only";
  if (d.o.what == action::rename || d.o.what == action::replace) s += " to " + file_name(d.o.to);
  if (d.o.what == action::truncate || d.o.what == action::create) s += " " + std::to_string(d.o.length);
  if (d.o.what == action::create)
    s += " on " + std::to_string(d.o.striping.nn) + " nodes from " + std::to_string(d.o.striping.sn) +
         " in stripes of " + std::to_string(d.o.striping.sf) + (d.o.sparse ? ", sparse" : "");
  if (d.o.number != 0) s += " as write " + std::to_string(d.o.number);
  for (const extent& e : d.where) s += " [" + std::to_string(e.begin) + "," + std::to_string(e.end) + ")";
  return s;
}

void fail(const deed& d) { throw finding(verdict::failed, text_of(d) + ": " + (d.a.ok ? "done" : d.a.text)); }

std::uint32_t shared_world::slot_of(const file_ptr& f) const {
  return static_cast<std::uint32_t>(std::find(names.begin(), names.end(), f) - names.begin());
}

deed shared_world::call(std::size_t p, action what, std::uint32_t slot) const {
  deed d;
  d.program = p;
  d.o.what = what;
  d.o.slot = slot;
  d.file = what == action::open || what == action::remove ? names[slot] : handles[p][slot].file;
  return d;
}

void shared_world::tell(deed& d) const {
  std::cout << text_of(d) << std::endl;
  if (is_write(d.o.what) && d.file)
    d.grows =
        std::any_of(d.where.begin(), d.where.end(), [&](const extent& e) { return e.end > d.file->content.size(); });
  programs[d.program]->tell(d.o);
}
void shared_world::ask(deed& d) const {
  tell(d);
  d.a = programs[d.program]->wait();
}
void shared_world::must(deed& d) const {
  ask(d);
  if (!d.a.ok) fail(d);
}

}  // namespace ooc::attack
