#include <tessera/framework/strategy/internal/function_batches.hpp>

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/cluster/internal/collective_error.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/internal/status.hpp>
#include <tessera/framework/tensor/internal/halo_exchange.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

namespace tessera::detail {

using namespace strategy;

namespace {

constexpr const char* from_function = "distribute_datasets_from_function";

std::string signature_of(const std::string& name, const at::Tensor& tensor) {
  const Shape shape = tensor.sizes().vec();
  return str(name, " ", dtype_name(tensor.scalar_type()), " ",
             to_string(Shape(shape.begin() + 1, shape.end())));
}

/// Returns names, dtypes and shapes without rows: "x Float (28, 28), y Long ()".
std::string signature_of(const Examples& batch) {
  std::vector<std::string> signatures;
  for (const at::Tensor& x : batch.x) signatures.push_back(signature_of("x", x));
  for (const at::Tensor& y : batch.y) signatures.push_back(signature_of("y", y));
  for (const at::Tensor& weight : batch.sample_weight) {
    signatures.push_back(signature_of("sample_weight", weight));
  }
  return join(signatures, ", ");
}

[[noreturn]] void throw_different_signatures(const std::string& received) {
  throw ShapeError(from_function, "all batches of a step may differ in their number of rows only",
                   received, "make the same tensors for every replica");
}

std::vector<at::Tensor> joined(const std::vector<Examples>& batches,
                               std::vector<at::Tensor> Examples::*member) {
  std::vector<at::Tensor> result;
  for (size_t i = 0; i < (batches[0].*member).size(); ++i) {
    std::vector<at::Tensor> tensors;
    for (const Examples& batch : batches) tensors.push_back((batch.*member)[i]);
    result.push_back(at::cat(tensors, 0));
  }
  return result;
}

/// Concatenates batches. Throws ShapeError if their signatures differ.
Examples joined(std::vector<Examples>&& batches) {
  if (batches.empty()) return {};
  if (batches.size() == 1) return std::move(batches[0]);
  const std::string signature = signature_of(batches[0]);
  for (const Examples& batch : batches) {
    if (signature_of(batch) != signature)
      throw_different_signatures(signature + "; " + signature_of(batch));
  }
  return {.x = joined(batches, &Examples::x),
          .y = joined(batches, &Examples::y),
          .sample_weight = joined(batches, &Examples::sample_weight)};
}

/// Returns the coordinates along "batch" of a rank's devices.
Interval replicas_of(const Mesh& mesh, int rank) {
  const std::vector<int64_t> ids = mesh.is_local() ? mesh.local_ids() : devices_of(mesh, rank);
  const auto batch = static_cast<size_t>(mesh.index("batch"));
  // The devices fill a box, so the first and the last are at opposite corners.
  return {mesh.coordinates(ids.front())[batch], mesh.coordinates(ids.back())[batch] + 1};
}

/// The rows that a process contributes to a step.
struct Share {
  int64_t rows = 0;  ///< 0: its data have ended
  std::string signature;
};

class FunctionBatches final : public DistributedDataset::Batches {
 public:
  FunctionBatches(const DatasetHandle& data, const LayoutMap& layouts,
                  const DistributeOptions& options, int64_t epoch)
      : data_(data),
        layouts_(layouts),
        communicator_(communicator_of(layouts.mesh())),
        processes_(layouts.mesh().is_local() ? 1 : communicator_.size()),
        rank_(layouts.mesh().is_local() ? 0 : communicator_.rank()),
        loader_(data_, {.batch_size = options.batch_size,
                        .shuffle = options.shuffle,
                        .seed = options.seed,
                        .epoch = epoch}) {}

  std::optional<Batch> next() override {
    if (ended_) return std::nullopt;
    const c10::InferenceMode inference;
    Examples mine;
    const std::vector<Share> shares = exchange(mine);
    if (has_ended(shares)) return std::nullopt;
    check_signatures(shares);
    ++steps_;
    const Rows rows = plan_rows(shares);
    mine.part = rows.part;
    return rows.fit ? pack_batch(std::move(mine), layouts_) : moved_batch(mine, rows);
  }

 private:
  /// Reads and joins a batch for each replica of this process, or fewer at the end of the data.
  Examples take() {
    std::vector<Examples> batches;
    const int64_t replicas = replicas_of(layouts_.mesh(), rank_).size();
    while (std::ssize(batches) < replicas) {
      std::optional<Examples> batch = loader_.next();
      if (!batch) break;
      batches.push_back(std::move(*batch));
    }
    return joined(std::move(batches));
  }

  std::vector<Share> exchange(Examples& mine) {
    GatherTexts gather;
    if (processes_ > 1) {
      gather = [&](const std::string& text) { return communicator_.gather(from_function, text); };
    }
    const auto texts = collectively(gather, from_function, "every process has a batch", [&] {
      mine = take();
      return to_json_text(Json::array({mine.rows(), signature_of(mine)}), -1);
    });
    std::vector<Share> shares;
    for (size_t rank = 0; rank < texts.size(); ++rank) {
      const Json json = parse_json(texts[rank], str(from_function, ", rank ", rank));
      shares.push_back({json.at(0).get<int64_t>(), json.at(1).get<std::string>()});
    }
    return shares;
  }

  bool has_ended(const std::vector<Share>& shares) {
    std::vector<std::string> states;
    for (const Share& share : shares) states.push_back(share.rows == 0 ? "ended" : "continue");
    const auto over = std::count(states.begin(), states.end(), "ended");
    ended_ = over > 0;
    if (ended_ && over < std::ssize(states)) {
      warn_once(layouts_.mesh(), str(from_function, ": after ", steps_, " steps the data ",
                                     group_by_text(states), "; all processes end the epoch here"));
    }
    return ended_;
  }

  static void check_signatures(const std::vector<Share>& shares) {
    std::vector<std::string> signatures;
    for (const Share& share : shares) signatures.push_back(share.signature);
    if (std::count(signatures.begin(), signatures.end(), signatures[0]) == std::ssize(signatures))
      return;
    throw_different_signatures(group_by_text(signatures));
  }

  /// Intervals of rows in the global batch.
  struct Rows {
    RowPart part;                ///< rows that this process has
    std::vector<Interval> have;  ///< rows that each replica has before any are moved
    std::vector<Interval> want;  ///< rows that each replica needs
    bool fit = true;             ///< whether every process has the rows that its replicas need
  };

  Rows plan_rows(const std::vector<Share>& shares) const {
    Rows all;
    for (const Share& share : shares) all.part.of += share.rows;
    const Mesh& mesh = layouts_.mesh();
    const int64_t replicas = mesh.dim_size(mesh.index("batch"));
    int64_t begin = 0;
    for (int rank = 0; rank < processes_; ++rank) {
      const int64_t rows = shares[static_cast<size_t>(rank)].rows;
      const Interval on = replicas_of(mesh, rank);
      for (int64_t replica = on.lo; replica < on.hi; ++replica) {
        const Interval interval = shard_interval(rows, on.size(), replica - on.lo);
        all.have.push_back({begin + interval.lo, begin + interval.hi});
        all.want.push_back(shard_interval(all.part.of, replicas, replica));
        const Interval want = all.want.back();
        all.fit = all.fit && (want.empty() || (begin <= want.lo && want.hi <= begin + rows));
      }
      if (rank == rank_) all.part.rows = {begin, begin + rows};
      begin += rows;
    }
    return all;
  }

  /// Like pack_batch(), but fetches the rows that replicas lack from other processes.
  Batch moved_batch(const Examples& mine, const Rows& rows) const {
    Batch batch;
    batch.rows = rows.part.of;
    for (const at::Tensor& x : mine.x) batch.x.push_back(moved(x, "x", rows));
    for (const at::Tensor& y : mine.y) batch.y.push_back(moved(y, "y", rows));
    for (const at::Tensor& weight : mine.sample_weight) {
      batch.sample_weight.push_back(moved(weight, "sample_weight", rows));
    }
    return batch;
  }

  DTensor moved(const at::Tensor& mine, const std::string& name, const Rows& rows) const {
    const Layout layout = layouts_.data_layout(name, mine.dim());
    Shape shape = mine.sizes().vec();
    shape[0] = rows.part.of;
    const ShardingPtr target = intern(shape, mine.scalar_type(), layout);
    const BlockPolicyScope finest(BlockPolicy::per_device);
    const ShardingPtr shards = intern(shape, mine.scalar_type(), layout);
    const std::vector<int64_t> members = block_members(*shards, 0);
    Blocks blocks;
    for (size_t b = 0; b < shards->blocks.size(); ++b) {
      const Interval have = rows.have[static_cast<size_t>(members[b])];
      const at::Tensor block = mine.narrow(0, have.lo - rows.part.rows.lo, have.size());
      blocks.push_back(moved_to(block, block_device(shards->mesh(), shards->blocks[b])));
    }
    const Blocks target_blocks =
        gather_intervals(*shards, blocks, {.axis = 0, .have = rows.have}, rows.want, 0);
    return relayout_to(DTensor(shards, target_blocks), target);
  }

  DatasetHandle data_;
  LayoutMap layouts_;
  Communicator& communicator_;
  int processes_, rank_;
  int64_t steps_ = 0;
  bool ended_ = false;
  /// Declared last, so that its thread, which reads data_, ends first.
  BatchLoader loader_;
};

}  // namespace

std::shared_ptr<DistributedDataset::Batches> function_batches(const DatasetHandle& data,
                                                              const LayoutMap& layouts,
                                                              const DistributeOptions& options,
                                                              int64_t epoch) {
  return std::make_shared<FunctionBatches>(data, layouts, options, epoch);
}

}  // namespace tessera::detail
