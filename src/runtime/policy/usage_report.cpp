#include "runtime/policy/usage_report.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <utility>

namespace ooc::detail {
namespace {

std::string number(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

/// "1.5 GiB"
std::string amount(std::uint64_t bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return number(value < 10 && unit > 0 ? "%.1f " : "%.0f ", value) + units[unit];
}

double share(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

std::string percent(double of_one) { return number("%.0f %%", 100 * of_one); }
std::string seconds(std::uint64_t ns) { return number("%.2f s", static_cast<double>(ns) / 1e9); }

std::uint64_t moved(const runtime_stats& s) { return s.bytes_read + s.bytes_written; }
std::uint64_t waited(const runtime_stats& s) { return s.read_wait_ns + s.write_wait_ns; }

/// "87 % from block to block, 13 % scattered"
std::string order_text(const touch_order& o) {
  std::string text;
  const auto add = [&](std::uint64_t n, const char* how) {
    if (share(n, o.all()) >= 0.005) text += (text.empty() ? "" : ", ") + percent(share(n, o.all())) + how;
  };
  add(o.onward, " from block to block");
  add(o.back, " from block to block, backwards");
  add(o.by_steps, " by equal steps");
  add(o.scattered, " in no order that was recognised");
  return text;
}

/// What would make it faster; empty: nothing is known.
std::string advice_for(const array_usage& a, const run_usage& run, std::uint64_t bytes_of_all) {
  const runtime_stats& c = a.counts;
  const std::uint64_t ns = static_cast<std::uint64_t>(run.seconds * 1e9);
  if (a.wasteful)
    return "far more is read than touched: loop in the order of the file, go through tiles() of a layout_tiled array, "
           "gather() many elements, or take a smaller block";
  if (share(a.order.scattered, a.order.all()) > 0.5 && c.read_wait_ns > ns / 4)
    return "its blocks are waited for, and come in no order: gather() elements that are known beforehand, prefetch() "
           "boxes, or sort the work by place";
  if (c.bytes_reread > a.bytes / 2 && c.bytes_reread > c.bytes_read / 4)
    return "its blocks leave memory and come back: a budget of " + amount(bytes_of_all + bytes_of_all / 8) +
           " keeps all arrays; else do more of the work on a part before going on to the next, as ooc::sweep does with "
           "several steps" +
           (c.bytes_written > c.bytes_read / 2 ? "; overwrite() spares the reading of what is written anew" : "");
  if (c.read_ahead_waste > c.read_ahead_blocks / 4 && c.read_ahead_waste > 16)
    return "blocks are read ahead for nothing: advise(ooc::access_pattern::random)";
  if (c.write_wait_ns > ns / 4)
    return "modified blocks are waited for: the disk is the limit; overwrite() spares the reading of what is written "
           "whole";
  if (c.read_wait_ns > ns / 4)
    return "its blocks are read ahead, and still waited for: the disk is the limit, at " +
           amount(static_cast<std::uint64_t>(static_cast<double>(c.bytes_read) / std::max(run.seconds, 1e-9))) + "/s";
  return "";
}

std::string lines_of(const array_usage& a, const run_usage& run, std::uint64_t bytes_of_all) {
  const runtime_stats& c = a.counts;
  std::string text = "  array '" + a.name + "', " + amount(a.bytes) + " in blocks of " + amount(a.block_bytes) + "\n";
  text += "    read " + amount(c.bytes_read);
  if (c.bytes_reread > 0) text += " (" + amount(c.bytes_reread) + " of it again)";
  text += ", wrote " + amount(c.bytes_written) + ", waited " + seconds(c.read_wait_ns) + " for reading, " +
          seconds(c.write_wait_ns) + " for writing\n";
  text += "    blocks: " + std::to_string(c.faults) + " were waited for, " + std::to_string(c.hits) +
          " were in memory when they were touched; " + std::to_string(c.read_ahead_blocks) + " were read ahead, " +
          std::to_string(c.read_ahead_waste) + " of them for nothing; " + std::to_string(c.evictions) + " left\n";
  if (const std::string order = order_text(a.order); !order.empty()) text += "    order: " + order + "\n";
  if (const std::string advice = advice_for(a, run, bytes_of_all); !advice.empty())
    text += "    faster: " + advice + "\n";
  return text;
}

runtime_stats sum(const runtime_stats& a, const runtime_stats& b) {
  using numbers = std::array<std::uint64_t, sizeof(runtime_stats) / sizeof(std::uint64_t)>;
  auto all = std::bit_cast<numbers>(a);
  const auto more = std::bit_cast<numbers>(b);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] += more[i];
  return std::bit_cast<runtime_stats>(all);
}

}  // namespace

void array_usage::add(const array_usage& again) {
  bytes = again.bytes;
  block_bytes = again.block_bytes;
  counts = sum(counts, again.counts);
  order += again.order;
  wasteful = wasteful || again.wasteful;
  place = again.place;
}

void join_usage(std::vector<array_usage>& all, array_usage u) {
  constexpr std::size_t most = 200;
  const auto named = [&](const std::string& name) {
    return std::find_if(all.begin(), all.end(), [&](const array_usage& a) { return a.name == name; });
  };
  auto there = named(u.name);
  if (there == all.end() && all.size() >= most) there = named(u.name = "(others)");
  if (there == all.end())
    all.push_back(std::move(u));
  else
    there->add(u);
}

std::string usage_report(const run_usage& run, std::vector<array_usage> arrays) {
  constexpr std::size_t most = 10;
  const runtime_stats& all = run.all;
  std::string text = "oocarray: report after " + number("%.1f s", run.seconds) + ", with " + amount(all.budget_bytes) +
                     " of memory for blocks" +
                     (all.resident_bytes == 0 ? "" : ", " + amount(all.resident_bytes) + " of them in use") + "\n";
  text += "  read " + amount(all.bytes_read) + ", wrote " + amount(all.bytes_written) + ", threads waited " +
          seconds(all.read_wait_ns) + " for reading, " + seconds(all.write_wait_ns) + " for writing\n";
  runtime_stats of_arrays;
  std::uint64_t bytes_of_all = 0;
  for (const array_usage& a : arrays) {
    of_arrays = sum(of_arrays, a.counts);
    bytes_of_all += a.bytes;
  }
  const auto more_than = [](std::uint64_t whole, std::uint64_t part) { return whole - std::min(whole, part); };
  const std::uint64_t read = more_than(all.bytes_read, of_arrays.bytes_read);
  const std::uint64_t written = more_than(all.bytes_written, of_arrays.bytes_written);
  if (read + written > 0)
    text += "  of these, algorithms read " + amount(read) + ", and wrote " + amount(written) + ", past the blocks\n";
  std::stable_sort(arrays.begin(), arrays.end(), [](const array_usage& a, const array_usage& b) {
    return waited(a.counts) != waited(b.counts) ? waited(a.counts) > waited(b.counts)
                                                : moved(a.counts) > moved(b.counts);
  });
  for (std::size_t i = 0; i < std::min(most, arrays.size()); ++i) text += lines_of(arrays[i], run, bytes_of_all);
  if (arrays.size() > most) text += "  and " + std::to_string(arrays.size() - most) + " arrays more\n";
  return text;
}

std::string progress_line(const run_usage& before, const run_usage& now, const std::vector<array_usage>& arrays_before,
                          const std::vector<array_usage>& arrays) {
  const double passed = std::max(now.seconds - before.seconds, 1e-9);
  const auto rate = [&](std::uint64_t was, std::uint64_t is) {
    return amount(is) + " (" + amount(static_cast<std::uint64_t>(static_cast<double>(is - was) / passed)) + "/s)";
  };
  std::string text = "oocarray: " + number("%.0f s", now.seconds) + ", read " +
                     rate(before.all.bytes_read, now.all.bytes_read) + ", wrote " +
                     rate(before.all.bytes_written, now.all.bytes_written) + ", waiting " +
                     percent(static_cast<double>(waited(now.all) - waited(before.all)) / 1e9 / passed);
  // The array for which most has moved since.
  const array_usage* busiest = nullptr;
  std::uint64_t most = 0;
  for (const array_usage& a : arrays) {
    const auto then = std::find_if(arrays_before.begin(), arrays_before.end(),
                                   [&](const array_usage& b) { return b.name == a.name; });
    const std::uint64_t was = then == arrays_before.end() ? 0 : moved(then->counts);
    if (moved(a.counts) <= was + most) continue;
    most = moved(a.counts) - was;
    busiest = &a;
  }
  if (busiest != nullptr && busiest->bytes > 0)
    text += "; '" + busiest->name + "' at " + percent(share(std::min(busiest->place, busiest->bytes), busiest->bytes));
  return text;
}

}  // namespace ooc::detail
