#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

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
    std::vector<DTensor> in, out;  ///< undefined where not saved
    std::vector<ShardingPtr> in_shardings, out_shardings;
    uint32_t tracked = 0;         ///< mask of inputs that may need a gradient
    uint32_t rematerialized = 0;  ///< mask of inputs that are rematerialized
    uint32_t out_parameters = 0;  ///< mask of outputs whose gradient may stay pending
    Versions versions;
    std::string label;  ///< label for comm logs and communicators
  };
  /// The operation and inputs from which the backward pass rematerializes a value.
  struct Recipe {
    const OpInfo* info = nullptr;
    std::shared_ptr<const void> op;
    std::vector<DTensor> in;
    Versions versions;
    std::string label;
  };

  explicit TapeRecord(const TapeOptions& options) : options_(options) { start(); }
  ~TapeRecord() override { stop_recording(); }

  /// Begins or ends recording; both do nothing if there is nothing to change.
  void start();
  void stop_recording();
  bool is_recording() const { return recording_; }

  const TapeOptions& options() const { return options_; }
  std::vector<Entry>& entries() { return entries_; }
  std::unordered_map<uint64_t, Recipe>& recipes() { return recipes_; }
  const std::vector<std::shared_ptr<const VariableTag>>& variables() const { return variables_; }

  void watch(const DTensor& tensor) { tracked_.insert(tensor.id()); }
  /// Implements GradientTape::took_result().
  bool took_result(std::string_view name, std::string_view maker) const;
  /// Drops the recorded operations.
  void clear();

 private:
  void ran(const OpInfo& info, const std::shared_ptr<const void>& op,
           const std::shared_ptr<OpPlan>& plan, std::span<const DTensor> in,
           std::span<const DTensor> out) override;
  void note_saved(const Entry& entry, std::span<const DTensor> in, std::span<const DTensor> out);

  TapeOptions options_;
  bool recording_ = false;
  std::unordered_set<uint64_t> tracked_;
  std::vector<Entry> entries_;
  std::unordered_map<uint64_t, Recipe> recipes_;
  std::vector<std::shared_ptr<const VariableTag>> variables_;
  /// While planning: values already noted, and the value whose memory a view shares.
  std::unordered_set<uint64_t> noted_;
  std::unordered_map<uint64_t, uint64_t> memory_of_;
};

}  // namespace tessera::detail
