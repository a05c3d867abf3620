#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <tessera/framework/base/random.hpp>
#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/mesh/layout_map.hpp>

namespace tessera::strategy {

/// Which part of the input a process makes (tf.distribute.InputContext).
struct InputContext {
  int num_input_pipelines = 1;  ///< processes that read
  int input_pipeline_id = 0;    ///< which of them this is
  int64_t num_replicas_in_sync = 1;
  /// Throws ConfigError unless the replicas divide it.
  int64_t get_per_replica_batch_size(int64_t global_batch_size) const;
};

/// Makes the data of one process.
using DatasetFunction = std::function<DatasetHandle(const InputContext&)>;

/// How a strategy deals a dataset out.
struct DistributeOptions {
  /// Rows of a global batch, or in distribute_datasets_from_function of a replica's; streams have
  /// batches of their own.
  int64_t batch_size = 32;
  bool shuffle = false;  ///< whether each epoch has its rows in an order of its own
  Seed seed = {};        ///< what the epochs' orders follow from, with their numbers
};

/// Data as batches that are cut over the replicas of a strategy (tf.distribute.DistributedDataset):
///
///     for (const Batch& batch : batches) mirrored.run(train_step, batch);
///
/// Each range-for and each iterate() begins with the first batch again; with shuffle, of the next
/// epoch. Copies share the epochs that were begun.
class DistributedDataset {
 public:
  /// Batches one after the other; nothing after the last. Collective over processes that make their
  /// own data.
  class Batches {
   public:
    virtual ~Batches() = default;
    virtual std::optional<Batch> next() = 0;
  };

  class Iterator {
   public:
    const Batch& operator*() const { return *batch_; }
    const Batch* operator->() const { return &*batch_; }
    Iterator& operator++() {
      batch_ = batches_->next();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return !batch_; }

   private:
    friend class DistributedDataset;
    explicit Iterator(std::shared_ptr<Batches> batches)
        : batches_(std::move(batches)), batch_(batches_->next()) {}
    std::shared_ptr<Batches> batches_;
    std::optional<Batch> batch_;
  };

  /// `start` gives the batches of an epoch, counted from 0.
  using Start = std::function<std::shared_ptr<Batches>(int64_t epoch)>;
  explicit DistributedDataset(Start start);

  Iterator begin() const { return Iterator(iterate()); }
  std::default_sentinel_t end() const { return {}; }
  std::shared_ptr<Batches> iterate() const { return start_((*epochs_)++); }

 private:
  Start start_;
  std::shared_ptr<int64_t> epochs_;
};

}  // namespace tessera::strategy
