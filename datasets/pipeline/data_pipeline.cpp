#include <tessera/datasets/pipeline/data_pipeline.hpp>

#include <algorithm>
#include <memory>
#include <utility>

#include <tessera/datasets/pipeline/internal/pipeline_stages.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/data/internal/prefetcher.hpp>

namespace tessera {

using namespace detail;

namespace {

void check_function(const std::string& stage, bool is_set) {
  if (is_set) return;
  throw ConfigError("DataPipeline, " + stage, "there is a function", "an empty one", "pass one");
}

}  // namespace

DataPipeline::DataPipeline(const DatasetHandle& data) : last_(data_stage(data)) {}

DataPipeline::DataPipeline(const at::Tensor& x, const at::Tensor& y)
    : DataPipeline(DatasetHandle(x, y)) {}

DataPipeline::DataPipeline(const Examples& all) : DataPipeline(DatasetHandle(all)) {}

DataPipeline DataPipeline::map(Function function, MapOptions options) const {
  check_function("map", bool(function));
  const auto seedless = [function = std::move(function)](Examples element, Seed) {
    return function(std::move(element));
  };
  return DataPipeline(map_stage(last_, seedless, false, options));
}

DataPipeline DataPipeline::map(SeededFunction function, MapOptions options) const {
  check_function("map", bool(function));
  return DataPipeline(map_stage(last_, std::move(function), true, options));
}

DataPipeline DataPipeline::filter(Predicate predicate, FilterOptions options) const {
  check_function("filter", bool(predicate));
  return DataPipeline(filter_stage(last_, std::move(predicate), options));
}

DataPipeline DataPipeline::cache() const { return DataPipeline(memory_cache_stage(last_)); }

DataPipeline DataPipeline::cache(const std::string& file) const {
  return DataPipeline(file_cache_stage(last_, file));
}

DataPipeline DataPipeline::shuffle(ShuffleOptions options) const {
  return DataPipeline(shuffle_stage(last_, std::nullopt, options));
}

DataPipeline DataPipeline::shuffle(int64_t buffer, ShuffleOptions options) const {
  return DataPipeline(shuffle_stage(last_, buffer, options));
}

DataPipeline DataPipeline::batch(int64_t size, BatchOptions options) const {
  return DataPipeline(batch_stage(last_, size, options.drop_remainder));
}

DataPipeline DataPipeline::padded_batch(int64_t size, PaddedBatchOptions options) const {
  return DataPipeline(padded_batch_stage(last_, size, options));
}

DataPipeline DataPipeline::bucket_by_length(Length length, BucketByLengthOptions options) const {
  check_function("bucket_by_length", bool(length));
  return DataPipeline(bucket_stage(last_, std::move(length), options));
}

DataPipeline DataPipeline::repeat(std::optional<int64_t> count) const {
  return DataPipeline(repeat_stage(last_, count));
}

DataPipeline DataPipeline::prefetch(int64_t count) const {
  return DataPipeline(prefetch_stage(last_, count));
}

DataPipeline DataPipeline::take(int64_t count) const {
  return DataPipeline(slice_stage(last_, "take", 0, count));
}

DataPipeline DataPipeline::skip(int64_t count) const {
  return DataPipeline(slice_stage(last_, "skip", count, no_end));
}

DataPipeline DataPipeline::zip(const DataPipeline& other) const {
  return DataPipeline(zip_stage(last_, other.last_));
}

DataPipeline DataPipeline::concatenate(const DataPipeline& other) const {
  return DataPipeline(concatenate_stage(last_, other.last_));
}

DataPipeline DataPipeline::named(const std::string& name) const {
  return DataPipeline(named_stage(last_, name));
}

namespace {

/// Returns an element of a pass; nothing after the last.
std::optional<Examples> make_element(const PipelineElements& elements, int64_t number) {
  const std::optional<int64_t> size = elements.size();
  if (size && number >= *size) return std::nullopt;
  const ProfileSpan span(SpanKind::data, "make element");
  const int64_t numbers[] = {number};
  std::vector<Examples> made = elements.get(numbers);
  return made.empty() ? std::nullopt : std::optional(std::move(made[0]));
}

BatchFunction open_elements(const PipelineStagePtr& last, int64_t epoch, int64_t first,
                            const LayoutMap& layouts) {
  // A single background thread helps only if it prefetches.
  const int64_t threads = last->threads() > 1 || last->ahead() > 0 ? last->threads() : 0;
  const int64_t ahead = std::max(last->ahead(), threads);
  const auto elements = last->open({static_cast<uint64_t>(epoch), layouts, ahead + 1});
  const auto make = [elements](int64_t number) { return make_element(*elements, number); };
  // Elements refer to their stages, so `last` must live as long.
  if (threads == 0) {
    return [last, make, number = first]() mutable {
      std::optional<Examples> element = make(number);
      number += element.has_value();
      return element;
    };
  }
  const auto begin = [make] {
    use_one_aten_thread();
    return make;
  };
  const auto made = std::make_shared<Prefetcher>(begin, first, threads, ahead);
  return [last, made] { return made->next(); };
}

}  // namespace

BatchFunction DataPipeline::start(int64_t epoch) const {
  return open_elements(last_, epoch, 0, {});
}

BatchFunction DataPipeline::start_at(int64_t epoch, int64_t first_step,
                                     const LayoutMap& layouts) const {
  if (last_->batched()) return open_elements(last_, epoch, first_step, layouts);
  throw ConfigError(name(), "elements are batches", "rows", "end the pipeline with batch(32)");
}

std::optional<int64_t> DataPipeline::steps() const {
  const std::optional<int64_t> count = last_->count();
  return count == no_end ? std::nullopt : count;
}

bool DataPipeline::endless() const { return last_->count() == no_end; }

std::string DataPipeline::name() const { return last_->data_name(); }

std::vector<Shape> DataPipeline::input_shapes() const { return last_->input_shapes(); }

}  // namespace tessera
