#include <tessera/framework/comm/internal/split_engine.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"

namespace split_engine_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// An engine that records its calls.
class NotingEngine final : public Engine {
 public:
  std::string name() const override { return "noting"; }
  int rank() const override { return 1; }
  int size() const override { return 2; }
  void set_call(uint64_t call) override { notes += str("call ", call, "; "); }
  WorkPtr all_reduce(const Group&, Reduce, const std::vector<at::Tensor>&, at::Tensor&) override {
    return note("all_reduce");
  }
  WorkPtr all_gather(const Group&, std::span<GatheredValue>) override { return note("all_gather"); }
  WorkPtr reduce_scatter(const Group&, Reduce, std::span<ScatteredValue>) override {
    return note("reduce_scatter");
  }
  WorkPtr all_to_all(const Group&, const std::vector<std::vector<at::Tensor>>&,
                     std::vector<std::vector<at::Tensor>>&) override {
    return note("all_to_all");
  }
  WorkPtr exchange(const CollectiveCall&, const std::vector<Message>&,
                   const std::vector<Message>&) override {
    return note("exchange");
  }
  void flush() override { notes += "flush; "; }
  void abort(const std::string& reason) override { notes += "abort: " + reason; }

  std::string notes;

 private:
  WorkPtr note(const std::string& what) {
    notes += what + "; ";
    return nullptr;
  }
};

}  // namespace

TEST_CASE("tensors on CPUs and on GPUs use separate engines") {
  const auto host = std::make_shared<NotingEngine>(), gpus = std::make_shared<NotingEngine>();
  const auto engine = split_engine(host, gpus);
  const at::Tensor here = at::ones({2}), there = at::empty({2}, at::kMeta);
  at::Tensor out;
  GatheredValue gathered = {0, {2}, {there}};
  ScatteredValue scattered = {0, {}, {there}};
  std::vector<std::vector<at::Tensor>> nothing = {{{}, {}}}, received = {{{}, there}};
  engine->set_call(7);
  engine->all_reduce({}, Reduce::sum, {here}, out);
  engine->all_gather({}, std::span(&gathered, 1));
  engine->reduce_scatter({}, Reduce::sum, std::span(&scattered, 1));
  engine->all_to_all({}, nothing, nothing);
  engine->all_to_all({}, {{{}, here}}, nothing);
  engine->all_to_all({}, nothing, received);
  const Mesh mesh = create_mesh({{"stage", 2}});
  engine->exchange({.op = CommOp::transfer, .mesh = mesh, .shape = {2}}, {{0, here}}, {});
  engine->flush();
  engine->abort("over");
  CHECK(host->notes == "call 7; all_reduce; all_to_all; exchange; flush; abort: over");
  CHECK(gpus->notes == "call 7; all_gather; reduce_scatter; all_to_all; flush; abort: over");
  CHECK((engine->rank() == 1 && engine->size() == 2));
}

}  // namespace split_engine_test
