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

/// What became of one scheme.
struct Phase {
  std::string scheme;
  std::string mesh;
  History history;
};

/// Trains scheme after scheme over one folder of checkpoints, each from the weights that the one
/// before left there, as the DTensor tutorial does.
class TrainingRun {
 public:
  TrainingRun(const TrainFlags& flags, const app::CommonOptions& common, const Corpus& corpus,
              std::vector<Scheme> schemes);
  /// Trains what is left to train. Throws FileError, StateError.
  void train();
  const std::vector<Phase>& phases() const { return phases_; }
  /// The model of the last scheme. Throws nothing after train().
  const ModelHandle& model() const { return *model_; }
  /// Steps made in all schemes.
  int64_t steps() const;

 private:
  /// Where the run that wrote the newest checkpoint stands. Collective.
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
  std::string folder_;  ///< of the checkpoints; empty: none
  std::vector<Phase> phases_;
  std::optional<ModelHandle> model_;
  std::string mesh_;
  size_t first_phase_ = 0;
  int64_t first_step_ = 0;  ///< of the present phase, counted over all runs in the folder
  bool resumes_ = false;    ///< whether the next phase is one that was interrupted
};

}  // namespace tessera::imdb
