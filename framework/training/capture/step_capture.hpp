#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/training/capture/captured_step.hpp>
#include <tessera/framework/training/options.hpp>
#include <tessera/framework/training/step_records.hpp>

namespace tessera::detail {

/// The recorded steps of a model, of one kind: of training, of tests or of predictions. The first
/// step on a form of batch is eager, the second recorded, later ones replayed. Forms differ in
/// shapes, dtypes and layouts; a change of what is trained, of the seed, the block policy or the
/// number of threads begins anew.
class StepCapture {
 public:
  using Results = std::vector<DTensor>;
  /// `buffer` is the steps' memory, which kinds share that do not run at once.
  explicit StepCapture(std::shared_ptr<Arena> buffer) : buffer_(std::move(buffer)) {}
  /// Does a step, by `eager` or as it was recorded; `whole`: of a train_step() of any class, not
  /// the stock one. Within a step that is recorded or replayed, and where a tape, a tracer or an
  /// AbstractScope looks on, by `eager`.
  Results run(Layer& model, const Batch& batch, const CompileOptions& options, bool whole,
              const std::function<Results()>& eager);
  /// Forgets everything: for a change that the steps themselves cannot see.
  void forget();
  const StepRecords& records() const { return records_; }

 private:
  /// What has to be the same for a step to be.
  struct Form {
    std::vector<ShardingPtr> tensors;
    std::vector<size_t> first;   ///< for each tensor, which is the first that is the same value
    std::vector<size_t> counts;  ///< numbers of tensors in x, y and sample_weight
    int64_t rows = 0, seed = 0, threads = 0;
    BlockPolicy policy = {};
    bool whole = false;
    bool operator==(const Form&) const = default;
  };
  struct Entry {
    Form form;
    std::unique_ptr<CapturedStep> program = {};
    std::string why = {};  ///< it cannot be recorded
  };

  static Form form_of(const Batch& batch, bool whole);
  Entry* find(const Form& form);
  bool same_layers(const Layer& model) const;
  Results eagerly(const std::function<Results()>& eager, const std::string& why);
  Results record(Layer& model, const Batch& batch, int64_t step, Entry& entry, bool any_code,
                 const std::function<Results()>& eager);
  Results replay(const Batch& batch, int64_t step, Entry& entry,
                 const std::function<Results()>& eager);

  std::shared_ptr<Arena> buffer_;
  std::vector<std::unique_ptr<Entry>> entries_;
  /// All layers inside, and whether they are trained.
  std::vector<std::pair<std::shared_ptr<Layer>, bool>> layers_;
  size_t top_layers_ = 0;
  bool busy_ = false;
  StepRecords records_;
};

}  // namespace tessera::detail
