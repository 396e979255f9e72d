#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <exception>
#include <iostream>
#include <thread>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "base/interrupt.hpp"
#include "oocarray/error.hpp"
#include "storage/base/file_descriptor.hpp"
#include "storage/base/mutex.hpp"
#include "storage/base/ticker.hpp"
#include "top/terminal.hpp"

namespace ooc::tool {

namespace {

using loads_of_all = std::vector<server_load>;
using std::chrono::milliseconds;

/// Looks at the servers again and again on a thread of its own, so that keys are answered while a
/// server is not.
class watcher {
 public:
  watcher(load_watch& watch, milliseconds interval)
      : watch_(watch), interval_(interval), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    looks_.wake();
  }
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;

  /// Readable where there is something new.
  int bell() const { return bell_.get(); }
  /// The newest, if they have not been had yet; throws what ended the watching.
  std::optional<loads_of_all> news() {
    std::uint64_t rings;
    if (::read(bell_.get(), &rings, sizeof rings) != sizeof rings) return {};
    const lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    return latest_;
  }

 private:
  ticker::clock::time_point look() {
    loads_of_all now;
    std::exception_ptr failure;
    try {
      now = watch_.look();
    } catch (...) {
      failure = std::current_exception();
    }
    const lock_guard lock(mutex_);
    latest_ = std::move(now);
    failure_ = failure;
    const std::uint64_t one = 1;
    (void)!::write(bell_.get(), &one, sizeof one);
    return failure ? ticker::when_woken : ticker::clock::now() + interval_;
  }

  load_watch& watch_;
  const milliseconds interval_;
  const storage::file_descriptor bell_;
  mutex mutex_;
  loads_of_all latest_ OOC_GUARDED_BY(mutex_);
  std::exception_ptr failure_ OOC_GUARDED_BY(mutex_);
  ticker looks_{[this] { return look(); }};
};

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  return text;
}

void show_until_quit(load_watch& watch, load_page page, milliseconds interval) {
  loads_of_all loads = watch.look();
  const page_style style = terminal::style();
  catch_interrupts();
  terminal screen;
  watcher w(watch, interval);
  bool drawn = false;
  terminal::extent size;
  for (;;) {
    check_interrupted();
    const auto [columns, lines] = screen.size();
    if (!drawn || columns != size.columns || lines != size.lines) {
      size = {columns, lines};
      screen.show(draw(page, loads, columns, lines, style));
      drawn = true;
    }
    const auto pressed = screen.wait(w.bell(), milliseconds(200));
    if (auto news = w.news()) {
      loads = std::move(*news);
      page.time = time_now();
      drawn = false;
    }
    if (!pressed) continue;
    drawn = false;
    const std::size_t last = loads.size() < 2 ? 0 : loads.size() - 2;
    const std::size_t half = std::max<std::size_t>(1, lines / 2);
    switch (pressed->what) {
      case terminal::key::end_of_input: return;
      case terminal::key::line_up: page.first -= std::min<std::size_t>(1, page.first); break;
      case terminal::key::page_up: page.first -= std::min(half, page.first); break;
      case terminal::key::line_down: page.first = std::min(page.first + 1, last); break;
      case terminal::key::page_down: page.first = std::min(page.first + half, last); break;
      case terminal::key::other:
        if (pressed->character == 'q') return;
        if (const auto key = sort_key_of(pressed->character)) page.sorted = *key;
    }
  }
}

nlohmann::json to_json(const loads_of_all& loads) {
  nlohmann::json nodes = nlohmann::json::array(), metad;
  for (const server_load& s : loads) {
    const bool is_metad = s.name == "metad";
    nlohmann::json j{{"up", s.up}};
    if (!s.up) {
      j["why"] = s.why;
    } else if (is_metad) {
      j.update({{"calls_per_s", s.requests}, {"latency_us", s.latency_us}, {"clients", s.clients}});
    } else {
      j.update({{"read_bytes_per_s", s.read},
                {"written_bytes_per_s", s.written},
                {"requests_per_s", s.requests},
                {"latency_us", s.latency_us},
                {"waiting", s.waiting},
                {"running", s.running},
                {"buffer_bytes", s.memory},
                {"buffer_limit", s.memory_limit},
                {"disk_bytes", s.disk_size},
                {"disk_used", s.disk_used},
                {"clients", s.clients}});
    }
    if (is_metad) {
      metad = std::move(j);
    } else {
      j["node"] = nodes.size();
      nodes.push_back(std::move(j));
    }
  }
  return {{"metad", metad}, {"nodes", nodes}};
}

int run_top(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("once", "one look, then end; so it is, too, where there is no terminal");
  line.option()("interval,i", po::value<double>()->value_name("SECONDS"), "between two looks, otherwise 2");
  line.option()("sort", po::value<std::string>()->value_name("KEY"),
                "node, read, written, requests, latency, queue, memory, disk or clients");
  line.key_option();
  line.option()("json", "for programs: one object a line");
  line.positional("URL");
  if (!line.parse(arguments)) return success;
  const bool json = line.has("json");
  const bool screen = !line.has("once") && !json && terminal::usable();
  const bool once = line.has("once") || (!screen && !json);
  const double seconds = line.real("interval", once ? 0.5 : 2);
  if (!(seconds >= 0.05 && seconds <= 3600)) throw usage_mistake("--interval: give 0.05 to 3600");
  const milliseconds interval(static_cast<std::int64_t>(seconds * 1000));

  load_page page;
  page.sorted = sort_key_of(line.text_or("sort", "node"));
  page.url = line.store_url("URL");
  page.time = time_now();
  load_watch watch(cluster::metadata_address(page.url), cluster::asker::of(page.url, line.text_or("key", "")));
  if (screen) {
    show_until_quit(watch, page, interval);
    return success;
  }
  watch.look();
  for (;;) {
    std::this_thread::sleep_for(interval);
    const loads_of_all& loads = watch.look();
    if (json) {
      std::cout << to_json(loads).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
    } else {
      constexpr std::size_t wide = 120;
      page.time = time_now();
      for (const std::string& l : draw(page, loads, wide, 0, {})) std::cout << l << "\n";
      std::cout << std::flush;
    }
    if (!std::cout) return failed;
    if (once) return success;
  }
}

}  // namespace

const command top{"top", "top [options] [URL]",
                  "Shows what the servers of a store are doing: rates, queues, memory and disks.", run_top};

}  // namespace ooc::tool
