#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/tessera.hpp>

namespace tessera::bench {

/// The options of `bench compare-work`.
struct WorkFlags {
  std::string work;
  std::string device;
  std::string way = "step";
  int64_t devices = 1;
  std::string blocks = "per_worker";
  bool invariant = false;  ///< CompileOptions::world_size_invariant
  std::string scheme = "data";
  std::string data;
  int64_t threads = 1;
};

/// Does work `count` times and returns its measurements.
using TimedWork = std::function<Json(int64_t count)>;

/// Returns a TimedWork's answer with these times.
Json milliseconds(const std::vector<double>& values);
/// Returns the mesh of `bench compare --device`, with `flags.devices` devices.
Mesh mesh_of(const WorkFlags& flags);

/// Times dropout of a tensor larger than the caches, or a copy of it, which reads and writes as
/// many bytes.
TimedWork dropout_work(const WorkFlags& flags);
/// Times causal attention, forward and backward, on 4 rows of 512 steps, 8 heads of 64 features.
TimedWork attention_work(const WorkFlags& flags);

}  // namespace tessera::bench
