#pragma once

#include <memory>
#include <optional>
#include <string>

#include <tessera/datasets/pipeline/data_pipeline.hpp>
#include <tessera/datasets/pipeline/internal/pipeline_stage.hpp>

namespace tessera::detail {

/// Reads the rows of a dataset, or the batches of a stream.
PipelineStagePtr data_stage(const DatasetHandle& data);
/// Renames the data; elements stay the same.
PipelineStagePtr named_stage(PipelineStagePtr before, std::string name);

/// Applies a function. `seeded`: whether it uses its seed.
PipelineStagePtr map_stage(PipelineStagePtr before, DataPipeline::SeededFunction function,
                           bool seeded, const MapOptions& options);
PipelineStagePtr filter_stage(PipelineStagePtr before, DataPipeline::Predicate predicate,
                              const FilterOptions& options);
PipelineStagePtr memory_cache_stage(PipelineStagePtr before);
PipelineStagePtr file_cache_stage(PipelineStagePtr before, const std::string& file);
/// Shuffles all elements, or draws from a buffer of the next `buffer` ones.
PipelineStagePtr shuffle_stage(PipelineStagePtr before, std::optional<int64_t> buffer,
                               const ShuffleOptions& options);
PipelineStagePtr batch_stage(PipelineStagePtr before, int64_t size, bool drop_remainder);
PipelineStagePtr padded_batch_stage(PipelineStagePtr before, int64_t size,
                                    const PaddedBatchOptions& options);
PipelineStagePtr bucket_stage(PipelineStagePtr before, DataPipeline::Length length,
                              const BucketByLengthOptions& options);
PipelineStagePtr repeat_stage(PipelineStagePtr before, std::optional<int64_t> count);
PipelineStagePtr prefetch_stage(PipelineStagePtr before, int64_t count);
/// Keeps elements [first, first + count).
PipelineStagePtr slice_stage(PipelineStagePtr before, std::string kind, int64_t first,
                             int64_t count);
PipelineStagePtr zip_stage(PipelineStagePtr before, PipelineStagePtr other);
PipelineStagePtr concatenate_stage(PipelineStagePtr before, PipelineStagePtr other);

}  // namespace tessera::detail
