#include "attack/sharing/shared_draws.hpp"

#include <algorithm>

#include "oocarray/units.hpp"

namespace ooc::attack {

deed shared_draws::opening(std::size_t p, std::uint32_t slot) {
  deed d = w_.call(p, action::open, slot);
  d.o.read_only = w_.r.one_in(7);
  return d;
}

deed shared_draws::renaming(std::size_t p, std::uint32_t slot) {
  deed d = w_.call(p, w_.r.one_in(3) ? action::rename : action::replace, slot);
  d.o.to = static_cast<std::uint32_t>((slot + w_.r.between(1, w_.files - 1)) % w_.files);
  d.file = w_.names[slot];
  return d;
}

deed shared_draws::creation(std::size_t p, std::uint32_t slot) {
  deed d = w_.call(p, action::create, slot);
  auto made = std::make_shared<shared_file>();
  d.o.length = w_.r.one_in(2) ? 0 : w_.r.between(1, w_.most);
  made->striping.nn = static_cast<std::uint32_t>(w_.r.between(1, w_.nodes));
  made->striping.sn = static_cast<std::uint32_t>(w_.r.between(0, w_.nodes - 1));
  made->striping.sf = w_.r.one_in(4) ? w_.r.between(512, 65536) : std::uint64_t{512} << w_.r.between(0, 7);
  d.o.striping = made->striping;
  d.o.sparse = w_.r.one_in(3);
  d.o.fill = static_cast<std::uint32_t>(w_.r.one_in(2) ? 0 : w_.r.between(1, 7));
  for (std::uint32_t i = 0; i < d.o.fill; ++i)
    made->fill.push_back(w_.board(p).fill[i] = static_cast<std::byte>(w_.r.between(0, 255)));
  made->content = shared_content(d.o.length);
  d.file = std::move(made);
  return d;
}

deed shared_draws::any_transfer(std::size_t p, std::uint32_t slot, bool alone) {
  const handle& h = w_.handles[p][slot];
  deed d = w_.call(p, action::size, slot);
  const std::uint64_t size = h.file->content.size(), what = h.read_only ? w_.r.between(60, 89) : w_.r.between(0, 94);
  if (what < 25)
    extend(d, action::write_at);
  else if (what < 32)
    extend(d, action::write);
  else if (what < 40)
    extend(d, alone ? action::append : action::write_at);
  else if (what < 50)
    stride(d, action::write_strided);
  else if (what < 60)
    list(d);
  else if (what < 75)
    extend(d, action::read_at);
  else if (what < 79)
    extend(d, action::read_blindly);
  else if (what < 82)
    stride(d, action::read_strided);
  else if (what < 86 && !h.read_only)  // of a served store only who may write a file may sync it
    d.o.what = action::sync;
  else if (what >= 90) {
    d.o.what = action::truncate;
    const bool longer = w_.r.one_in(3);
    d.o.length = w_.r.one_in(6) ? 0
                 : longer       ? w_.r.between(size, std::min(w_.most, 2 * size + 1000))
                                : w_.r.between(0, size);
  }
  if (d.o.what == action::read_strided && !d.where.empty() && (!alone || d.where.back().end > size)) {
    d.where.clear();
    extend(d, action::read_at);
  }
  if (is_write(d.o.what)) d.o.number = ++w_.last_number;
  return d;
}

std::uint64_t shared_draws::any_offset(const shared_file& f) {
  const std::uint64_t size = f.content.size();
  return w_.r.one_in(3) ? w_.r.between(0, std::min(w_.most - 1, size + size / 4 + 1000))
                        : w_.r.between(0, std::min(w_.most - 1, size));
}
std::uint64_t shared_draws::any_length(std::uint64_t offset, std::uint64_t greatest) {
  return std::min(w_.most - offset, w_.r.one_in(3) ? w_.r.between(1, greatest) : w_.r.between(1, 3000));
}

void shared_draws::extend(deed& d, action what) {
  const handle& h = w_.handles[d.program][d.o.slot];
  d.o.offset = any_offset(*h.file);
  if (what == action::write && h.position < w_.most) d.o.offset = h.position;
  if (what == action::write && h.position >= w_.most) what = action::write_at;
  if (what == action::append && h.file->content.size() < w_.most) d.o.offset = h.file->content.size();
  if (what == action::append && h.file->content.size() >= w_.most) what = action::write_at;
  d.o.what = what;
  d.o.length = is_read(what) && w_.r.one_in(3) ? w_.r.between(1, w_.most) : any_length(d.o.offset, w_.most / 2);
  d.where = {{d.o.offset, d.o.offset + d.o.length}};
}

void shared_draws::stride(deed& d, action what) {
  strided_request s;
  s.rl = any_offset(*d.file);
  s.gs = w_.r.between(1, w_.r.one_in(3) ? 9000 : 1000);
  s.sd = s.gs + (w_.r.one_in(4) ? 0 : w_.r.between(0, 3 * s.gs));
  s.gc = w_.r.between(1, 8);
  if (w_.r.one_in(3)) s.fs = w_.r.between(1, s.gs);
  if (w_.r.one_in(3)) s.ls = w_.r.between(1, s.gs);
  const request all = request::strided(s, access_kind::write);
  if (all.bytes() == 0 || all.file_end() > w_.most)
    return extend(d, is_read(what) ? action::read_at : action::write_at);
  all.for_each_run([&](std::uint64_t file, std::uint64_t, std::uint64_t length) {
    d.where.push_back({file, file + length});
  });
  if (d.where.size() > program_board::most_pieces) {
    d.where.clear();
    return extend(d, is_read(what) ? action::read_at : action::write_at);
  }
  d.o.what = what;
  d.o.strided = s;
  d.o.length = all.bytes();
  on_board(d);
}

void shared_draws::list(deed& d) {
  std::uint64_t at = any_offset(*d.file);
  for (std::uint64_t n = w_.r.between(1, 12); n > 0 && at < w_.most; --n) {
    const std::uint64_t end = at + any_length(at, 10'000);
    d.where.push_back({at, end});
    d.o.length += end - at;
    at = end + (w_.r.one_in(3) ? 0 : w_.r.between(0, w_.most / 10));
  }
  std::shuffle(d.where.begin(), d.where.end(), w_.r.dice());
  d.o.what = action::write_list;
  on_board(d);
}
void shared_draws::on_board(deed& d) {
  d.o.pieces = static_cast<std::uint32_t>(d.where.size());
  std::copy(d.where.begin(), d.where.end(), w_.board(d.program).pieces);
}

}  // namespace ooc::attack
