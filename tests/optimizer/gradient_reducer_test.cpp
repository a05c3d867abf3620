#include <tessera/framework/optimizer/internal/gradient_reducer.hpp>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/optimizer/internal/gradient_accumulation.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include <ATen/ATen.h>

#include <limits>

#include "tests/optimizer/reducer_net.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/noted_communicator.hpp"
#include "tests/support/thread_communicator.hpp"

namespace gradient_reducer_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

/// Trains three steps; returns the weights, their averages and slots.
std::vector<at::Tensor> train(const ReducerCase& c, const Mesh& mesh, const AdamOptions& options,
                              double cap = default_bucket_cap_mb, bool early = false) {
  ReducerNet net(c, mesh);
  const OptimizerHandle adam = Adam(1e-2, options);
  adam->reducer().set_bucket_cap_mb(cap);
  for (int step = 0; step < 3; ++step) {
    GradientTape tape;
    const DTensor loss = adam->scale_loss(net.loss());
    GradientOptions with;
    if (early) with.on_ready = adam->reduce_when_ready(net.variables);
    adam->apply(tape.gradient(loss, net.values(), with), net.variables);
  }
  const AccumulatedGradients accumulated({adam});
  std::vector<at::Tensor> list;
  for (const Variable& v : net.variables) list.push_back(v.value().full().clone());
  for (const Variable& v : adam->variables()) list.push_back(v.value().full().clone());
  return list;
}

std::string unlike(const std::vector<at::Tensor>& actual, const std::vector<at::Tensor>& expected) {
  if (actual.size() != expected.size()) return "other variables";
  std::string text;
  for (size_t i = 0; i < actual.size(); ++i) {
    text += difference(actual[i], expected[i], 1e-9, 1e-12);
  }
  return text;
}

const std::vector<AdamOptions> option_sets = {
    {},
    {.global_clipnorm = 0.05, .use_ema = true},
    {.loss_scale_factor = 8, .gradient_accumulation_steps = 2},
};

}  // namespace

TEST_CASE("reduced gradients train as on one device, with and without buckets", "[reducer]") {
  const Mesh one = create_mesh({{"batch", 1}, {"height", 1}, {"width", 1}, {"model", 1}});
  const ReducerCase unsharded_case = {{}, {all, all, all}, {all, all}, {all, all}};
  for (const AdamOptions& options : option_sets) {
    const std::vector<at::Tensor> expected = train(unsharded_case, one, options);
    for (const ReducerCase& c : reducer_cases) {
      for (int ranks : {2, 4}) {
        INFO(ranks << " ranks, " << to_string(c.dims) << " " << to_string(c.shared));
        CHECK_NOTHROW(run_ranks(ranks, [&](int, const std::shared_ptr<Communicator>& inner) {
          for (double cap : {0.0, 2e-4, default_bucket_cap_mb}) {
            for (bool early : {false, true}) {
              CommNotes notes;
              const Mesh mesh = rank_mesh(c.dims, noted_communicator(inner, notes));
              const std::string wrong = unlike(train(c, mesh, options, cap, early), expected);
              expect(wrong.empty(), str("cap ", cap, " early ", early, ": ", wrong));
              expect(notes.waiting == 0, "work nobody waited for");
            }
          }
        }));
      }
    }
  }
}

TEST_CASE("gradients are reduced in buckets, or one by one without them", "[reducer]") {
  CHECK_NOTHROW(run_ranks(2, [](int, const std::shared_ptr<Communicator>& inner) {
    for (const bool together : {true, false}) {
      CommNotes notes;
      const Mesh mesh = rank_mesh(reducer_cases[0].dims, noted_communicator(inner, notes));
      const ReducerNet net(reducer_cases[0], mesh);
      const OptimizerHandle sgd = SGD(0.1);
      sgd->reducer().set_bucket_cap_mb(together ? default_bucket_cap_mb : 0);
      GradientTape tape;
      const std::vector<DTensor> gradients = tape.gradient(net.loss(), net.values());
      notes.calls.clear();
      sgd->apply(gradients, net.variables);
      const std::vector<std::string> one = {"all_reduce of head to shared"};
      const std::vector<std::string> three = {"all_reduce of head", "all_reduce of bias",
                                              "all_reduce of shared"};
      expect(notes.calls == (together ? one : three), str("called ", notes.calls.size()));
      const ReductionTimes& times = sgd->reducer().last_times();
      expect(times.messages == (together ? 1 : 3), "messages counted");
      expect(times.bytes == 8 * (36 + 6 + 18), str("bytes ", times.bytes));
      expect(times.total > 0 && times.blocked <= times.total, "seconds");
    }
  }));
}

TEST_CASE("reduce-scatters go into buckets, whose whole gradients are released", "[reducer]") {
  CHECK_NOTHROW(run_ranks(2, [](int, const std::shared_ptr<Communicator>& inner) {
    for (const bool together : {true, false}) {
      CommNotes notes;
      const Mesh mesh = rank_mesh({{"batch", 2}}, noted_communicator(inner, notes));
      const Layout rows({"batch", unsharded}, mesh), columns({unsharded, "batch"}, mesh);
      std::vector<Variable> kernels;
      for (int k = 0; k < 3; ++k) {
        kernels.push_back(reducer_variable(str("kernel_", k), {6, 6}, k == 1 ? columns : rows));
        kernels.back().value();
      }
      DTensor y = pack(at::ones({8, 6}, at::kDouble), rows);
      const OptimizerHandle sgd = SGD(0.1);
      sgd->reducer().set_bucket_cap_mb(together ? default_bucket_cap_mb : 0);
      GradientTape tape;
      for (const Variable& kernel : kernels) {
        const DTensor whole = ops::relayout(kernel.read(), Layout::replicated(mesh, 2));
        y = ops::tanh(ops::matmul(y, whole));
      }
      const DTensor loss = ops::sum(y);
      notes.calls.clear();
      sgd->apply(tape.gradient(loss, kernels, {.on_ready = sgd->reduce_when_ready(kernels)}),
                 kernels);
      std::erase_if(notes.calls,
                    [](const std::string& call) { return !call.starts_with("reduce_scatter"); });
      const std::vector<std::string> one = {"reduce_scatter of kernel_2 to kernel_0"};
      const std::vector<std::string> three = {
          "reduce_scatter of kernel_2", "reduce_scatter of kernel_1", "reduce_scatter of kernel_0"};
      expect(notes.calls == (together ? one : three), str("called ", notes.calls.size()));
      expect(sgd->reducer().last_times().messages == (together ? 1 : 3), "messages counted");
      expect(notes.waiting == 0, "all waited for");
    }
  }));
}

TEST_CASE("reductions begin during the backward pass", "[reducer]") {
  CHECK_NOTHROW(run_ranks(2, [](int, const std::shared_ptr<Communicator>& inner) {
    CommNotes notes;
    const Mesh mesh = rank_mesh(reducer_cases[0].dims, noted_communicator(inner, notes));
    const ReducerNet net(reducer_cases[0], mesh);
    const OptimizerHandle sgd = SGD(0.1);
    sgd->reducer().set_bucket_cap_mb(0);
    const auto reduce = sgd->reduce_when_ready(net.variables);
    std::vector<std::string> order;
    std::vector<int64_t> started;
    GradientTape tape;
    const DTensor loss = net.loss();
    const auto ready = [&](size_t i, const DTensor& gradient) {
      reduce(i, gradient);
      order.push_back(net.variables[i].path());
      started.push_back(notes.waiting);
    };
    const std::vector<DTensor> gradients = tape.gradient(loss, net.values(), {.on_ready = ready});
    // The shared kernel's last contribution comes from its first use.
    expect(order == std::vector<std::string>{"head", "bias", "shared"}, "order of gradients");
    // At most two at a time.
    expect(started == std::vector<int64_t>{1, 2, 2}, "begun at once");
    sgd->apply(gradients, net.variables);
    expect(notes.waiting == 0 && notes.calls.size() == 3, "nothing is reduced again");
  }));
}

TEST_CASE("the log lists each gradient separately, in the order of the variables", "[reducer]") {
  for (const ReducerCase& c : reducer_cases) {
    INFO(to_string(c.dims) << " " << to_string(c.shared));
    const auto logged = [&](const Mesh& mesh) {
      CommLog log;
      const CommLogScope scope(log);
      train(c, mesh, {}, 2e-4, true);
      std::vector<std::string> lines;
      for (const CommEntry& entry : log.entries()) {
        lines.push_back(str(entry.place, " ", to_string(entry.op), " ", entry.dims, " ",
                            entry.members, " ", entry.bytes, " ", entry.received));
      }
      return lines;
    };
    const std::vector<std::string> expected = logged(create_mesh(c.dims));
    CHECK(expected.size() > 3);
    CHECK_NOTHROW(run_ranks(2, [&](int, const std::shared_ptr<Communicator>& communicator) {
      expect(logged(rank_mesh(c.dims, communicator)) == expected, "another log");
    }));
  }
}

TEST_CASE("gradients changed after their reduction are reduced again", "[reducer]") {
  CHECK_NOTHROW(run_ranks(2, [](int, const std::shared_ptr<Communicator>& communicator) {
    const auto trained = [&](bool early) {
      ReducerNet net(reducer_cases[0], rank_mesh(reducer_cases[0].dims, communicator));
      const OptimizerHandle sgd = SGD(0.1);
      GradientTape tape;
      GradientOptions with;
      const DTensor loss = net.loss();
      if (early) with.on_ready = sgd->reduce_when_ready(net.variables);
      std::vector<DTensor> gradients = tape.gradient(loss, net.values(), with);
      for (DTensor& gradient : gradients) {
        if (gradient.defined()) gradient = gradient * 0.5;
      }
      sgd->apply(gradients, net.variables);
      return net.variables[0].value().full().clone();
    };
    expect(difference(trained(true), trained(false), 1e-12) == "", "other weights");
  }));
}

TEST_CASE("an error in the backward pass leaves no reduction in flight", "[reducer]") {
  CHECK_NOTHROW(run_ranks(2, [](int, const std::shared_ptr<Communicator>& inner) {
    CommNotes notes;
    const Mesh mesh = rank_mesh(reducer_cases[0].dims, noted_communicator(inner, notes));
    ReducerNet net(reducer_cases[0], mesh);
    const OptimizerHandle sgd = SGD(0.1);
    sgd->reducer().set_bucket_cap_mb(0);
    const auto step = [&](bool fails) {
      GradientTape tape;
      const DTensor loss = net.loss();
      const auto reduce = sgd->reduce_when_ready(net.variables);
      const auto ready = [&](size_t i, const DTensor& gradient) {
        reduce(i, gradient);
        if (fails) throw StateError("test", "", "", "");
      };
      sgd->apply(tape.gradient(loss, net.values(), {.on_ready = ready}), net.variables);
    };
    const at::Tensor before = net.variables[0].value().full().clone();
    bool thrown = false;
    try {
      step(true);
    } catch (const StateError&) {
      thrown = true;
    }
    expect(thrown && notes.waiting == 1, "one reduction begun");
    sgd->reducer().reset();
    expect(notes.waiting == 0, "waited for");
    expect(at::equal(net.variables[0].value().full(), before), "weights as they were");
    step(false);
    ReducerNet fresh(reducer_cases[0], rank_mesh(reducer_cases[0].dims, inner));
    GradientTape tape;
    const DTensor loss = fresh.loss();
    SGD(0.1)->apply(tape.gradient(loss, fresh.values()), fresh.variables);
    expect(difference(net.variables[0].value().full(), fresh.variables[0].value().full(), 1e-12)
               .empty(),
           "the next step is a first one's");
  }));
}

TEST_CASE("a non-finite gradient is named on its rank", "[reducer]") {
  // All-reduced gradients, and one that is reduce-scattered into the shards of its slots.
  for (size_t number : {0, 1}) {
    for (bool early : {false, true}) {
      CHECK_NOTHROW(run_ranks(2, [&](int rank, const std::shared_ptr<Communicator>& communicator) {
        const Mesh mesh = rank_mesh(reducer_cases[number].dims, communicator);
        ReducerNet net(reducer_cases[number], mesh);
        const OptimizerHandle sgd = SGD(0.1);
        const auto step = [&](double bad) {
          at::Tensor rows = at::ones({8, 4, 6}, at::kDouble);
          rows[7][0][0] = bad;
          net.x = pack(rows, net.x.layout());
          GradientTape tape;
          // Only the shared kernel has x as a factor.
          const DTensor loss =
              ops::sum(ops::einsum("bhi,ij->bhj", {net.x, net.variables[0].read()})) +
              ops::sum(net.variables[1].read());
          GradientOptions with;
          if (early) with.on_ready = sgd->reduce_when_ready(net.variables);
          sgd->apply(tape.gradient(loss, net.values(), with), net.variables);
          return sgd->reducer().take_non_finite();
        };
        expect(step(1) == "", "all is well");
        expect(step(std::numeric_limits<double>::max()) == "", "large");
        expect(step(HUGE_VAL) == (rank == 1 ? "shared" : ""), str("infinite on ", rank));
        expect(step(NAN) == (rank == 1 ? "shared" : ""), str("no number on ", rank));
        expect(sgd->reducer().take_non_finite().empty(), "taken once");
      }));
    }
  }
}

TEST_CASE("gradients of one process are reduced when they are ready", "[reducer]") {
  // The second case has slots that are sharded further than the variable.
  for (size_t number : {0, 1}) {
    const ReducerNet net(reducer_cases[number], create_mesh(reducer_cases[number].dims));
    const OptimizerHandle sgd = SGD(0.1);
    const auto reduce = sgd->reduce_when_ready(net.variables);
    std::vector<Layout> ready(net.variables.size());
    const auto note = [&](size_t i, const DTensor& gradient) {
      reduce(i, gradient);
      ready[i] = gradient.layout();
    };
    GradientTape tape;
    const DTensor loss = net.loss();
    const auto gradients = tape.gradient(loss, net.values(), {.on_ready = note});
    const Placement& shared = net.variables[0].placement();
    CHECK(ready[0] == shared.slots.value_or(shared.layout));
    CHECK(ready[1] == net.variables[1].layout());
    CHECK(gradients[0].layout() == ready[0]);
    CommLog log;
    {
      const CommLogScope logged(log);
      sgd->apply(gradients, net.variables);
    }
    CHECK(log.count(number == 0 ? CommOp::all_reduce : CommOp::reduce_scatter) > 0);
    CHECK(sgd->reducer().last_times().messages == 0);
  }
}

TEST_CASE("a device holds its shard of gradients, and the whole of few", "[reducer]") {
  const BlockPolicyScope policy(BlockPolicy::per_device);
  const Mesh mesh = create_mesh({{"batch", 4}});
  const Layout rows({"batch", unsharded}, mesh);
  // Returns the largest number of whole gradients of one device, beside their shards.
  const auto peak = [&](int count) {
    std::vector<Variable> kernels;
    for (int i = 0; i < count; ++i) {
      kernels.push_back(
          reducer_variable(str("kernel_", i), {64, 64}, Layout::replicated(mesh, 2), rows));
      kernels.back().value();
    }
    const OptimizerHandle adam = Adam(1e-2);
    adam->build(kernels);
    for (const Variable& slot : adam->variables()) slot.value();
    DTensor y = pack(at::ones({8, 64}, at::kDouble), rows);
    const DeviceMemory memory;
    GradientTape tape;
    for (const Variable& kernel : kernels) y = ops::einsum("bi,ij->bj", {y, kernel.read()});
    const DTensor loss = ops::sum(y);
    const auto gradients =
        tape.gradient(loss, kernels, {.on_ready = adam->reduce_when_ready(kernels)});
    const double whole = 64 * 64 * 8;
    return (double(memory.peak(0)) - double(count) * whole / 4) / whole;
  };
  CHECK(peak(16) <= peak(4) + 0.2);
  CHECK(peak(4) < 3);
}

TEST_CASE("a bucket's size is at least 0 megabytes", "[reducer]") {
  GradientReducer reducer;
  CHECK_NOTHROW(reducer.set_bucket_cap_mb(0));
  CHECK_THROWS_WITH(reducer.set_bucket_cap_mb(-1),
                    Contains("[bucket_cap_mb]") && Contains("Received: -1"));
  CHECK_THROWS_AS(reducer.set_bucket_cap_mb(NAN), ConfigError);
}

}  // namespace gradient_reducer_test
