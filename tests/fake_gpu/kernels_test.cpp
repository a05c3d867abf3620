#include <functional>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>

#include "tests/fake_gpu/gpus.hpp"
#include "tests/support/catch.hpp"

namespace kernels_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

at::Tensor numbers() { return at::arange(1, 13, at::kFloat).view({3, 4}); }

}  // namespace

TEST_CASE("kernels of a fake GPU compute what the CPU's compute") {
  const c10::InferenceMode inference;
  using Function = std::function<at::Tensor(at::Tensor)>;
  const std::vector<Function> functions = {
      [](at::Tensor x) { return x.mul(2).add(x); },
      [](at::Tensor x) { return x.t().matmul(x); },
      [](at::Tensor x) { return x.sum(1, true); },
      [](at::Tensor x) { return x.narrow(1, 1, 2).t().contiguous(); },
      [](at::Tensor x) { return x.clone().narrow(0, 1, 1).fill_(7); },
      [](at::Tensor x) {
        return at::cat({x, x.flip(0)}, 1);
      },
      [](at::Tensor x) { return x.index({x.gt(5)}); },
      [](at::Tensor x) { return x.to(at::kDouble).to(at::kLong); },
      [](at::Tensor x) { return std::get<1>(x.topk(2)); },
      [](at::Tensor x) { return at::where(x.gt(5), x, at::scalar_tensor(0, x.options())); },
      [](at::Tensor x) { return x.unfold(1, 2, 1).sum(-1); },
      [](at::Tensor x) { return at::arange(4, x.options()).add(x); },
      [](at::Tensor x) {
        return at::convolution(x.view({1, 1, 3, 4}), x.view({2, 1, 2, 3}), {}, {1, 1}, {0, 0},
                               {1, 1}, false, {0, 0}, 1);
      },
  };
  for (size_t f = 0; f < functions.size(); ++f) {
    CAPTURE(f);
    const at::Tensor made = functions[f](numbers().to(device(1)));
    CHECK(made.device() == device(1));
    CHECK(made.cpu().equal(functions[f](numbers())));
    CHECK(made.strides() == functions[f](numbers()).strides());
  }
}

TEST_CASE("in-place kernels and kernels on lists write through") {
  const c10::InferenceMode inference;
  const at::Tensor x = numbers().to(device(0)), y = at::empty({0}, x_options());
  x.narrow(0, 0, 1).add_(10);
  CHECK(x[0][0].item<float>() == 11);
  at::mul_out(const_cast<at::Tensor&>(y), x, x);
  CHECK(y.cpu().equal(x.cpu().mul(x.cpu())));
  at::_foreach_add_({x, y}, 1);
  CHECK(x[2][3].item<float>() == 13);
  CHECK(y[2][3].item<float>() == 145);
  const auto on_gpu = [](double value) { return at::full({3}, value, x_options()); };
  const at::Tensor w = on_gpu(1);
  at::_fused_adam_({w}, {on_gpu(1)}, {on_gpu(0)}, {on_gpu(0)}, {}, {on_gpu(1)[0].clone()}, 0.5, 0.9,
                   0.99, 0, 0, false, false);
  CHECK(w.cpu().allclose(at::full({3}, 0.5)));
}

TEST_CASE("operations that CUDA refuses are refused") {
  const c10::InferenceMode inference;
  const at::Tensor x = numbers().to(device(0)), there = numbers().to(device(1)), host = numbers();
  const auto elsewhere = Contains("Expected all tensors to be on the same device");
  CHECK_THROWS_WITH(x.add(there), elsewhere);
  CHECK_THROWS_WITH(x.add(host), elsewhere);
  CHECK_THROWS_WITH(x.t().mm(host), elsewhere);
  CHECK_THROWS_WITH(at::cat({x, host}), elsewhere);
  CHECK_THROWS_WITH(x.index_select(0, at::zeros({1}, at::kLong)), elsewhere);
  CHECK(x.add(at::scalar_tensor(1)).cpu().equal(host + 1));
  CHECK(x.index({at::tensor({2})}).cpu().equal(host.narrow(0, 2, 1)));

  const at::Tensor integers = x.to(at::kLong);
  CHECK_THROWS_WITH(integers.t().mm(integers), Contains("not implemented for 'Long'"));
  CHECK_THROWS_WITH(at::einsum("ij,kj->ik", {integers, integers}), Contains("not implemented"));
  const at::Tensor wide = x.to(at::kDouble), step = at::zeros({}, x_options());
  CHECK_THROWS_WITH(at::_fused_adam_({x.clone(), wide.clone()}, {x, wide},
                                     {x.clone(), wide.clone()}, {x.clone(), wide.clone()}, {},
                                     {step, step.clone()}, 0.5, 0.9, 0.99, 0, 0, false, false),
                    Contains("must have same dtype, device, and layout"));
  CHECK_THROWS_WITH(at::empty({3}, x_options()).normal_(), Contains("no random numbers"));
}

TEST_CASE("kernels, copies and waits are counted") {
  const c10::InferenceMode inference;
  const at::Tensor host = numbers(), x = host.to(device(0)), pinned = numbers().pin_memory();
  const fake_gpu::Counters all = counted([&] {
    x.add(1).mul_(2);      // two kernels
    host.to(device(0));    // pageable: waits
    pinned.to(device(0));  // waits because it is not non-blocking
    pinned.to(device(0), at::kFloat, true);
    pinned.to(device(0), at::kDouble, true);  // converted in pageable memory
    x.to(device(1));
    x.cpu();
    x[0][0].item<float>();
  });
  CHECK(all.kernels == 2);
  CHECK(all.pageable_uploads == 2);
  CHECK(all.pinned_uploads == 2);
  CHECK(all.downloads == 2);
  CHECK(all.moves == 1);
  CHECK(all.waits == 5);
  CHECK(all.allocations == 6);
  const at::Tensor picked = x.index({x.gt(5)});
  fake_gpu::take_waits();
  CHECK(counted([&] { x.equal(x); }).waits == 1);
  CHECK(fake_gpu::take_waits() == std::vector<std::string>{"aten::equal"});
}

TEST_CASE("a budget of waits names the operation that exceeds it") {
  const c10::InferenceMode inference;
  const at::Tensor x = numbers().to(device(0));
  const fake_gpu::SyncBudget budget(1);
  CHECK(x.sum().item<float>() == 78);
  CHECK_THROWS_WITH(x.sum().item<float>(), Contains("_local_scalar_dense"));
  {
    const fake_gpu::SyncBudget another(1);
    CHECK(x.sum().item<float>() == 78);
  }
  CHECK_THROWS_AS(x.cpu(), StateError);
}

}  // namespace kernels_test
