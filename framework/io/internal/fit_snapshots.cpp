#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/internal/status.hpp>
#include <tessera/framework/comm/world_size_invariant.hpp>
#include <tessera/framework/io/format/rectangle_runs.hpp>
#include <tessera/framework/io/internal/checkpoint_restore.hpp>
#include <tessera/framework/io/internal/checkpoint_source.hpp>
#include <tessera/framework/io/internal/checkpoint_state.hpp>
#include <tessera/framework/io/internal/shards_to_save.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/tensor/internal/deferred_checks.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>
#include <tessera/framework/tensor/internal/stored_value.hpp>
#include <tessera/framework/training/internal/elastic_fit.hpp>

namespace tessera::detail {
namespace {

constexpr const char* memory_name = "the snapshot in memory";

/// Snapshots are numbered in each generation; a later generation's are newer.
using SnapshotId = std::pair<uint64_t, uint64_t>;

/// A block of a tensor, in a process that holds it or its copy.
struct MemoryPiece {
  size_t tensor = 0;
  Rectangle area = {};
  uint64_t bytes = 0;
  std::vector<int> ranks = {};  ///< processes that held it, of the snapshot's generation
  at::Tensor data = {};         ///< row-major; undefined where neither it nor a copy is held
};

/// A snapshot, or this process' share of it.
struct MemorySnapshot {
  SnapshotId id;
  int rank = -1;  ///< this process' in the snapshot's generation; -1: it has no share
  int size = 1;
  Json state = nullptr;
  std::vector<double> losses = {};
  std::vector<CheckpointTensor> tensors = {};
  std::vector<MemoryPiece> pieces = {};
  // Copies on their way to the neighbour, and from the one before.
  WorkPtr work = nullptr;
  at::Tensor sent = {}, received = {};
  bool copied = false;  ///< whether the copies of the neighbour before have arrived
};

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

at::Tensor byte_tensor(uint64_t bytes) {
  return at::empty({static_cast<int64_t>(bytes)}, at::kByte);
}

/// Returns the rank that holds the copies of what only `rank` holds.
int neighbour_of(int rank, int size) { return (rank + 1) % size; }

/// Whether a piece has a copy with its holder's neighbour.
bool is_copied(const MemoryPiece& piece, int size) { return size > 1 && piece.ranks.size() == 1; }

uint64_t copied_bytes(const MemorySnapshot& snapshot, int holder) {
  uint64_t bytes = 0;
  for (const MemoryPiece& piece : snapshot.pieces) {
    const bool counts = is_copied(piece, snapshot.size) && piece.ranks[0] == holder;
    bytes += counts ? piece.bytes : 0;
  }
  return bytes;
}

/// A process' share of a snapshot.
struct Share {
  int rank = 0;
  bool copied = false;
};

/// Whether a process with this share of a snapshot has a piece.
bool has(const Share& share, const MemoryPiece& piece, int size) {
  if (std::find(piece.ranks.begin(), piece.ranks.end(), share.rank) != piece.ranks.end()) {
    return true;
  }
  return share.copied && is_copied(piece, size) && neighbour_of(piece.ranks[0], size) == share.rank;
}

Json to_json(const MemorySnapshot& snapshot) {
  Json tensors = Json::array(), pieces = Json::array(), losses = Json::array();
  for (const CheckpointTensor& tensor : snapshot.tensors) {
    tensors.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  for (const MemoryPiece& piece : snapshot.pieces) {
    pieces.push_back({piece.tensor, piece.area.begin, piece.area.end, piece.bytes, piece.ranks});
  }
  // Losses may be NaN, which JSON lacks.
  for (const double loss : snapshot.losses) losses.push_back(std::bit_cast<uint64_t>(loss));
  return {{"size", snapshot.size},
          {"state", snapshot.state},
          {"tensors", tensors},
          {"pieces", pieces},
          {"losses", losses}};
}

/// Reads the result of to_json() by another process of the same build.
MemorySnapshot snapshot_from(const Json& json, SnapshotId id) {
  MemorySnapshot snapshot{.id = id};
  snapshot.size = json.at("size").get<int>();
  snapshot.state = json.at("state");
  for (const Json& tensor : json.at("tensors")) {
    snapshot.tensors.push_back(
        {tensor[0].get<std::string>(), tensor[1].get<std::string>(), tensor[2].get<Shape>()});
  }
  for (const Json& piece : json.at("pieces")) {
    snapshot.pieces.push_back({piece[0].get<size_t>(),
                               {piece[1].get<Shape>(), piece[2].get<Shape>()},
                               piece[3].get<uint64_t>(),
                               piece[4].get<std::vector<int>>()});
  }
  for (const Json& loss : json.at("losses")) {
    snapshot.losses.push_back(std::bit_cast<double>(loss.get<uint64_t>()));
  }
  return snapshot;
}

bool overlap(const Rectangle& a, const Rectangle& b) {
  for (size_t axis = 0; axis < a.begin.size(); ++axis) {
    if (a.begin[axis] >= b.end[axis] || b.begin[axis] >= a.end[axis]) return false;
  }
  return true;
}

/// A group of all processes.
Group all_processes(const Communicator& communicator) {
  Group group;
  for (int r = 0; r < communicator.size(); ++r) group.owner.push_back(r);
  group.local = {communicator.rank()};
  return group;
}

/// Begins an exchange of bytes between all processes: to[r] goes to rank r, from[r] comes from it.
WorkPtr exchange(const Mesh& mesh, const std::string& label, const std::vector<at::Tensor>& to,
                 std::vector<at::Tensor>& from) {
  Communicator& communicator = communicator_of(mesh);
  const CommLabel named(label);
  const Shape shape = {};
  communicator.begin({.op = CommOp::all_to_all,
                      .mesh = mesh,
                      .dims = (DimMask(1) << mesh.rank()) - 1,
                      .dtype = at::kByte,
                      .shape = shape});
  std::vector<std::vector<at::Tensor>> received = {from};
  WorkPtr work = communicator.all_to_all(all_processes(communicator), {to}, received);
  from = received[0];
  return work;
}

/// A snapshot whose pieces are fetched from the processes that have them.
class MemorySource final : public CheckpointSource {
 public:
  /// `shares` are what the processes of the mesh keep, by rank.
  MemorySource(MemorySnapshot& snapshot, const std::vector<std::optional<Share>>& shares,
               const Mesh& mesh)
      : snapshot_(snapshot), shares_(shares), mesh_(mesh) {
    for (size_t i = 0; i < snapshot.tensors.size(); ++i) numbers_[snapshot.tensors[i].name] = i;
    pieces_.resize(snapshot.tensors.size());
    for (size_t p = 0; p < snapshot.pieces.size(); ++p) {
      pieces_[snapshot.pieces[p].tensor].push_back(p);
      data_.push_back(snapshot.pieces[p].data);
    }
  }

  const std::string& name() const override {
    static const std::string text = memory_name;
    return text;
  }
  const std::vector<CheckpointTensor>& tensors() const override { return snapshot_.tensors; }
  const CheckpointTensor* find(std::string_view name) const override {
    const auto found = numbers_.find(std::string(name));
    return found == numbers_.end() ? nullptr : &snapshot_.tensors[found->second];
  }
  const Json& state() const override { return snapshot_.state; }
  std::vector<double> step_losses() const override { return snapshot_.losses; }
  void prepare(const std::vector<CheckpointRead>& reads) override;
  void read(std::string_view name, const Shape& begin, const Shape& end, std::span<std::byte> out,
            CheckpointShare share) const override;

 private:
  /// Returns the rank that sends a piece to another: the one after it among those that have it, so
  /// that they share the work.
  int sender(size_t piece, int to) const;

  MemorySnapshot& snapshot_;
  const std::vector<std::optional<Share>>& shares_;
  Mesh mesh_;
  std::unordered_map<std::string, size_t> numbers_;
  std::vector<std::vector<size_t>> pieces_;  ///< numbers of the pieces of each tensor
  std::vector<at::Tensor> data_;             ///< bytes of each piece, own and fetched
};

int MemorySource::sender(size_t piece, int to) const {
  std::vector<int> holders;
  for (size_t r = 0; r < shares_.size(); ++r) {
    const bool holds = shares_[r] && has(*shares_[r], snapshot_.pieces[piece], snapshot_.size);
    if (holds) holders.push_back(static_cast<int>(r));
  }
  return holders[(static_cast<size_t>(to) + piece) % holders.size()];
}

void MemorySource::prepare(const std::vector<CheckpointRead>& reads) {
  Communicator& communicator = communicator_of(mesh_);
  std::set<size_t> missing;
  for (const CheckpointRead& each : reads) {
    for (const size_t p : pieces_[numbers_.at(each.tensor)]) {
      if (data_[p].defined()) continue;
      if (overlap(snapshot_.pieces[p].area, {each.begin, each.end})) missing.insert(p);
    }
  }
  const std::vector<std::string> texts =
      communicator.gather("elastic: missing", to_json_text(Json(missing), -1));
  const int me = communicator.rank(), size = communicator.size();
  // Each process packs what it sends to each other in the order of the pieces.
  std::vector<std::vector<size_t>> to(texts.size()), from(texts.size());
  bool any = false;
  for (int r = 0; r < size; ++r) {
    const auto list = json_as<std::vector<size_t>>(
        parse_json(texts[static_cast<size_t>(r)], memory_name), JsonPath(memory_name));
    for (const size_t p : list) {
      const int by = sender(p, r);
      any = true;
      if (by == me) to[static_cast<size_t>(r)].push_back(p);
      if (r == me) from[static_cast<size_t>(by)].push_back(p);
    }
  }
  if (!any) return;
  std::vector<at::Tensor> sent(texts.size()), received(texts.size());
  const auto bytes_in = [&](const std::vector<size_t>& list) {
    uint64_t bytes = 0;
    for (const size_t p : list) bytes += snapshot_.pieces[p].bytes;
    return bytes;
  };
  for (size_t r = 0; r < texts.size(); ++r) {
    if (!to[r].empty()) {
      sent[r] = byte_tensor(bytes_in(to[r]));
      auto* at = static_cast<std::byte*>(sent[r].mutable_data_ptr());
      for (const size_t p : to[r]) {
        const auto bytes = bytes_of(data_[p]);
        at = std::copy(bytes.begin(), bytes.end(), at);
      }
    }
    if (!from[r].empty()) received[r] = byte_tensor(bytes_in(from[r]));
  }
  wait(exchange(mesh_, memory_name, sent, received));
  for (size_t r = 0; r < texts.size(); ++r) {
    int64_t at = 0;
    for (const size_t p : from[r]) {
      const auto bytes = static_cast<int64_t>(snapshot_.pieces[p].bytes);
      data_[p] = received[r].narrow(0, at, bytes);
      at += bytes;
    }
  }
}

void MemorySource::read(std::string_view name, const Shape& begin, const Shape& end,
                        std::span<std::byte> out, CheckpointShare share) const {
  if (share.number != 0) return;  // copies in memory are quick
  const size_t tensor = numbers_.at(std::string(name));
  const Rectangle target{begin, end};
  for (const size_t p : pieces_[tensor]) {
    const MemoryPiece& piece = snapshot_.pieces[p];
    if (!overlap(piece.area, target)) continue;
    const std::span<const std::byte> from = bytes_of(data_[p]);
    int64_t elements = 1;
    for (size_t axis = 0; axis < begin.size(); ++axis) elements *= piece.area.size(axis);
    const uint64_t element = from.size() / static_cast<uint64_t>(elements);
    for_each_run(piece.area, target, element, [&](const CommonRun& run) {
      std::memcpy(out.data() + run.target, from.data() + run.source, run.bytes);
    });
  }
}

class Snapshots final : public FitSnapshots {
 public:
  Snapshots(Trainer& trainer, const std::vector<Callback*>& callbacks)
      : trainer_(trainer), parts_{.model = &trainer.model(), .callbacks = callbacks} {}

  void take() override;
  void finish_copies() override;
  Json kept() const override;
  bool choose(const std::vector<Json>& kept) override;
  void restore() override;
  void settle() noexcept override;

 private:
  Mesh mesh() const { return mesh_of(parts_); }
  void add(MemorySnapshot& snapshot, const std::string& name, const DTensor& value) const;
  void begin_copies(MemorySnapshot& snapshot) const;
  static void store_copies(MemorySnapshot& snapshot);
  bool is_whole(const MemorySnapshot& snapshot, const std::vector<Json>& kept) const;
  static std::vector<std::optional<Share>> shares_of(SnapshotId id, const std::vector<Json>& kept);

  Trainer& trainer_;
  CheckpointParts parts_;
  std::deque<MemorySnapshot> snapshots_;  ///< the newest last
  uint64_t number_ = 0;
  std::vector<std::optional<Share>> shares_;  ///< shares of the chosen snapshot, by rank
};

void Snapshots::take() {
  const NoRecording no_recording;
  const Mesh mesh = this->mesh();
  finish_copies();
  // Then all processes have the copies of the last snapshot, and need none before it.
  if (!mesh.is_local()) StepStatus().exchange(mesh);
  while (snapshots_.size() > 1) snapshots_.pop_front();
  raise_deferred_checks();
  const Communicator& communicator = communicator_of(mesh);
  MemorySnapshot snapshot{.id = {ElasticRun::current()->generation(), ++number_},
                          .rank = communicator.rank(),
                          .size = communicator.size()};
  CheckpointState state = current_state(parts_);
  for_each_tensor(parts_, state, [&](const std::string& name, const DTensor& value) {
    // All processes keep the sums of metrics, which are few: a loss of neighbours, who have copies
    // of what only one holds, must not be one of values that are replicated but for these.
    const bool is_metric = name.starts_with(metric_name(""));
    const Layout everywhere = Layout::replicated(mesh, value.rank());
    add(snapshot, name, is_metric ? relayout_value(value, everywhere) : value);
  });
  if (state.history) snapshot.losses = std::exchange(state.history->steps, {});
  snapshot.state = detail::to_json(state);
  begin_copies(snapshot);
  snapshots_.push_back(std::move(snapshot));
}

void Snapshots::add(MemorySnapshot& snapshot, const std::string& name, const DTensor& value) const {
  const size_t tensor = snapshot.tensors.size();
  snapshot.tensors.push_back({name, safetensors_dtype(value.dtype(), name), value.shape()});
  const std::shared_ptr<const StoredValue> stored = StoredValue::of(value);
  for (const Tile& tile : tiles_of(*value.sharding())) {
    const auto bytes =
        static_cast<uint64_t>(numel(tile_shape(tile.intervals))) * c10::elementSize(value.dtype());
    MemoryPiece piece{
        tensor, {tile_begin(tile.intervals), tile_end(tile.intervals)}, bytes, tile.ranks};
    if (tile.block >= 0) {
      const auto block = static_cast<size_t>(tile.block);
      // Slots on disk change in place, so that their snapshot is a copy.
      piece.data = stored ? stored->view(block).contiguous().clone()
                          : value.blocks()[block].cpu().contiguous();
    }
    snapshot.pieces.push_back(std::move(piece));
  }
}

void Snapshots::begin_copies(MemorySnapshot& snapshot) const {
  if (snapshot.size == 1) return;
  const int before = (snapshot.rank + snapshot.size - 1) % snapshot.size;
  const uint64_t own = copied_bytes(snapshot, snapshot.rank);
  const uint64_t theirs = copied_bytes(snapshot, before);
  uint64_t all = 0;
  for (int rank = 0; rank < snapshot.size; ++rank) all += copied_bytes(snapshot, rank);
  if (all == 0) {
    snapshot.copied = true;
    return;
  }
  std::vector<at::Tensor> to(static_cast<size_t>(snapshot.size)), from(to.size());
  if (own > 0) {
    snapshot.sent = byte_tensor(own);
    auto* at = static_cast<std::byte*>(snapshot.sent.mutable_data_ptr());
    for (const MemoryPiece& piece : snapshot.pieces) {
      if (!is_copied(piece, snapshot.size) || piece.ranks[0] != snapshot.rank) continue;
      const auto bytes = bytes_of(piece.data);
      at = std::copy(bytes.begin(), bytes.end(), at);
    }
    to[static_cast<size_t>(neighbour_of(snapshot.rank, snapshot.size))] = snapshot.sent;
  }
  if (theirs > 0) {
    from[static_cast<size_t>(before)] = snapshot.received = byte_tensor(theirs);
  }
  snapshot.work = exchange(mesh(), "snapshot", to, from);
  if (!snapshot.work) store_copies(snapshot);
}

/// Notes that the copies have arrived.
void Snapshots::store_copies(MemorySnapshot& snapshot) {
  const int before = (snapshot.rank + snapshot.size - 1) % snapshot.size;
  int64_t at = 0;
  for (MemoryPiece& piece : snapshot.pieces) {
    if (!is_copied(piece, snapshot.size) || piece.ranks[0] != before) continue;
    const auto bytes = static_cast<int64_t>(piece.bytes);
    piece.data = snapshot.received.narrow(0, at, bytes);
    at += bytes;
  }
  snapshot.work = nullptr;
  snapshot.sent = at::Tensor();
  snapshot.copied = true;
}

void Snapshots::finish_copies() {
  for (MemorySnapshot& snapshot : snapshots_) {
    if (!snapshot.work) continue;
    wait(snapshot.work);
    store_copies(snapshot);
  }
}

void Snapshots::settle() noexcept {
  for (MemorySnapshot& snapshot : snapshots_) {
    if (!snapshot.work) continue;
    try {
      if (snapshot.work->done()) {
        wait(snapshot.work);
        store_copies(snapshot);
      }
    } catch (...) {
      // They have not arrived.
    }
    snapshot.work = nullptr;
  }
}

Json Snapshots::kept() const {
  Json all = Json::array();
  for (const MemorySnapshot& snapshot : snapshots_) {
    if (snapshot.rank < 0) continue;
    all.push_back({snapshot.id.first, snapshot.id.second, snapshot.rank, snapshot.copied});
  }
  return all;
}

std::vector<std::optional<Share>> Snapshots::shares_of(SnapshotId id,
                                                       const std::vector<Json>& kept) {
  std::vector<std::optional<Share>> shares(kept.size());
  for (size_t r = 0; r < kept.size(); ++r) {
    for (const Json& each : kept[r]) {
      if (SnapshotId{each[0].get<uint64_t>(), each[1].get<uint64_t>()} != id) continue;
      shares[r] = Share{each[2].get<int>(), each[3].get<bool>()};
    }
  }
  return shares;
}

bool Snapshots::is_whole(const MemorySnapshot& snapshot, const std::vector<Json>& kept) const {
  const auto shares = shares_of(snapshot.id, kept);
  return std::all_of(snapshot.pieces.begin(), snapshot.pieces.end(), [&](const MemoryPiece& piece) {
    return std::any_of(shares.begin(), shares.end(), [&](const std::optional<Share>& share) {
      return share && has(*share, piece, snapshot.size);
    });
  });
}

bool Snapshots::choose(const std::vector<Json>& kept) {
  Communicator& communicator = communicator_of(mesh());
  Json own = nullptr;
  for (auto snapshot = snapshots_.rbegin(); snapshot != snapshots_.rend(); ++snapshot) {
    if (snapshot->rank < 0 || !is_whole(*snapshot, kept)) continue;
    own = {{"id", snapshot->id}};
    const auto shares = shares_of(snapshot->id, kept);
    const auto first = std::find_if(shares.begin(), shares.end(),
                                    [](const auto& share) { return share.has_value(); });
    // One process describes it for those that have no share of it.
    if (first - shares.begin() == communicator.rank()) own["snapshot"] = to_json(*snapshot);
    break;
  }
  std::optional<SnapshotId> newest;
  std::map<SnapshotId, Json> described;
  for (const std::string& text :
       communicator.gather("elastic: newest snapshot", to_json_text(own, -1))) {
    const Json choice = parse_json(text, memory_name);
    if (choice.is_null()) continue;
    const auto id = choice.at("id").get<SnapshotId>();
    newest = std::max(newest, std::optional(id));
    if (choice.contains("snapshot")) described[id] = choice.at("snapshot");
  }
  if (!newest) {
    snapshots_.clear();
    return false;
  }
  std::erase_if(snapshots_, [&](const MemorySnapshot& each) { return each.id != *newest; });
  if (snapshots_.empty()) snapshots_.push_back(snapshot_from(described.at(*newest), *newest));
  shares_ = shares_of(*newest, kept);
  number_ = 0;
  return true;
}

void Snapshots::restore() {
  const NoRecording no_recording;
  const c10::InferenceMode inference;
  MemorySource source(snapshots_.back(), shares_, mesh());
  restore_checkpoint(parts_, source, {});
  // What others hold is theirs to offer.
  std::erase_if(snapshots_, [](const MemorySnapshot& each) { return each.rank < 0; });
}

const bool made_in_memory = [] {
  fit_snapshots() = [](Trainer& trainer, const std::vector<Callback*>& callbacks) {
    return std::unique_ptr<FitSnapshots>(std::make_unique<Snapshots>(trainer, callbacks));
  };
  return true;
}();

}  // namespace
}  // namespace tessera::detail
