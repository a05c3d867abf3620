#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <tessera/datasets/pipeline/internal/pipeline_rows.hpp>
#include <tessera/datasets/pipeline/internal/pipeline_stages.hpp>
#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

/// Rows of a dataset; reads are serialized unless the dataset is concurrent().
class RowElements final : public PipelineElements {
 public:
  RowElements(std::shared_ptr<const Dataset> data, std::mutex& mutex)
      : data_(std::move(data)), mutex_(mutex) {}

  std::optional<int64_t> size() const override { return data_->size(); }
  std::vector<Examples> get(std::span<const int64_t> numbers) const override {
    const Examples batch = read(numbers);
    std::vector<Examples> rows;
    for (int64_t i = 0; i < std::ssize(numbers); ++i) rows.push_back(row_of(batch, i));
    return rows;
  }
  std::optional<int64_t> original(int64_t number) const override { return number; }

 private:
  Examples read(std::span<const int64_t> numbers) const {
    std::unique_lock lock(mutex_, std::defer_lock);
    if (!data_->concurrent()) lock.lock();
    return data_->get(numbers);
  }

  std::shared_ptr<const Dataset> data_;
  std::mutex& mutex_;
};

class RowStage final : public PipelineStage {
 public:
  explicit RowStage(std::shared_ptr<const Dataset> data)
      : PipelineStage("rows", {}), data_(std::move(data)) {}

  std::shared_ptr<const PipelineElements> open(const PassOptions&) const override {
    return std::make_shared<RowElements>(data_, mutex_);
  }
  std::optional<int64_t> count() const override { return data_->size(); }
  bool batched() const override { return false; }
  bool is_stream() const override { return false; }
  std::string data_name() const override { return data_->name(); }
  std::vector<Shape> input_shapes() const override { return data_->input_shapes(); }

 protected:
  std::string arguments() const override {
    std::string text = str(" of ", data_->name(), ": ", data_->size());
    for (const Shape& shape : data_->input_shapes()) text += " " + to_string(shape);
    return text;
  }

 private:
  std::shared_ptr<const Dataset> data_;
  mutable std::mutex mutex_;
};

/// Batches of a stream, read in order. Batches that were read but not requested yet are buffered,
/// since threads may request them out of order.
class StreamElements final : public PipelineElements {
 public:
  StreamElements(std::shared_ptr<const StreamDataset> data, PassOptions reading)
      : data_(std::move(data)), reading_(std::move(reading)) {}

  std::optional<int64_t> size() const override {
    return data_->endless() ? no_end : data_->steps();
  }
  std::vector<Examples> get(std::span<const int64_t> numbers) const override {
    const std::lock_guard lock(mutex_);
    std::vector<Examples> batches;
    for (const int64_t number : numbers) {
      std::optional<Examples> batch = read(number);
      if (!batch) break;
      batches.push_back(std::move(*batch));
    }
    return batches;
  }
  std::optional<int64_t> original(int64_t) const override { return std::nullopt; }

 private:
  std::optional<Examples> read(int64_t number) const {
    if (auto node = buffered_.extract(number)) return std::move(node.mapped());
    if (!next_batch_ || number < next_) {
      next_batch_ = data_->start_at(int64_t(reading_.pass), number, reading_.layouts);
      next_ = number;
      ended_ = !next_batch_;
    }
    while (!ended_) {
      std::optional<Examples> batch = next_batch_();
      ended_ = !batch;
      if (!batch || next_++ == number) return batch;
      buffered_.emplace(next_ - 1, std::move(*batch));
      buffered_.erase(buffered_.begin(), buffered_.lower_bound(next_ - reading_.ahead));
    }
    return std::nullopt;
  }

  std::shared_ptr<const StreamDataset> data_;
  PassOptions reading_;
  mutable std::mutex mutex_;
  mutable BatchFunction next_batch_;  ///< returns batch number next_ when called
  mutable int64_t next_ = 0;
  mutable bool ended_ = false;
  mutable std::map<int64_t, Examples> buffered_;
};

class StreamStage final : public PipelineStage {
 public:
  explicit StreamStage(std::shared_ptr<const StreamDataset> data)
      : PipelineStage("batches", {}), data_(std::move(data)) {}

  std::shared_ptr<const PipelineElements> open(const PassOptions& reading) const override {
    return std::make_shared<StreamElements>(data_, reading);
  }
  std::optional<int64_t> count() const override {
    return data_->endless() ? no_end : data_->steps();
  }
  bool batched() const override { return true; }
  bool is_stream() const override { return true; }
  std::string data_name() const override { return data_->name(); }
  std::vector<Shape> input_shapes() const override { return data_->input_shapes(); }

 private:
  std::shared_ptr<const StreamDataset> data_;
};

/// Renames the data and leaves elements unchanged.
class NamedStage final : public PipelineStage {
 public:
  NamedStage(PipelineStagePtr before, std::string name)
      : PipelineStage("named", {std::move(before)}), name_(std::move(name)) {}
  std::shared_ptr<const PipelineElements> open(const PassOptions& reading) const override {
    return before().open(reading);
  }
  std::string data_name() const override { return name_; }

 private:
  std::string name_;
};

}  // namespace

PipelineStagePtr data_stage(const DatasetHandle& data) {
  if (data.stream()) return std::make_shared<StreamStage>(data.stream());
  return std::make_shared<RowStage>(data.rows("DataPipeline"));
}

PipelineStagePtr named_stage(PipelineStagePtr before, std::string name) {
  return std::make_shared<NamedStage>(std::move(before), std::move(name));
}

}  // namespace tessera::detail
