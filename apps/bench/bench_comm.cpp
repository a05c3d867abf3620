#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/transport/tcp/device.h>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/comm/cpu/gloo_transport.hpp>
#include <tessera/framework/comm/cpu/p2p_engine.hpp>
#include <tessera/framework/comm/cpu/shared_memory_transport.hpp>

#include "apps/bench/bench.hpp"
#include "apps/bench/rank_group.hpp"
#include "apps/bench/timing.hpp"
#include "apps/common/app_options.hpp"
#include "apps/common/table.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

constexpr int64_t mega = int64_t{1} << 20;
const std::vector<int64_t> sizes = {4,    int64_t{16} << 10, int64_t{256} << 10,
                                    mega, 16 * mega,         64 * mega};

/// Gloo's own collectives over its own transport.
class RawGloo final : public gloo::Context {
 public:
  RawGloo(int at, int ranks, const Gather& gather) : gloo::Context(at, ranks) {
    device_ = gloo::transport::tcp::CreateDevice("127.0.0.1");
    transportContext_ = device_->createContext(at, ranks);
    const size_t space = gloo::transport::Address::kMaxByteSize;
    std::string mine(space * static_cast<size_t>(ranks), '\0');
    size_t used = 0;
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == at) continue;
      const std::vector<char> bytes = transportContext_->createPair(peer)->address().bytes();
      std::memcpy(&mine[space * static_cast<size_t>(peer)], bytes.data(), bytes.size());
      used = bytes.size();
    }
    const std::vector<std::string> all = gather(mine);
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == at) continue;
      const char* address = all[static_cast<size_t>(peer)].data() + space * static_cast<size_t>(at);
      transportContext_->getPair(peer)->connect({address, address + used});
    }
  }
};

/// A method of summing over the ranks.
struct SumMethod {
  std::string name;
  std::function<void(const at::Tensor& in, at::Tensor& out)> sum;
};

WorkPtr all_reduce(Engine& engine, const at::Tensor& in, at::Tensor& out) {
  Group group{{0}, {}, {engine.rank()}};
  for (int r = 0; r < engine.size(); ++r) group.owner.push_back(r);
  return engine.all_reduce(group, Reduce::sum, {in}, out);
}

SumMethod engine_method(const std::string& name, std::unique_ptr<Transport> transport) {
  const std::shared_ptr<Engine> engine = make_p2p_engine(std::move(transport));
  return {name,
          [engine](const at::Tensor& in, at::Tensor& out) { wait(all_reduce(*engine, in, out)); }};
}

std::vector<SumMethod> make_methods(int rank, int ranks, const Gather& gather) {
  std::vector<SumMethod> methods;
  const auto raw = std::make_shared<RawGloo>(rank, ranks, gather);
  methods.push_back(
      {"gloo::allreduce", [raw](const at::Tensor& in, at::Tensor& out) {
         gloo::AllreduceOptions options(raw);
         const size_t count = static_cast<size_t>(in.numel());
         options.setInput(const_cast<float*>(in.const_data_ptr<float>()), count);
         options.setOutput(out.mutable_data_ptr<float>(), count);
         options.setReduceFunction(
             static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
         gloo::allreduce(options);
       }});
  methods.push_back(
      engine_method("gloo", gloo_transport({.rank = rank, .size = ranks, .gather = gather})));
  methods.push_back(
      engine_method("shared", shared_memory_transport({rank, ranks, gather, nullptr})));
  return methods;
}

/// Returns seconds by size and method: the median of rounds in which the methods take turns.
std::vector<std::vector<double>> measure(int rank, int ranks, int64_t rounds,
                                         const Gather& gather) {
  const c10::InferenceMode inference;
  at::set_num_threads(1);
  const std::vector<SumMethod> methods = make_methods(rank, ranks, gather);
  std::vector<std::vector<double>> table;
  for (int64_t bytes : sizes) {
    const at::Tensor in = at::ones({bytes / 4});
    std::vector<at::Tensor> outs(methods.size(), at::empty({bytes / 4}));
    std::vector<std::vector<double>> times(methods.size());
    const int64_t calls = std::max<int64_t>(1, std::min<int64_t>(200, mega / bytes));
    for (int64_t round = -1; round < rounds; ++round) {
      for (size_t w = 0; w < methods.size(); ++w) {
        gather("");
        const double seconds = seconds_of([&] {
          for (int64_t i = 0; i < calls; ++i) methods[w].sum(in, outs[w]);
        });
        if (round >= 0) times[w].push_back(seconds / static_cast<double>(calls));
      }
    }
    table.emplace_back();
    for (std::vector<double>& list : times) table.back().push_back(median(std::move(list)));
  }
  return table;
}

}  // namespace

int bench_comm(int argc, const char* const* argv) {
  int64_t rounds = 11;
  std::string json;
  app::AppOptions options = app::AppOptions::bare(
      "bench comm",
      "Compares the times of all-reduces over 2 and 4 local processes with Gloo's own.");
  options.add({"rounds", "Data", "rounds per method", app::integer(rounds, 1, 1000)});
  options.add({"json", "Output", "file for the times", app::output_file(json, "FILE.json")});
  if (!options.parse(argc, argv)) return 0;
  Json list = Json::array();
  for (int ranks : {2, 4}) {
    const Json table = Json::parse(run_ranks(ranks, [&](int rank, const Gather& gather) {
      return Json(measure(rank, ranks, rounds, gather)).dump();
    }));
    app::Table text({"KB", "gloo::allreduce ms", "gloo ms", "GB/s", "of Gloo's", "shared ms",
                     "GB/s", "of Gloo's"});
    for (size_t s = 0; s < sizes.size(); ++s) {
      const double raw = table[s][0], bytes = static_cast<double>(sizes[s]);
      std::vector<std::string> row = {app::fixed(bytes / 1024, 0), app::fixed(raw * 1e3, 3)};
      for (size_t method : {1, 2}) {
        const double ours = table[s][method];
        row.push_back(app::fixed(ours * 1e3, 3));
        row.push_back(app::fixed(bytes / ours / 1e9, 2));
        row.push_back(app::fixed(raw / ours, 2));
      }
      text.add(row);
      list.push_back({{"ranks", ranks},
                      {"bytes", sizes[s]},
                      {"raw", raw},
                      {"gloo", table[s][1]},
                      {"shared", table[s][2]}});
    }
    std::cout << "All-reduce over " << ranks << " processes: the median of " << rounds
              << " rounds.\n\n"
              << text.to_string() << "\n";
  }
  if (!json.empty()) write_file_atomically(json, to_json_text(list) + "\n");
  return 0;
}

}  // namespace tessera::bench
