#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The positions of the steps of one call of a layer in the rows of a KeyValueCache.
struct CachedSteps {
  DTensor first = {};  ///< int64 (batch): how many steps each row had before; the host reads it
  DTensor positions =
      {};  ///< int64 (batch, T): the position of each step, with the batch's sharding

  /// Calls `check` with the largest number of steps that a row has with these: now, and in each
  /// replay of a recorded call. The layer that calls it outlives the recording.
  void check_end(const std::function<void(int64_t end)>& check) const;
};

/// The attention keys and values of past time steps, for autoregressive decoding. The model is
/// called on the new steps only; attention layers with use_causal_mask store theirs.
///
///     const auto cache = std::make_shared<KeyValueCache>(256);
///     DTensor logits = model(prompt, {.cache = cache});  // of all steps so far
///     logits = model(next, {.cache = cache});            // of one more, (batch, 1, …)
///
/// Results equal those of a call on all steps, provided that every other layer treats steps
/// independently (Dense, LayerNormalization, Embedding) or uses next_steps(), and that each call of
/// the model calls each layer once, on the same batch rows. generate() is built on it.
///
/// Rows may have different numbers of steps: pad prompts on the right, then call set_lengths(). The
/// steps of the padding are overwritten before any step could attend to them.
///
/// Memory for `capacity` steps is allocated once, in the layout of the layers' keys and values with
/// the steps unsharded, and written in place (unless a tape still holds it). No shape depends on
/// the number of steps, so calls on one more step share their plans.
class KeyValueCache {
 public:
  /// `capacity`: maximum number of steps of a row. Throws ConfigError if it is less than 1.
  explicit KeyValueCache(int64_t capacity);

  int64_t capacity() const { return capacity_; }
  /// Sets how many steps each row has. Later calls continue there and overwrite what followed. To
  /// be called between calls of the model. Throws ConfigError for a number outside [0, capacity].
  void set_lengths(const std::vector<int64_t>& lengths);
  /// Replaces the contents of each row r by those of row `rows[r]`: the beams of a search that go
  /// on. Throws ConfigError for an invalid row. Communication: rows are gathered if the batch is
  /// sharded.
  void select_rows(const std::vector<int64_t>& rows);

  /// Whether nothing was written yet.
  bool empty() const { return values_.empty(); }
  /// Makes the positions of the next call of a model, on x (batch, T, …), and returns them and all
  /// memory: the inputs of a recorded call, which writes the memory in place. To be called between
  /// set_lengths() and the call; the caller drops the values after the call. Throws like
  /// next_steps().
  std::vector<DTensor> call_inputs(const DTensor& x);

  /// Returns where the steps of a call of `layer` are, and counts them: once for each call. x is
  /// (batch, T, …). For layers that depend on positions, such as position embeddings. Throws
  /// ConfigError for more steps than the capacity, and for another number of rows than before.
  CachedSteps next_steps(const Layer& layer, const DTensor& x);
  /// Writes the value of these steps, (batch, T, …), and returns those of all steps, (batch,
  /// capacity, …), of which those behind the row's last step are arbitrary. Collective if `value`
  /// is a partial sum or has sharded steps. Throws ShapeError for other extents than before.
  DTensor written(const Layer& layer, const std::string& name, const DTensor& value,
                  const CachedSteps& steps);
  /// Whether something was written under this name.
  bool has(const Layer& layer, const std::string& name) const {
    return values_.contains({layer.serial(), name});
  }

 private:
  /// Returns the first step of each row, the layer having seen `seen` since set_lengths().
  std::vector<int64_t> first_steps(const DTensor& x, int64_t seen) const;
  CachedSteps make_steps(const std::vector<int64_t>& first, const DTensor& x) const;

  int64_t capacity_;
  std::vector<int64_t> lengths_;  ///< each row's, without `steps_`; empty: all 0
  /// The steps of each layer since set_lengths(), by the layer's number.
  std::map<int64_t, int64_t> steps_;
  /// The last positions, for these first steps and number of steps: all layers of a call ask for
  /// the same.
  struct Made {
    std::vector<int64_t> first;
    int64_t count = 0;
    CachedSteps steps = {};
  } made_;
  bool lent_ = false;  ///< whether the caller of call_inputs() holds the memory
  /// By the layer's number, which is the same in each process, so that all move rows in one order.
  std::map<std::pair<int64_t, std::string>, DTensor> values_;
};

}  // namespace tessera
