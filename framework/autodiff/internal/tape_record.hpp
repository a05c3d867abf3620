#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tessera/framework/autodiff/internal/remat_region.hpp>
#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>

namespace tessera::detail {

/// The operations of a thread that a GradientTape has recorded.
class TapeRecord final : public OpListener {
 public:
  /// Variables, each with the number of its unexpected assignments.
  using Versions = std::vector<std::pair<std::shared_ptr<const VariableTag>, uint64_t>>;
  struct Entry {
    const OpInfo* info;
    std::shared_ptr<const void> op;
    std::vector<uint64_t> in_ids, out_ids;
    std::vector<DTensor> in, out;  ///< undefined where not saved or rematerialized
    std::vector<ShardingPtr> in_shardings, out_shardings;
    uint32_t tracked = 0;             ///< mask of inputs that may need a gradient
    uint32_t rematerialized = 0;      ///< mask of inputs that are rematerialized
    uint32_t rematerialized_out = 0;  ///< mask of outputs that are rematerialized
    uint32_t out_parameters = 0;      ///< mask of outputs whose gradient may stay pending
    Versions versions;
    std::string label;  ///< label for comm logs and communicators
  };
  /// The operation and inputs from which the backward pass rematerializes an operation's results.
  struct Recipe {
    const OpInfo* info = nullptr;
    std::shared_ptr<const void> op;
    std::vector<DTensor> in;  ///< undefined where it has a recipe itself
    std::vector<uint64_t> in_ids, out_ids;
    uint32_t pending = 0;  ///< mask of partial sums that are saved once they are resolved
    uint64_t region = 0;   ///< RematRegion::id
    Versions versions;
    std::string label;
  };
  using RecipePtr = std::shared_ptr<Recipe>;

  explicit TapeRecord(const TapeOptions& options) : options_(options) { start(); }
  ~TapeRecord() override { stop_recording(); }

  /// Begins or ends recording; both do nothing if there is nothing to change.
  void start();
  void stop_recording();
  bool is_recording() const { return recording_; }

  const TapeOptions& options() const { return options_; }
  std::vector<Entry>& entries() { return entries_; }
  /// Returns the recipes in the order of the forward pass.
  const std::vector<RecipePtr>& recipes() const { return recipes_; }
  /// Returns the recipe of a value; null if it has none.
  RecipePtr recipe_of(uint64_t id) const;
  /// Returns a value that had a recipe and was saved later; undefined if there is none.
  DTensor saved_later(uint64_t id) const;
  void release_saved_later(uint64_t id) { saved_later_.erase(id); }
  const std::vector<std::shared_ptr<const VariableTag>>& variables() const { return variables_; }

  void watch(const DTensor& tensor) { tracked_.insert(tensor.id()); }
  /// Implements GradientTape::took_result().
  bool took_result(std::string_view name, std::string_view maker) const;
  /// Drops the recorded operations.
  void clear();
  /// While planning: notes the values that the entries and recipes keep alive, each once.
  void note_saved();

 private:
  void ran(const OpInfo& info, const std::shared_ptr<const void>& op,
           const std::shared_ptr<OpPlan>& plan, std::span<const DTensor> in,
           std::span<const DTensor> out) override;
  /// Saves values with recipes that must not be computed again after this operation.
  void save_later(const OpInfo& info, bool rematerialized, std::span<const DTensor> in);
  RecipePtr make_recipe(const OpInfo& info, const std::shared_ptr<const void>& op,
                        const RematRegion* region, std::span<const DTensor> in,
                        std::span<const DTensor> out);
  /// While planning: remembers the value whose memory a reshaped or transposed one shares, and
  /// whether a Variable was gathered.
  void note_view(const OpInfo& info, std::span<const DTensor> in, std::span<const DTensor> out);

  TapeOptions options_;
  bool recording_ = false;
  std::unordered_set<uint64_t> tracked_;
  std::vector<Entry> entries_;
  std::vector<RecipePtr> recipes_;
  std::unordered_map<uint64_t, RecipePtr> recipe_of_;
  std::unordered_map<uint64_t, DTensor> saved_later_;
  std::vector<std::shared_ptr<const VariableTag>> variables_;
  /// While planning: the value whose memory a view shares.
  std::unordered_map<uint64_t, uint64_t> memory_of_;
  /// While planning: Variables' values whose memory views share, and values made by gathering a
  /// Variable.
  std::unordered_set<uint64_t> variable_memory_, gathered_;
};

}  // namespace tessera::detail
