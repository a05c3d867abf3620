#include <tessera/framework/io/internal/read_blocks.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/internal/placement.hpp>

namespace tessera::detail {

DTensor read_blocks(const ShardingPtr& sharding,
                    const std::function<at::Tensor(const std::vector<Interval>&)>& read) {
  const std::vector<BlockInfo>& infos = sharding->blocks;
  Blocks blocks;
  for (size_t b = 0; b < infos.size(); ++b) {
    const std::vector<Interval>& intervals = infos[b].intervals;
    const auto same = std::find_if(infos.begin(), infos.begin() + static_cast<int64_t>(b),
                                   [&](const BlockInfo& i) { return i.intervals == intervals; });
    const auto replica = static_cast<size_t>(same - infos.begin());
    if (replica < b) {
      blocks.push_back(blocks[replica].clone());
      continue;
    }
    blocks.push_back(moved_to(read(intervals), block_device(sharding->mesh(), infos[b])));
  }
  return DTensor(sharding, std::move(blocks));
}

}  // namespace tessera::detail
