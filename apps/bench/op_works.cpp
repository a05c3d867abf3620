#include "apps/bench/op_works.hpp"

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/ops/attention/attention.hpp>

#include "apps/bench/timing.hpp"

namespace tessera::bench {

using namespace detail;

Json milliseconds(const std::vector<double>& values) { return {{"milliseconds", values}}; }

Mesh mesh_of(const WorkFlags& flags) {
  return create_mesh({{"batch", flags.devices}}, flags.device == "cuda"
                                                     ? cuda_devices(flags.devices)
                                                     : virtual_cpus(flags.devices));
}

TimedWork dropout_work(const WorkFlags& flags) {
  constexpr int together = 20;
  const bool on_gpu = flags.device == "cuda";
  const Mesh mesh = mesh_of(flags);
  const DTensor x = pack(at::ones({on_gpu ? 1 << 27 : 1 << 16}), Layout::replicated(mesh, 1));
  const DTensor seed = ops::seed_input(Seed{1, 2}, mesh);
  return [=](int64_t count) {
    std::vector<double> taken;
    for (int64_t i = 0; i < count; ++i) {
      const double seconds = seconds_of([&] {
        for (int j = 0; j < together; ++j) {
          flags.work == "copy" ? void(x.blocks()[0].clone()) : void(ops::dropout(x, 0.1, seed));
        }
        if (on_gpu) gpu(0).compute().synchronize();
      });
      taken.push_back(1e3 * seconds / together);
    }
    return milliseconds(taken);
  };
}

TimedWork attention_work(const WorkFlags& flags) {
  const Mesh mesh = mesh_of(flags);
  std::vector<DTensor> in;
  while (in.size() < 3) {
    in.push_back(pack(at::randn({4, 512, 8, 64}), Layout::replicated(mesh, 4)));
  }
  return [in](int64_t count) {
    std::vector<double> taken;
    for (int64_t i = 0; i < count; ++i) {
      taken.push_back(
          1e3 * seconds_of([&] {
            GradientTape tape;
            for (const DTensor& x : in) tape.watch(x);
            tape.gradient(ops::sum(ops::attention(in[0], in[1], in[2], {}, {.causal = true})), in);
          }));
    }
    return milliseconds(taken);
  };
}

}  // namespace tessera::bench
