// Updates by rows: of embeddings' tables, with row-sparse gradients.
#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include <ATen/ATen.h>

#include <functional>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/profile_work.hpp"
#include "tests/support/thread_communicator.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace lazy_rows_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

constexpr int64_t rows = 40, width = 6, steps = 4;

/// The rows looked up in a step: 12 and 12 again, and others that change.
at::Tensor ids_of(int64_t step) {
  return at::tensor({12, int(step), 12, 39, int(5 + 3 * step), 0, 12, 39}, at::kLong).view({4, 2});
}

at::Tensor first_table() {
  return at::sin(at::arange(rows * width, at::kDouble)).view({rows, width});
}

struct Trained {
  at::Tensor table;
  std::vector<at::Tensor> slots;
  std::vector<at::Tensor> all() const {
    std::vector<at::Tensor> list = slots;
    list.push_back(table);
    return list;
  }
};

/// How the table is used in the loss.
using Use = std::function<DTensor(const DTensor& table, const DTensor& ids)>;

DTensor looked_up(const DTensor& table, const DTensor& ids) {
  return ops::sum(ops::square(ops::embedding(table, ids) + 0.3), {});
}
DTensor twice(const DTensor& table, const DTensor& ids) {
  const DTensor other = ops::embedding(table, ops::bitwise_xor(ids, ops::full_like(ids, 3)));
  return looked_up(table, ids) + ops::sum(ops::sin(other), {});
}
DTensor tied(const DTensor& table, const DTensor& ids) {
  return looked_up(table, ids) + ops::sum(ops::cos(ops::matmul(table, ops::transpose(table))), {});
}

struct Setting {
  Layout table, ids;
  std::optional<Layout> slots = std::nullopt;
};

Trained trained(const OptimizerHandle& optimizer, const Setting& at, bool row_sparse,
                const Use& use = looked_up) {
  Variable table("embeddings", pack(first_table(), at.table));
  table.place({table.shape(), at.table, std::nullopt, at.slots});
  for (int64_t step = 0; step < steps; ++step) {
    GradientTape tape;
    const DTensor loss = use(table.value(), pack(ids_of(step), at.ids));
    const DTensor gradient =
        tape.gradient(optimizer->scale_loss(loss), table.value(), {.row_sparse = row_sparse});
    optimizer->apply({gradient}, {table});
  }
  Trained result{table.value().full().clone(), {}};
  for (const Variable& slot : optimizer->variables()) {
    result.slots.push_back(slot.value().full().clone());
  }
  return result;
}

Setting on_one_device() {
  const Mesh one = create_mesh({{"x", 1}});
  return {Layout::replicated(one, 2), Layout::replicated(one, 2)};
}

/// All layouts of the table, with ids that are whole or sharded over the first mesh dimension.
std::vector<Setting> settings(const Mesh& mesh) {
  std::vector<Setting> all;
  for (const Layout& table : all_layouts(mesh, 2)) {
    all.push_back({table, Layout::replicated(mesh, 2)});
    all.push_back({table, Layout({"x", unsharded}, mesh)});
  }
  const Layout rows_cut({"x", unsharded}, mesh), columns_cut({unsharded, "x"}, mesh);
  all.push_back({Layout::replicated(mesh, 2), rows_cut, rows_cut});
  all.push_back({rows_cut, rows_cut, columns_cut});
  all.push_back({columns_cut, rows_cut, rows_cut});
  return all;
}

/// Returns the number of blocks that were updated by rows while f ran.
int64_t row_updates(const std::function<void()>& f) {
  Profile profile;
  f();
  profile.stop();
  return row_of(profile, SpanKind::op, "write_rows").calls;
}

using Make = std::function<OptimizerHandle()>;

const std::vector<std::pair<std::string, Make>> exact = {
    {"SGD", [] { return SGD(0.1); }},
    {"SGD, decay", [] { return SGD(0.1, {.weight_decay = 0.1}); }},
    {"SGD, clipnorm", [] { return SGD(0.1, {.clipnorm = 0.5}); }},
    {"SGD, loss scale", [] { return SGD(0.1, {.clipvalue = 0.2, .loss_scale_factor = 8}); }},
    {"Adagrad", [] { return Adagrad(0.1); }},
    {"Adagrad, averages", [] { return Adagrad(0.1, {.global_clipnorm = 1, .use_ema = true}); }},
};

const std::vector<std::pair<std::string, Make>> lazy = {
    {"SGD", [] { return SGD(0.1, {.momentum = 0.9, .lazy_rows = true}); }},
    {"Adam", [] { return Adam(0.1, {.lazy_rows = true}); }},
    {"amsgrad", [] { return Adam(0.1, {.amsgrad = true, .lazy_rows = true}); }},
    {"AdamW", [] { return AdamW(0.1, {.weight_decay = 0.1, .lazy_rows = true}); }},
    {"RMSprop", [] { return RMSprop(0.1, {.momentum = 0.5, .lazy_rows = true}); }},
    {"Adadelta", [] { return Adadelta(0.1, {.lazy_rows = true}); }},
    {"Adamax", [] { return Adamax(0.1, {.lazy_rows = true}); }},
    {"Nadam", [] { return Nadam(0.1, {.lazy_rows = true}); }},
    {"Lion", [] { return Lion(0.1, {.lazy_rows = true}); }},
    {"Ftrl", [] { return Ftrl(0.1, {.lazy_rows = true}); }},
};

}  // namespace

TEST_CASE("SGD and Adagrad by rows give the values of dense gradients, in every layout") {
  for (const auto& [name, make] : exact) {
    const Trained dense = trained(make(), on_one_device(), false);
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1}, {4}, {2, 2}}) {
      for (const Setting& setting : settings(virtual_mesh(sizes))) {
        INFO(name << ", table " << setting.table.describe() << ", ids " << setting.ids.describe());
        CHECK(difference_in_float64(trained(make(), setting, true).all(), dense.all(), 1e-12) ==
              "");
      }
    }
    INFO(name);
    CHECK(row_updates([&make = make] { trained(make(), on_one_device(), true); }) == steps);
    CHECK(row_updates([&make = make] { trained(make(), on_one_device(), false); }) == 0);
  }
}

TEST_CASE("a table's uses are added: rows to rows, rows to dense gradients") {
  for (const Use& use : {Use(twice), Use(tied)}) {
    const Trained dense = trained(SGD(0.01), on_one_device(), false, use);
    for (const Setting& setting : settings(virtual_mesh({2, 2}))) {
      INFO("table " << setting.table.describe() << ", ids " << setting.ids.describe());
      CHECK(difference(trained(SGD(0.01), setting, true, use).table, dense.table, 1e-11, 1e-12) ==
            "");
    }
  }
  CHECK(row_updates([] { trained(SGD(0.01), on_one_device(), true, twice); }) == steps);
  CHECK(row_updates([] { trained(SGD(0.01), on_one_device(), true, tied); }) == 0);
}

TEST_CASE("lazy updates change the rows that a step looked up as dense ones do, and no others") {
  for (const auto& [name, make] : lazy) {
    INFO(name);
    const Trained by_rows = trained(make(), on_one_device(), true);
    const Trained dense = trained(make(), on_one_device(), false);
    // Rows 0, 12 and 39 are looked up in each step, row 3 only in the last.
    const at::Tensor always = at::tensor({0, 12, 39}, at::kLong);
    const std::vector<at::Tensor> actual = by_rows.all(), expected = dense.all();
    for (size_t i = 0; i < actual.size(); ++i) {
      INFO("slot " << i);
      CHECK(difference(actual[i].index_select(0, always), expected[i].index_select(0, always),
                       1e-12, 1e-14) == "");
    }
    const at::Tensor never = at::tensor({4, 6, 30, 38}, at::kLong);
    CHECK(by_rows.table.index_select(0, never).equal(first_table().index_select(0, never)));
    CHECK_FALSE(by_rows.table[3].equal(first_table()[3]));
    CHECK(row_updates([&make = make] { trained(make(), on_one_device(), true); }) == steps);
    for (const Setting& setting : settings(virtual_mesh({2, 2}))) {
      INFO("table " << setting.table.describe() << ", ids " << setting.ids.describe());
      CHECK(difference_in_float64(trained(make(), setting, true).all(), actual, 1e-12) == "");
    }
  }
}

TEST_CASE("a row that a step did not look up keeps its momentum") {
  Variable table("embeddings", pack(first_table(), on_one_device().table));
  const OptimizerHandle adam = Adam(0.1, {.lazy_rows = true});
  const auto step = [&](int64_t id) {
    GradientTape tape;
    const DTensor loss =
        looked_up(table.value(), pack(at::full({2, 2}, id, at::kLong), on_one_device().ids));
    adam->apply({tape.gradient(loss, table.value(), {.row_sparse = true})}, {table});
  };
  step(7);
  const at::Tensor row = table.value().full()[7].clone();
  const at::Tensor momentum = adam->variables()[0].value().full()[7].clone();
  CHECK(momentum.ne(0).all().item<bool>());
  step(8);
  CHECK(table.value().full()[7].equal(row));
  CHECK(adam->variables()[0].value().full()[7].equal(momentum));
}

TEST_CASE("optimizers that need whole gradients get them from row-sparse ones") {
  const std::vector<Make> whole = {
      [] { return Adam(0.1); },
      [] { return SGD(0.1, {.momentum = 0.9}); },
      [] { return SGD(0.1, {.gradient_accumulation_steps = 2}); },
      [] { return Adam(0.1, {.gradient_accumulation_steps = 2, .lazy_rows = true}); },
      [] { return Lamb(0.1); },
      [] { return LossScaleOptimizer(SGD(0.1)); },
      [] { return MultiOptimizer([](const Variable&) { return Adam(0.1); }); },
  };
  for (const Make& make : whole) {
    INFO(make()->class_name());
    CHECK(difference(trained(make(), on_one_device(), true).table,
                     trained(make(), on_one_device(), false).table) == "");
    CHECK(row_updates([&] { trained(make(), on_one_device(), true); }) == 0);
  }
}

TEST_CASE(
    "only few indices of a wide table give a row-sparse gradient, which reads as a dense one") {
  const Mesh mesh = create_mesh({{"x", 1}});
  const auto gradient = [&](int64_t count, at::ScalarType dtype, bool wanted) {
    Variable table("embeddings", pack(first_table().to(dtype), Layout::replicated(mesh, 2)));
    GradientTape tape;
    const DTensor ids = pack(at::arange(count, at::kLong), Layout::replicated(mesh, 1));
    const DTensor loss = ops::sum(ops::embedding(table.value(), ids), {});
    return tape.gradient(loss, table.value(), {.row_sparse = wanted});
  };
  CHECK(gradient(20, at::kFloat, true).is_row_sparse());
  CHECK_FALSE(gradient(21, at::kFloat, true).is_row_sparse());
  CHECK_FALSE(gradient(20, at::kHalf, true).is_row_sparse());
  CHECK_FALSE(gradient(20, at::kFloat, false).is_row_sparse());
  const DTensor rows_of_ones = gradient(20, at::kFloat, true);
  at::Tensor expected = at::zeros({rows, width});
  expected.narrow(0, 0, 20).fill_(1);
  CHECK(difference(rows_of_ones.full(), expected) == "");
  CHECK_FALSE(rows_of_ones.is_row_sparse());
}

TEST_CASE("processes gather rows instead of reducing tables", "[reducer]") {
  const Trained dense = trained(Adagrad(0.1), on_one_device(), false);
  for (int ranks : {2, 4}) {
    CHECK_NOTHROW(run_ranks(ranks, [&](int, const std::shared_ptr<Communicator>& communicator) {
      for (const MeshDims& dims : {MeshDims{{"x", 4}}, MeshDims{{"x", 2}, {"y", 2}}}) {
        for (const Setting& setting : settings(rank_mesh(dims, communicator))) {
          CommLog log;
          const Trained result = [&] {
            const CommLogScope scope(log);
            return trained(Adagrad(0.1), setting, true);
          }();
          const std::string wrong = difference_in_float64(result.all(), dense.all(), 1e-12);
          expect(wrong.empty(), setting.table.describe() + wrong);
          const bool reduces = log.to_string().find("all_reduce embeddings") != std::string::npos;
          expect(!reduces, log.to_string());
        }
      }
    }));
  }
}

TEST_CASE("lazy_rows is written to configurations only if it is set") {
  CHECK_FALSE(Adam()->config().contains("lazy_rows"));
  const OptimizerHandle adam = Adam(0.1, {.lazy_rows = true});
  CHECK(adam->config().at("lazy_rows") == true);
  CHECK(optimizer_from_config(optimizer_to_config(adam))->config() == adam->config());
}

}  // namespace lazy_rows_test
