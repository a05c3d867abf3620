#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/tessera.hpp>

namespace tessera::bench {

/// What `bench compare-work` is told of its work.
struct WorkFlags {
  std::string work;
  std::string device;
  std::string way = "step";
  int64_t devices = 1;
  std::string blocks = "per_worker";
  std::string scheme = "data";
  std::string data;
};

/// Does work so many times and says what it took.
using TimedWork = std::function<Json(int64_t count)>;

/// An answer of a TimedWork.
Json milliseconds(const std::vector<double>& values);
/// The mesh of `bench compare --device`, of one device unless the work says more.
Mesh mesh_of(const WorkFlags& flags);

/// Dropout of what is larger than caches, or a copy of it, which reads and writes as many bytes; in
/// milliseconds each.
TimedWork dropout_work(const WorkFlags& flags);
/// Causal attention, forward and backward, of 4 rows of 512 steps with 8 heads of 64 features.
TimedWork attention_work(const WorkFlags& flags);

}  // namespace tessera::bench
