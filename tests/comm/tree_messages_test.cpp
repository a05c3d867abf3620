// What reductions in tree order send between ranks.
#include <tessera/framework/comm/cpu/p2p_engine.hpp>
#include <tessera/framework/comm/internal/tree_reduce.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "tests/support/catch.hpp"
#include "tests/support/channel_ranks.hpp"

namespace tree_messages_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// Messages by sender and receiver, and their bytes.
struct Traffic {
  std::map<std::pair<int, int>, std::vector<size_t>> messages;
  std::mutex mutex;
};

/// A transport that counts what it sends.
class CountedTransport final : public Transport {
 public:
  CountedTransport(std::unique_ptr<Transport> inner, Traffic& traffic)
      : inner_(std::move(inner)), traffic_(traffic) {}
  std::string name() const override { return inner_->name(); }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  TransferPtr send(int to, uint64_t tag, const void* data, size_t bytes) override {
    {
      const std::lock_guard<std::mutex> lock(traffic_.mutex);
      traffic_.messages[{rank(), to}].push_back(bytes);
    }
    return inner_->send(to, tag, data, bytes);
  }
  TransferPtr recv(int from, uint64_t tag, void* data, size_t bytes) override {
    return inner_->recv(from, tag, data, bytes);
  }
  TransferPtr recv(int from, uint64_t tag, size_t bytes, Reader reader) override {
    return inner_->recv(from, tag, bytes, std::move(reader));
  }
  bool sends_in_background() const override { return inner_->sends_in_background(); }
  void flush() override { inner_->flush(); }
  void abort(const std::string& reason) override { inner_->abort(reason); }

 private:
  std::unique_ptr<Transport> inner_;
  Traffic& traffic_;
};

/// Runs a collective in tree order on eight members that `ranks` ranks hold in runs; returns the
/// messages from each rank to each other one.
std::map<std::pair<int, int>, std::vector<size_t>> messages_of(
    const Owners& owner, const std::function<void(Engine&, const Group&)>& collective) {
  Traffic traffic;
  const MakeTransport shared_memory = transport_kinds()[2].second;
  const MakeTransport counted = [&](int rank, int size, const auto& gather) {
    return std::make_unique<CountedTransport>(shared_memory(rank, size, gather), traffic);
  };
  run_engines(counted, owner.back() + 1, [&](int rank, const std::shared_ptr<Engine>& engine) {
    Group group = group_of(owner, rank);
    group.tree = true;
    collective(*engine, group);
  });
  return traffic.messages;
}

Owners runs(int ranks) {
  Owners owner;
  for (int member = 0; member < 8; ++member) owner.push_back(((member + 1) * ranks - 1) / 8);
  return owner;
}

/// Returns the number of largest subtrees that a rank holds.
size_t subtrees(const Owners& owner, int rank) {
  return subtree_positions(group_of(owner, rank), rank).size();
}

std::vector<at::Tensor> inputs_of(const Group& group, int64_t elements) {
  return std::vector<at::Tensor>(group.local.size(), at::ones({elements}, at::kFloat));
}

}  // namespace

TEST_CASE("a small all-reduce by tree sends each rank one message for each largest subtree") {
  for (const int ranks : {2, 3, 4, 8}) {
    const Owners owner = runs(ranks);
    const auto messages = messages_of(owner, [](Engine& engine, const Group& group) {
      at::Tensor out;
      wait(engine.all_reduce(group, Reduce::sum, inputs_of(group, 1000), out));
    });
    CHECK(messages.size() == size_t(ranks * (ranks - 1)));
    for (const auto& [pair, sizes] : messages) {
      CAPTURE(ranks, pair.first, pair.second);
      CHECK(sizes == std::vector<size_t>(subtrees(owner, pair.first), 4000));
    }
  }
  // Of the runs of two, three and three members the longer ones are two subtrees each.
  CHECK(subtrees(runs(3), 0) == 1);
  CHECK(subtrees(runs(3), 1) == 2);
  CHECK(subtrees(runs(3), 2) == 2);
}

TEST_CASE(
    "a large all-reduce by tree sends each rank its share of each largest subtree, and a result") {
  // Shares are one segment each.
  constexpr int64_t elements = 24 * 512;
  for (const int ranks : {2, 3, 4, 8}) {
    const Owners owner = runs(ranks);
    const auto messages = messages_of(owner, [](Engine& engine, const Group& group) {
      at::Tensor out;
      wait(engine.all_reduce(group, Reduce::sum, inputs_of(group, elements), out));
    });
    CHECK(messages.size() == size_t(ranks * (ranks - 1)));
    for (const auto& [pair, sizes] : messages) {
      CAPTURE(ranks, pair.first, pair.second);
      const size_t share = size_t(elements) * 4 / size_t(ranks);
      CHECK(sizes == std::vector<size_t>(subtrees(owner, pair.first) + 1, share));
    }
  }
}

TEST_CASE("a reduce-scatter by tree sends each rank its members' part of each largest subtree") {
  for (const int ranks : {2, 3, 4, 8}) {
    const Owners owner = runs(ranks);
    const auto messages = messages_of(owner, [](Engine& engine, const Group& group) {
      ScatteredValue value = {0, {}, inputs_of(group, 8 * 512)};
      for (int64_t m = 0; m < 8; ++m) value.intervals.push_back({m * 512, (m + 1) * 512});
      wait(engine.reduce_scatter(group, Reduce::sum, std::span(&value, 1)));
    });
    CHECK(messages.size() == size_t(ranks * (ranks - 1)));
    for (const auto& [pair, sizes] : messages) {
      CAPTURE(ranks, pair.first, pair.second);
      const auto members = size_t(std::count(owner.begin(), owner.end(), pair.second));
      CHECK(sizes == std::vector<size_t>(subtrees(owner, pair.first), members * 512 * 4));
    }
  }
}

}  // namespace tree_messages_test
