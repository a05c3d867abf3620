#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/internal/layer_states.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/training/capture/captured_step.hpp>
#include <tessera/framework/training/options.hpp>
#include <tessera/framework/training/phase.hpp>
#include <tessera/framework/training/step_records.hpp>

namespace tessera::detail {

/// The mode in $TESSERA_RECORD_STEPS: "never", "always" (user-defined code, too), "check" or
/// "check:N" (every N-th recorded step is compared with the code); by default, as compile() says.
struct RecordMode {
  bool never = false;
  bool always = false;
  int64_t check_every = 0;  ///< 0: never
};

/// The captured steps of a model, of one kind: training, test or prediction. The first step of a
/// batch signature is eager, the second is captured, later ones are replayed. Signatures differ in
/// shapes, dtypes and layouts; of more than 16, those used last are kept. A change of what is
/// trainable or quantized, of adapters, the seed, the block policy or the number of threads starts
/// over.
class StepCapture {
 public:
  using Results = std::vector<DTensor>;
  /// `buffer` is the steps' memory; kinds that do not run at once share it. Captured steps are
  /// rewritten unless $TESSERA_STEP_PASSES is "never". Throws ConfigError for an unknown
  /// $TESSERA_RECORD_STEPS or $TESSERA_STEP_PASSES.
  explicit StepCapture(std::shared_ptr<Arena> buffer);
  /// Runs step number `step`: eagerly, capturing, or replaying. `custom_step`: `eager` is the
  /// train_step() of any class, not the stock one. A step runs eagerly inside a captured or
  /// replayed one, and while a tape, a tracer or an AbstractScope is active.
  Results run(Layer& model, const Batch& batch, const CompileOptions& options, int64_t step,
              bool custom_step, const std::function<Results()>& eager);
  /// Drops all captured steps, after a change that they cannot detect.
  void forget();
  /// Releases copies of weights, whose memory is about to change.
  void release_weights();
  const StepRecords& records() const { return records_; }

 private:
  /// Facts that must be equal for a captured step to be replayed.
  struct Signature {
    std::vector<ShardingPtr> tensors;
    std::vector<size_t> first;   ///< for each tensor, the index of the first with the same value
    std::vector<size_t> counts;  ///< numbers of tensors in x, y and sample_weight
    int64_t rows = 0, seed = 0, threads = 0;
    BlockPolicy policy = {};
    bool custom_step = false;
    bool operator==(const Signature&) const = default;
  };
  struct Entry {
    Signature signature;
    std::unique_ptr<CapturedStep> captured = {};
    std::string why = {};  ///< why it cannot be captured; empty if it can
    bool passes = false;   ///< whether it was rewritten
    int64_t replays = 0;
  };

  /// Whether another signature may have copies of weights of its own.
  bool has_room_for_passes() const;
  static Signature signature_of(const Batch& batch, bool custom_step);
  /// Returns the entry of the signature, which is now the one used last; null if there is none.
  Entry* find(const Signature& signature);
  std::shared_ptr<PackedKernels> kernels_for(const Entry& entry) const;
  bool same_layers(const Layer& model) const;
  bool same_states() const;
  Results run_eager(const std::function<Results()>& eager, const std::string& why);
  Results capture(Layer& model, const Batch& batch, int64_t step, Entry& entry, bool any_code,
                  const std::function<Results()>& eager);
  /// Runs the code, and throws StateError if it is not what was captured.
  Results check(Layer& model, const Batch& batch, int64_t step, const Entry& entry, bool any_code,
                const std::function<Results()>& eager);
  Results replay(const Batch& batch, int64_t step, Entry& entry,
                 const std::function<Results()>& eager);

  std::shared_ptr<Arena> buffer_;
  std::shared_ptr<PackedKernels> packed_;        ///< those of all rewritten steps
  std::vector<std::unique_ptr<Entry>> entries_;  ///< the one used last is the last
  /// A layer, and what a captured step relies on.
  struct LayerFacts {
    std::shared_ptr<Layer> layer;
    bool trainable = false, quantized = false;
    uint64_t last_weight = 0;  ///< its id: another one once the layer gets or loses an adapter
    explicit LayerFacts(std::shared_ptr<Layer> of)
        : layer(std::move(of)),
          trainable(layer->trainable()),
          quantized(layer->is_quantized()),
          last_weight(last_weight_of(*layer)) {}
    bool hold() const {
      return layer->trainable() == trainable && layer->is_quantized() == quantized &&
             last_weight_of(*layer) == last_weight;
    }
    static uint64_t last_weight_of(const Layer& layer) {
      return layer.own_weights().empty() ? 0 : layer.own_weights().back().id();
    }
  };
  static void add_layers(const Layer& layer, std::vector<LayerFacts>& all);

  std::vector<LayerFacts> layers_;  ///< all layers inside the model
  size_t top_layers_ = 0;
  /// All layers with states, and the states as of the latest capture.
  std::vector<HasStates*> layers_with_states_;
  std::vector<Variable> states_;
  bool busy_ = false, passes_ = false;
  RecordMode mode_;
  StepRecords records_;
};

/// The captured steps of a model, which share one memory buffer.
class StepCaptures {
 public:
  StepCapture& of(Phase phase) { return captures_[static_cast<size_t>(phase)]; }
  /// Releases the copies of weights that tests and predictions keep, before a step changes these.
  void release_weights();

 private:
  std::shared_ptr<Arena> buffer_ = make_arena();
  std::array<StepCapture, 3> captures_{StepCapture(buffer_), StepCapture(buffer_),
                                       StepCapture(buffer_)};
};

}  // namespace tessera::detail
