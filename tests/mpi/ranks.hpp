// Tests on several ranks share this: the group, the store, one seed for all ranks.
#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "oocarray/error.hpp"
#include "oocarray/mpi.hpp"
#include "oocarray/store.hpp"
#include "storage/service/store_core.hpp"
#include "support/faulty_io_service.hpp"
#include "support/soon.hpp"

namespace ooc::testing {

/// A group of all ranks.  Short deadline: a test that waits longer has failed.
std::shared_ptr<process_group> all_ranks(std::chrono::milliseconds deadline = std::chrono::seconds(60));

/// OOC_TEST_SEED, or a number that rank 0 drew: the same on all ranks.
std::uint64_t common_seed();

/// The same numbers on all ranks.
inline std::mt19937_64 common_source(std::uint64_t salt) {
  return std::mt19937_64(common_seed() * 0x9e3779b97f4a7c15u + salt);
}

/// The store of all ranks, with two nodes.  Made by the first call of it, which is collective, and
/// removed by rank 0 at the end.  OOC_TEST_STORE names another one (a cluster's), whose files stay.
ooc::store common_store();

/// `s` with its nodes behind others, as this rank sees it: `wrapped(node)` for each.
template <class F>
ooc::store with_nodes(const ooc::store& s, F&& wrapped) {
  storage::striped_file::nodes nodes;
  for (const auto& node : s.core()->nodes()) nodes.push_back(wrapped(node));
  return ooc::store(std::make_shared<storage::store_core>(
      s.url(), s.uuid(), std::shared_ptr<storage::metadata_service>(s.core(), &s.core()->metadata()),
      std::move(nodes)));
}

/// The store of all ranks with nodes that count calls and fail when told to, as this rank sees it.
struct faulty_store {
  std::vector<std::shared_ptr<storage::faulty_io_service>> nodes;
  ooc::store handle = with_nodes(common_store(), [this](const auto& node) {
    return nodes.emplace_back(std::make_shared<storage::faulty_io_service>(node));
  });

  void fail(const storage::fault_rule& f) const {
    for (const auto& n : nodes) n->add(f);
  }
  void clear() const {
    for (const auto& n : nodes) n->clear();
  }
  std::uint64_t calls(storage::io_kind c) const {
    std::uint64_t sum = 0;
    for (const auto& n : nodes) sum += n->calls(c);
    return sum;
  }
};

/// Runs f, which must throw E, and returns its text.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  FAIL("nothing was thrown");
  return {};
}

/// The text of an array's sync() or sync_halo() about a conflict; empty where it finds none.
template <class Sync>
std::string conflict_of(Sync&& sync) {
  try {
    sync();
  } catch (const usage_error& e) {
    CHECK(e.code() == errc::conflict);
    return e.what();
  }
  return {};
}

}  // namespace ooc::testing
