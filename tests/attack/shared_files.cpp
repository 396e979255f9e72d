// Several programs have the same plain files open, and write, cut off, make longer, read, rename, replace and remove
// them, one at a time as this process tells them, sometimes two at once.  Programs are killed in the middle of a call,
// and so are the servers. Every acknowledged write is in the file, whoever has cut it off before; what a kill has cut
// short is old or new.
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "attack/sharing/shared_draws.hpp"
#include "attack/sharing/shared_judge.hpp"
#include "attack/sharing/shared_names.hpp"
#include "support/cluster_fixture.hpp"
#include "support/pauses.hpp"

namespace ooc::attack {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class shared_files_round {
 public:
  explicit shared_files_round(round& r)
      : r_(r),
        w_{.r = r,
           .most = std::uint64_t{20'000} << r.between(0, 5),
           .nodes = static_cast<std::uint32_t>(r.between(1, 3)),
           .files = r.between(1, most_files),
           .url = "local:"} {
    if (r.one_in(2)) {
      servers_ = std::make_unique<testing::cluster>(testing::cluster_options{
          .nodes = w_.nodes, .io_servers = w_.nodes, .metad = {"--grace", std::to_string(grace_seconds)}});
      w_.forgotten_after = seconds(grace_seconds + 10);
      w_.url = servers_->url();
    } else {
      for (std::uint32_t n = 0; n < w_.nodes; ++n)
        w_.url += (n == 0 ? "" : ",") + (r.folder() / ("node" + std::to_string(n))).string();
    }
    w_.handles.resize(r.between(2, 4));
    for (std::size_t p = 0; p < w_.handles.size(); ++p) {
      w_.programs.push_back(std::make_unique<sharing_program>(r));
      w_.programs[p]->start(w_.url);
    }
    kills_left_ = r.one_in(3) ? 0 : r.between(1, servers_ ? 3 : 8);
    outages_left_ = servers_ && r.one_in(2) ? r.between(1, 3) : 0;
    std::cout << w_.url << ": " << w_.handles.size() << " programs, " << w_.files << " files of up to " << w_.most
              << " bytes" << std::endl;
  }

  void run() {
    for (std::uint64_t n = r_.between(40, servers_ ? 200 : 400); n > 0; --n) step();
    for (auto& p : w_.programs) {
      answer none;
      if (r_.one_in(4))
        (void)p->kill(none);
      else
        p->leave();
    }
    w_.handles.assign(w_.handles.size(), {});
    // Nothing that has been acknowledged is only in a server's memory.
    if (servers_ && r_.one_in(2)) {
      for (std::uint32_t n = 0; n < w_.nodes; ++n) servers_->iod(n).kill();
      servers_->metad().restart();
      for (std::uint32_t n = 0; n < w_.nodes; ++n) servers_->iod(n).start();
    }
    w_.programs[0]->start(w_.url);
    for (std::uint32_t s = 0; s < w_.files; ++s) {
      names_.identify(s, {w_.names[s]});
      if (w_.names[s]) judge_.open_and_read(0, s);
    }
    w_.programs[0]->leave();
    verify();
  }

 private:
  static constexpr int grace_seconds = 2;  ///< of the metadata server, for clients that are gone

  void step() {
    ++r_.counts().operations;
    const std::size_t p = r_.between(0, w_.programs.size() - 1);
    const auto slot = static_cast<std::uint32_t>(r_.between(0, w_.files - 1));
    const handle& h = w_.handles[p][slot];
    if (!w_.names[slot] && (!h.file || r_.one_in(2))) return alone(draws_.creation(p, slot));
    if (!h.file || r_.one_in(25)) return alone(draws_.opening(p, slot));
    const std::uint64_t what = r_.between(0, 99);
    if (what < 2) return come_again(p);
    if (what < 4) return alone(w_.call(p, action::close, slot));
    if (what < 6) return alone(w_.call(p, action::remove, slot));
    if (what < 9 && w_.files > 1) return alone(draws_.renaming(p, slot));
    if (what < 10) return alone(draws_.creation(p, slot));
    if (what < 30) return two_at_once(p, slot);
    alone(draws_.any_transfer(p, slot, true));
  }

  void alone(deed d) {
    w_.tell(d);
    if (kills_left_ != 0 && r_.one_in(20)) {
      cut_short(d);
    } else {
      if (outages_left_ != 0 && r_.one_in(20)) server_outage();
      d.a = w_.programs[d.program]->wait();
    }
    judge({&d});
  }

  void two_at_once(std::size_t p, std::uint32_t slot) {
    deed a = draws_.any_transfer(p, slot, false);
    std::optional<deed> b = beside(a);
    if (!b) return alone(a);
    w_.tell(a);
    if (r_.one_in(2)) testing::random_pause(std::chrono::microseconds(10 << r_.between(0, 6)));
    w_.tell(*b);
    if (kills_left_ != 0 && r_.one_in(8)) {
      cut_short(a);
    } else {
      if (outages_left_ != 0 && r_.one_in(20)) server_outage();
      a.a = w_.programs[p]->wait();
    }
    b->a = w_.programs[b->program]->wait();
    judge({&a, &*b});
  }
  /// The work of another program with the same file.
  std::optional<deed> beside(const deed& a) {
    for (std::size_t q = 0; q < w_.programs.size(); ++q)
      for (std::uint32_t s = 0; s < w_.files && q != a.program; ++s) {
        if (w_.names[s] == a.file && r_.one_in(5)) return draws_.opening(q, s);
        if (w_.handles[q][s].file != a.file) continue;
        return r_.one_in(8) ? w_.call(q, action::close, s) : draws_.any_transfer(q, s, false);
      }
    return {};
  }

  /// Kills the program, in the middle of the call or after it.
  void cut_short(deed& d) {
    --kills_left_;
    testing::random_pause(std::chrono::microseconds(5 << r_.between(0, servers_ ? 11 : 9)));
    d.killed = true;
    d.cut_short = !w_.programs[d.program]->kill(d.a);
    std::cout << "  program " << d.program << " is killed" << (d.cut_short ? "" : ", and had answered") << std::endl;
  }

  void server_outage() {
    --outages_left_;
    testing::random_pause(std::chrono::microseconds(5 << r_.between(0, 9)));
    const auto n = static_cast<std::uint32_t>(r_.between(0, w_.nodes));
    std::cout << "  " << (n == w_.nodes ? "the metadata server" : "I/O server " + std::to_string(n)) << " is killed"
              << std::endl;
    testing::server_process& s = n == w_.nodes ? servers_->metad() : servers_->iod(n);
    s.kill();
    testing::random_pause(milliseconds(r_.between(0, 200)));
    s.start();
  }

  void come_again(std::size_t p) {
    std::cout << "program " << p << " ends, and another comes" << std::endl;
    w_.programs[p]->leave();
    w_.handles[p] = {};
    w_.programs[p]->start(w_.url);
  }

  void judge(const std::vector<deed*>& deeds) {
    deed& first = *deeds.front();
    const file_ptr f = first.file;
    const bool about_names = shared_names::changed_by(first.o.what);
    if (!about_names) {
      if (f) judge_.bytes_and_size(*f, deeds);
      for (deed* d : deeds) judge_.handles_after(*d, deeds.size() > 1);
    }
    if (first.killed) {
      // On a served store it counts for a while as one that may come back.
      for (handle& h : w_.handles[first.program])
        if (h.file) h.file->claimed_by_dead = std::chrono::steady_clock::now() + w_.forgotten_after;
      w_.handles[first.program] = {};
      w_.programs[first.program]->start(w_.url);
    }
    if (about_names) return names_.after(first);
    if (!f) return;
    if (f->removed)
      f->unknown = f->unknown || f->content.sizes().size() > 1;
    else if (first.killed || f->content.sizes().size() > 1)
      judge_.settle(f, deeds, first.killed);
  }

  void verify() const {
    const command_result v = run_command({OOC_COMMAND, "verify", "--json", "--store", w_.url});
    const auto begin = std::min(v.output.find('{'), v.output.size());
    const auto j = nlohmann::json::parse(v.output.substr(begin), nullptr, false);
    if (!j.contains("clean")) throw finding(verdict::failed, "ooc verify: " + v.output);
    if (!j.at("clean").get<bool>()) throw finding(verdict::lost, "ooc verify: " + v.output);
  }

  round& r_;
  std::unique_ptr<testing::cluster> servers_;
  shared_world w_;  // its programs end before the servers
  shared_draws draws_{w_};
  shared_judge judge_{w_};
  shared_names names_{w_, judge_};
  std::uint64_t kills_left_ = 0, outages_left_ = 0;
};

}  // namespace

void shared_files(round& r) { shared_files_round(r).run(); }

}  // namespace ooc::attack
