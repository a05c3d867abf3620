#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>

#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/dtensor.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>

namespace tessera::detail {

/// Calls run(b) for every block; small blocks on the CPU run in parallel. `blocks` holds one tensor
/// of each block. If `owners`, the device of each block, is not empty, allocations in run(b) are
/// accounted to owners[b].
template <class Run>
void for_each_block(const std::vector<at::Tensor>& blocks, const Run& run,
                    const std::vector<int64_t>& owners = {}) {
  int64_t largest = 0;
  int64_t total = 0;
  std::vector<c10::Device> devices;
  for (const at::Tensor& block : blocks) {
    largest = std::max(largest, block.numel());
    total += block.numel();
    devices.push_back(block.device());
  }
  // If one block dominates, ATen's parallelism inside it balances better than one thread per block.
  const bool parallel = total >= inline_elements && largest * worker_count() <= total;
  run_blocks(devices, parallel, [&](int64_t b) {
    std::optional<DeviceMemory::For> memory;
    if (!owners.empty()) memory.emplace(owners[static_cast<size_t>(b)]);
    run(static_cast<size_t>(b));
  });
}

/// Groups block indices by device and dtype, so that each group can be passed to one of ATen's list
/// functions (_foreach_…), which launch once on a GPU.
inline std::vector<std::vector<size_t>> group_by_device_and_dtype(
    const std::vector<at::Tensor>& blocks) {
  std::map<std::pair<c10::DeviceIndex, at::ScalarType>, std::vector<size_t>> groups;
  for (size_t b = 0; b < blocks.size(); ++b) {
    groups[{blocks[b].device().index(), blocks[b].scalar_type()}].push_back(b);
  }
  std::vector<std::vector<size_t>> lists;
  for (auto& [key, list] : groups) lists.push_back(std::move(list));
  return lists;
}

inline std::vector<at::Tensor> select(const std::vector<at::Tensor>& blocks,
                                      const std::vector<size_t>& indices) {
  std::vector<at::Tensor> list;
  for (size_t b : indices) list.push_back(blocks[b]);
  return list;
}

/// Calls run(b) for every block on the CPU, like for_each_block(), and together(indices) for the
/// blocks on GPUs, grouped by device and dtype.
template <class Run, class Together>
void for_each_list(const std::vector<at::Tensor>& blocks, const Run& run, const Together& together,
                   const std::vector<int64_t>& owners = {}) {
  const bool on_host = std::all_of(blocks.begin(), blocks.end(),
                                   [](const at::Tensor& block) { return block.is_cpu(); });
  if (on_host) return for_each_block(blocks, run, owners);
  for (const std::vector<size_t>& indices : group_by_device_and_dtype(blocks)) {
    if (blocks[indices[0]].is_cpu()) {
      for (size_t b : indices) run(b);
    } else {
      const c10::DeviceGuard guard(blocks[indices[0]].device());
      together(indices);
    }
  }
}

/// Returns the blocks of all values, in order.
inline std::vector<at::Tensor> blocks_of(const std::vector<DTensor>& values) {
  std::vector<at::Tensor> blocks;
  for (const DTensor& value : values) {
    blocks.insert(blocks.end(), value.blocks().begin(), value.blocks().end());
  }
  return blocks;
}

/// Returns the device to which the memory of each of blocks_of(values) is accounted.
inline std::vector<int64_t> memory_devices_of(const std::vector<DTensor>& values) {
  std::vector<int64_t> devices;
  for (const DTensor& value : values) {
    for (const BlockInfo& block : value.sharding()->blocks) {
      devices.push_back(block.devices.front());
    }
  }
  return devices;
}

/// Inverts blocks_of(): returns values with the shardings of `like` and these blocks.
inline std::vector<DTensor> values_of(const std::vector<DTensor>& like,
                                      const std::vector<at::Tensor>& blocks) {
  std::vector<DTensor> values;
  auto next = blocks.begin();
  for (const DTensor& value : like) {
    const auto first = next;
    next += static_cast<std::ptrdiff_t>(value.blocks().size());
    values.emplace_back(value.sharding(), Blocks(first, next));
  }
  return values;
}

/// Returns the index of the value that each of blocks_of(values) belongs to.
inline std::vector<size_t> owners_of(const std::vector<DTensor>& values) {
  std::vector<size_t> owners;
  for (size_t v = 0; v < values.size(); ++v) {
    owners.insert(owners.end(), values[v].blocks().size(), v);
  }
  return owners;
}

/// Returns new values whose blocks are f(value index, block).
template <class F>
std::vector<DTensor> map_blocks(const std::vector<DTensor>& values, const F& f) {
  const std::vector<at::Tensor> blocks = blocks_of(values);
  const std::vector<size_t> owners = owners_of(values);
  std::vector<at::Tensor> results(blocks.size());
  for_each_block(
      blocks, [&](size_t b) { results[b] = f(owners[b], blocks[b]); }, memory_devices_of(values));
  return values_of(values, results);
}

/// Returns new values whose blocks are f(block); blocks on GPUs are mapped by together(list),
/// grouped by device and dtype.
template <class F, class Together>
std::vector<DTensor> map_lists(const std::vector<DTensor>& values, const F& f,
                               const Together& together) {
  const std::vector<at::Tensor> blocks = blocks_of(values);
  std::vector<at::Tensor> results(blocks.size());
  for_each_list(
      blocks, [&](size_t b) { results[b] = f(blocks[b]); },
      [&](const std::vector<size_t>& indices) {
        const std::vector<at::Tensor> list = together(select(blocks, indices));
        for (size_t i = 0; i < indices.size(); ++i) results[indices[i]] = list[i];
      },
      memory_devices_of(values));
  return values_of(values, results);
}

}  // namespace tessera::detail
