#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/cpu/p2p_engine.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <mutex>

#include "tests/support/catch.hpp"
#include "tests/support/channel_ranks.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/thread_communicator.hpp"

namespace channel_communicator_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using Tensors = std::vector<at::Tensor>;

/// Returns the group with all members in one process, which computes the expected result.
Group in_one_process(const Owners& owner) { return group_of(Owners(owner.size(), 0), 0); }

Tensors local_parts(const Group& group, const Tensors& all) {
  Tensors parts;
  for (int64_t m : group.local) parts.push_back(all[size_t(m)]);
  return parts;
}

/// Returns small integers, so that sums in any order are equal in every dtype.
at::Tensor values(at::IntArrayRef shape, at::ScalarType dtype, int64_t seed) {
  const int64_t count = c10::multiply_integers(shape);
  const at::Tensor numbers = at::arange(count, at::kLong).mul(7).add(seed * 3).remainder(5);
  return numbers.reshape(shape).to(dtype);
}

bool same(const at::Tensor& actual, const at::Tensor& expected) {
  return actual.scalar_type() == expected.scalar_type() && at::equal(actual, expected);
}

/// Groups, as the rank that owns each member; every rank owns at least one.
const std::vector<Owners> shapes = {{0, 1},          {1, 0, 1},    {0, 0, 1, 1},    {0, 1, 2},
                                    {0, 1, 2, 0, 1}, {3, 1, 2, 0}, {0, 1, 2, 3, 4}, {2, 0, 0, 1}};

int ranks_of(const Owners& owner) { return *std::max_element(owner.begin(), owner.end()) + 1; }

/// Runs the test for every kind of transport and every group.
void on_all_groups(
    const std::function<void(const Owners&, int, const std::shared_ptr<Engine>&)>& test) {
  for (const auto& [name, make] : transport_kinds()) {
    for (const Owners& owner : shapes) {
      INFO(name << " with " << owner.size() << " members on " << ranks_of(owner) << " ranks");
      CHECK_NOTHROW(run_engines(make, ranks_of(owner),
                                [&](int rank, const auto& engine) { test(owner, rank, engine); }));
    }
  }
}

}  // namespace

TEST_CASE("engine: all_reduce gives every rank the result of one process") {
  on_all_groups([](const Owners& owner, int rank, const auto& engine) {
    const Group group = group_of(owner, rank);
    for (int64_t count : {0, 1, 5, 4097, 70001}) {
      Tensors all;
      for (int64_t m = 0; m < group.size(); ++m) all.push_back(values({count}, at::kFloat, m));
      for (Reduce kind : {Reduce::sum, Reduce::max, Reduce::min}) {
        at::Tensor out, expected;
        wait(local_communicator()->all_reduce(in_one_process(owner), kind, all, expected));
        wait(engine->all_reduce(group, kind, local_parts(group, all), out));
        expect(same(out, expected), str("all_reduce of ", count));
      }
    }
  });
}

TEST_CASE("engine: all_reduce of every dtype, shape and stride") {
  for (const auto& [name, make] : transport_kinds()) {
    INFO(name);
    CHECK_NOTHROW(run_engines(make, 3, [](int rank, const auto& engine) {
      const Group group = group_of({0, 1, 2}, rank);
      for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong,
                                   at::kInt, at::kShort, at::kChar, at::kByte, at::kBool}) {
        for (int64_t count : {3, 9001}) {
          for (Reduce kind : {Reduce::sum, Reduce::max, Reduce::min}) {
            Tensors all;
            for (int64_t m = 0; m < 3; ++m) all.push_back(values({2, count}, dtype, m).t());
            at::Tensor out;
            wait(engine->all_reduce(group, kind, {all[size_t(rank)]}, out));
            expect(same(out, reduce_all(kind, all)), str(c10::toString(dtype), " ", count));
          }
        }
      }
      at::Tensor scalar;
      wait(engine->all_reduce(group, Reduce::sum, {at::full({}, rank)}, scalar));
      expect(scalar.dim() == 0 && scalar.template item<float>() == 3, "scalar");
    }));
  }
}

TEST_CASE("engine: sums are bit-identical on every rank, and inputs are unchanged") {
  for (const auto& [name, make] : transport_kinds()) {
    Tensors outs(4);
    INFO(name);
    std::mutex mutex;
    // Orders what the threads do also for the thread sanitizer, which does not see that they meet
    // through a transport's memory.
    const auto meet_all = [&mutex](Engine& engine) {
      { const std::lock_guard before(mutex); }
      meet(engine);
      const std::lock_guard after(mutex);
    };
    CHECK_NOTHROW(run_engines(make, 4, [&](int rank, const auto& engine) {
      for (int64_t count : {1000, 1300000}) {
        const at::Tensor mine = at::sin(at::arange(count) * (rank + 1.7)) * std::pow(10, rank);
        const at::Tensor before = mine.clone();
        wait(engine->all_reduce(group_of({0, 1, 2, 3}, rank), Reduce::sum, {mine},
                                outs[size_t(rank)]));
        expect(same(mine, before), "untouched");
        meet_all(*engine);
        for (const at::Tensor& out : outs) expect(same(out, outs[0]), "the same bits");
        at::Tensor sum = at::sin(at::arange(count) * 1.7);
        for (int r = 1; r < 4; ++r) sum += at::sin(at::arange(count) * (r + 1.7)) * std::pow(10, r);
        expect(same(outs[0], sum), "added in the order of the ranks");
        meet_all(*engine);
      }
    }));
  }
}

TEST_CASE("engine: all_gather joins members in order along any axis, values of any shape at once") {
  on_all_groups([](const Owners& owner, int rank, const auto& engine) {
    const Group group = group_of(owner, rank);
    std::vector<Tensors> all;
    std::vector<GatheredValue> joined;
    for (int64_t axis : {0, 1}) {
      for (int64_t width : {1, 3000}) {
        GatheredValue value = {axis, {}, {}};
        all.emplace_back();
        for (int64_t m = 0; m < group.size(); ++m) {
          value.counts.push_back((m * 2) % 3);
          const int64_t count = value.counts.back();
          all.back().push_back(axis == 0 ? values({count, width}, at::kInt, m)
                                         : values({width, count}, at::kInt, m));
        }
        value.inputs = local_parts(group, all.back());
        joined.push_back(value);
        wait(engine->all_gather(group, std::span(&value, 1)));
        expect(same(value.out, at::cat(all.back(), axis)), str("axis ", axis, " width ", width));
      }
    }
    wait(engine->all_gather(group, joined));
    for (size_t v = 0; v < joined.size(); ++v) {
      expect(same(joined[v].out, at::cat(all[v], joined[v].axis)), str("value ", v, " of four"));
    }
  });
}

TEST_CASE("engine: reduce_scatter gives each member its shard, of several values at once") {
  on_all_groups([](const Owners& owner, int rank, const auto& engine) {
    const Group group = group_of(owner, rank);
    std::vector<at::Tensor> sums;
    std::vector<ScatteredValue> joint;
    const auto check = [&](const ScatteredValue& value, const at::Tensor& sum) {
      expect(value.out.size() == group.local.size(), "one for each local member");
      for (size_t i = 0; i < value.out.size(); ++i) {
        const Interval part = value.intervals[size_t(group.local[i])];
        expect(same(value.out[i], sum.narrow(value.axis, part.lo, part.size())),
               str("part ", i, " of axis ", value.axis));
      }
    };
    for (int64_t axis : {0, 1}) {
      for (int64_t width : {2, 40000}) {
        const int64_t extent = 7;
        Tensors all;
        ScatteredValue value = {axis, {}, {}};
        for (int64_t m = 0; m < group.size(); ++m) {
          value.intervals.push_back(shard_interval(extent, group.size() + 3, m));
          const Shape shape = axis == 0 ? Shape{extent, width} : Shape{width, extent};
          all.push_back(values(shape, at::kDouble, m));
        }
        value.inputs = local_parts(group, all);
        sums.push_back(reduce_all(Reduce::sum, all));
        joint.push_back(value);
        wait(engine->reduce_scatter(group, Reduce::sum, std::span(&value, 1)));
        check(value, sums.back());
      }
    }
    wait(engine->reduce_scatter(group, Reduce::sum, joint));
    for (size_t v = 0; v < joint.size(); ++v) check(joint[v], sums[v]);
  });
}

TEST_CASE("engine: in tree order, reductions have the bits of one process on any ranks") {
  struct Case {
    Owners owner;
    std::vector<int64_t> absent;
  };
  const std::vector<Case> cases = {{{0, 0, 0, 0, 1, 1, 1, 1}, {}},
                                   {{0, 0, 1, 1, 1, 2, 2, 2}, {1, 5, 6, 7}},
                                   {{0, 0, 1, 1, 2, 2, 3, 3}, {2, 3}},
                                   {{2, 0, 0, 1, 2, 1, 0}, {}},
                                   {{0, 1, 2, 3, 4, 5, 6, 7}, {0}}};
  const auto numbers = [](at::IntArrayRef shape, int64_t member) {
    const at::Tensor values = at::sin(at::arange(c10::multiply_integers(shape), at::kFloat) *
                                      (static_cast<double>(member) + 1.7));
    return values.mul(std::pow(7.0, member % 5)).reshape(shape);
  };
  for (const auto& [name, make] : transport_kinds()) {
    for (const Case& c : cases) {
      INFO(name << " on " << ranks_of(c.owner) << " ranks");
      CHECK_NOTHROW(run_engines(make, ranks_of(c.owner), [&](int rank, const auto& engine) {
        Group one = in_one_process(c.owner), group = group_of(c.owner, rank);
        one.tree = group.tree = true;
        const auto inputs_of = [&](const Group& of, at::IntArrayRef shape) {
          Tensors inputs;
          bool any = false;
          for (int64_t m : of.local) {
            const bool none = std::count(c.absent.begin(), c.absent.end(), m) > 0;
            inputs.push_back(none ? at::Tensor() : numbers(shape, m));
            any = any || !none;
          }
          if (!any) inputs.front() = at::full(shape, -0.0, at::kFloat);
          return inputs;
        };
        for (int64_t count : {0, 1, 4097, 150001}) {
          at::Tensor out, expected;
          wait(local_communicator()->all_reduce(one, Reduce::sum, inputs_of(one, {count}),
                                                expected));
          wait(engine->all_reduce(group, Reduce::sum, inputs_of(group, {count}), out));
          expect(same(out, expected), str("all_reduce of ", count));
        }
        std::vector<ScatteredValue> values;
        Tensors sums;
        for (int64_t axis : {0, 1}) {
          for (int64_t width : {2, 20000}) {
            const Shape shape = axis == 0 ? Shape{7, width} : Shape{width, 7};
            ScatteredValue value = {axis, {}, inputs_of(group, shape)};
            for (int64_t m = 0; m < group.size(); ++m) {
              value.intervals.push_back(shard_interval(7, group.size() + 3, m));
            }
            values.push_back(value);
            sums.emplace_back();
            wait(local_communicator()->all_reduce(one, Reduce::sum, inputs_of(one, shape),
                                                  sums.back()));
          }
        }
        wait(engine->reduce_scatter(group, Reduce::sum, values));
        for (size_t v = 0; v < values.size(); ++v) {
          for (size_t i = 0; i < group.local.size(); ++i) {
            const Interval part = values[v].intervals[size_t(group.local[i])];
            expect(same(values[v].out[i], sums[v].narrow(values[v].axis, part.lo, part.size())),
                   str("part ", i, " of value ", v));
          }
        }
      }));
    }
  }
}

TEST_CASE("engine: all_to_all gives every member the tensors addressed to it") {
  on_all_groups([](const Owners& owner, int rank, const auto& engine) {
    const Group group = group_of(owner, rank);
    const int64_t members = group.size();
    // Member 1 sends nothing to 0, the last member gets an empty tensor; other tensors differ in
    // their extents.
    const auto payload = [&](int64_t from, int64_t to) {
      if (from == 1 && to == 0) return at::Tensor();
      return values({to == members - 1 ? 0 : 1 + from + to, 3}, at::kFloat, from * 10 + to);
    };
    std::vector<Tensors> send, recv;
    for (int64_t me : group.local) {
      send.emplace_back();
      recv.emplace_back();
      for (int64_t m = 0; m < members; ++m) {
        send.back().push_back(payload(me, m));
        const at::Tensor expected = payload(m, me);
        const bool remote = owner[size_t(m)] != rank;
        recv.back().push_back(remote && expected.defined() ? at::empty_like(expected)
                                                           : at::Tensor());
      }
    }
    wait(engine->all_to_all(group, send, recv));
    for (size_t i = 0; i < recv.size(); ++i) {
      for (int64_t m = 0; m < members; ++m) {
        const at::Tensor expected = payload(m, group.local[i]);
        const at::Tensor& got = recv[i][size_t(m)];
        expect(got.defined() == expected.defined(), "defined");
        expect(!got.defined() || same(got, expected), str("from ", m));
      }
    }
  });
}

}  // namespace channel_communicator_test
