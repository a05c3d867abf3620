#pragma once

#include <optional>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/model/model.hpp>
#include <tessera/framework/training/history.hpp>

#include "apps/common/temporary_folder.hpp"
#include "apps/imdb/corpus.hpp"

namespace tessera::imdb {

using namespace detail;

/// The result of training with one scheme.
struct Phase {
  std::string scheme;
  std::string mesh;
  History history;
};

/// Trains with one scheme after the other over one checkpoint folder, as the DTensor tutorial does:
/// each starts from the weights that the previous one saved.
class TrainingRun {
 public:
  TrainingRun(const TrainFlags& flags, const app::CommonOptions& common, const Corpus& corpus,
              std::vector<Scheme> schemes);
  /// Trains the remaining schemes. Throws FileError, StateError.
  void train();
  const std::vector<Phase>& phases() const { return phases_; }
  /// Returns the model of the last scheme. Requires train().
  const ModelHandle& model() const { return *model_; }
  /// Returns the number of steps of all schemes.
  int64_t steps() const;

 private:
  /// Reads from the newest checkpoint where to start. Collective.
  void find_start(const Mesh& mesh);
  void train_phase(size_t number);
  void make_model(const Scheme& scheme);
  void show_model() const;
  Json finished() const;

  const TrainFlags& flags_;
  const app::CommonOptions& common_;
  const Corpus& corpus_;
  std::vector<Scheme> schemes_;
  std::optional<app::TemporaryDirectory> temporary_;
  std::string folder_;  ///< checkpoint folder; empty: none
  std::vector<Phase> phases_;
  std::optional<ModelHandle> model_;
  std::string mesh_;
  size_t first_phase_ = 0;
  int64_t first_step_ = 0;  ///< first step of this phase, counted over all runs in the folder
  bool resumes_ = false;    ///< whether the next phase resumes an interrupted one
};

}  // namespace tessera::imdb
