#include <mutex>

#include <tessera/tessera.hpp>

#include "tests/datasets/pipeline/numbers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/thread_communicator.hpp"

namespace pipeline_reads_test {

using namespace tessera;
using namespace tessera::detail;
using test::NumberRows;

namespace {

using Reads = std::map<int64_t, int64_t>;
using MakePipeline = std::function<DataPipeline(const DataPipeline& rows)>;

/// The rows that the processes of a run read, and the batches that they assembled.
struct Run {
  std::vector<Reads> first, second;   ///< reads of each process in two epochs
  std::vector<test::Labels> batches;  ///< batches of the epochs, assembled from all processes
};

/// Reads a data-parallel pipeline on `processes` processes.
Run run(int processes, const MakePipeline& make) {
  Run all;
  all.first.resize(size_t(processes));
  all.second.resize(size_t(processes));
  all.batches.resize(2);
  std::mutex mutex;
  test::run_ranks(processes, [&](int rank, const std::shared_ptr<Communicator>& communicator) {
    const Mesh mesh = test::rank_mesh({{"batch", 4}}, communicator);
    const LayoutMap layouts(mesh);
    const auto data = std::make_shared<NumberRows>(30);
    const DataPipeline batches = make(DataPipeline(DatasetHandle(data)));
    for (const int64_t epoch : {0, 1}) {
      BatchLoader loader(batches, {.epoch = epoch, .layouts = layouts});
      for (size_t step = 0; const std::optional<Examples> batch = loader.next(); ++step) {
        const std::vector<int64_t> labels = test::labels_of(*batch);
        const std::lock_guard lock(mutex);
        auto& rows = all.batches[size_t(epoch)];
        if (rows.size() <= step) rows.resize(step + 1);
        rows[step].resize(size_t(batch->rows()), -1);
        const int64_t begin = batch->part ? batch->part->rows.lo : 0;
        std::copy(labels.begin(), labels.end(), rows[step].begin() + begin);
      }
      const std::lock_guard lock(mutex);
      (epoch == 0 ? all.first : all.second)[size_t(rank)] = data->take_reads();
    }
  });
  return all;
}

/// Returns how often each row was read by all processes together.
Reads together(const std::vector<Reads>& processes) {
  Reads all;
  for (const Reads& reads : processes) {
    for (const auto& [row, times] : reads) all[row] += times;
  }
  return all;
}

bool each_once(const Reads& reads, int64_t rows) {
  for (const auto& [row, times] : reads) {
    if (times != 1) return false;
  }
  return std::ssize(reads) == rows;
}

}  // namespace

TEST_CASE("processes read each row once per epoch and together the rows of one process") {
  const std::vector<MakePipeline> makers = {
      [](const DataPipeline& rows) { return rows.batch(5); },
      [](const DataPipeline& rows) {
        return rows.shuffle().map(test::with_noise, {.threads = 2}).batch(10).prefetch(2);
      },
      [](const DataPipeline& rows) {
        return rows.map(test::as_text).shuffle(7).padded_batch(6, {.x_shapes = {{9}}});
      }};
  for (size_t i = 0; i < makers.size(); ++i) {
    const Run one = run(1, makers[i]);
    for (const int processes : {1, 2, 4}) {
      CAPTURE(i, processes);
      const Run several = run(processes, makers[i]);
      CHECK(each_once(together(several.first), 30));
      CHECK(each_once(together(several.second), 30));
      CHECK(several.batches == one.batches);
    }
  }
}

TEST_CASE("every process reads rows needed before an epoch only once") {
  const std::vector<MakePipeline> makers = {
      [](const DataPipeline& rows) { return rows.shuffle().filter(test::is_odd).batch(5); },
      [](const DataPipeline& rows) {
        return rows.map(test::as_text)
            .shuffle()
            .bucket_by_length(test::text_length, {.boundaries = {4}, .batch_sizes = {5, 5}});
      }};
  for (size_t i = 0; i < makers.size(); ++i) {
    const int64_t rows = i == 0 ? 15 : 30;
    const Run one = run(1, makers[i]);
    for (const int processes : {1, 2, 4}) {
      CAPTURE(i, processes);
      const Run several = run(processes, makers[i]);
      CHECK(several.batches == one.batches);
      int64_t reads = 0;
      for (const auto& [row, times] : together(several.first)) reads += times;
      // A process without rows of a batch reads one row for its shape.
      CHECK(reads >= processes * 30 + rows);
      CHECK(reads <= processes * 30 + rows + 3);
      reads = 0;
      for (const auto& [row, times] : together(several.second)) reads += times;
      CHECK(reads >= rows);
      CHECK(reads <= rows + 3);
    }
  }
}

TEST_CASE("every process augments its images as in the full batch") {
  // Each row is a picture of twelve pixels; its label records the brightest one.
  const auto picture = [](Examples row) {
    const int64_t label = row.y[0].item<int64_t>();
    row.x[0] = (at::arange(12).reshape({3, 4, 1}) + label) % 12;
    return row;
  };
  const auto append_brightest = [](Examples batch, const at::Tensor& images) {
    const at::Tensor brightest = images.flatten(1).argmax(1);
    batch.y[0] = batch.y[0] * 100 + brightest;
    return batch;
  };
  const std::vector<MakePipeline> makers = {
      [&](const DataPipeline& rows) {
        const Pipeline turn(
            {RandomFlip(), RandomTranslation(0.4, 0.4, {.interpolation = "nearest"})});
        return rows.map(picture).batch(10).map([=](Examples batch, Seed seed) {
          return append_brightest(batch, turn(batch.x[0], seed));
        });
      },
      // A single image is augmented independently of its batch.
      [&](const DataPipeline& rows) {
        const RandomFlip flip;
        return rows.map(picture).batch(4).map([=](Examples batch, Seed seed) {
          std::vector<at::Tensor> images;
          for (int64_t i = 0; i < batch.x[0].size(0); ++i) {
            images.push_back(flip(batch.x[0][i], seed));
          }
          return images.empty() ? batch : append_brightest(batch, at::stack(images));
        });
      }};
  for (size_t i = 0; i < makers.size(); ++i) {
    const Run one = run(1, makers[i]);
    CHECK(one.batches[0] != one.batches[1]);
    for (const int processes : {2, 4}) {
      CAPTURE(i, processes);
      const Run several = run(processes, makers[i]);
      CHECK(several.batches == one.batches);
      if (i == 0) CHECK(each_once(together(several.first), 30));
    }
  }
}

TEST_CASE("every process reads the full batch if it is mixed or padded to its longest row") {
  const std::vector<MakePipeline> makers = {
      [](const DataPipeline& rows) {
        return rows.batch(10).map(
            [](Examples batch, Seed) {
              batch.y[0] = batch.y[0].flip(0);
              return batch;
            },
            {.whole_batch = true});
      },
      [](const DataPipeline& rows) { return rows.map(test::as_text).padded_batch(6); }};
  for (size_t i = 0; i < makers.size(); ++i) {
    const Run one = run(1, makers[i]);
    const Run several = run(2, makers[i]);
    CAPTURE(i);
    CHECK(several.batches == one.batches);
    for (const Reads& reads : several.first) CHECK(each_once(reads, 30));
  }
  CHECK(run(1, makers[0]).batches[0][0] == std::vector<int64_t>{9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
}

TEST_CASE("a seeded map gives the same rows on every mesh, before and after batch") {
  const DataPipeline rows = NumberRows(12);
  const DataPipeline data = rows.map(test::with_noise).batch(12).map(test::with_noise);
  const at::Tensor expected_rows = BatchLoader(data, {}).next()->x[0];
  test::run_ranks(4, [&](int, const std::shared_ptr<Communicator>& communicator) {
    const LayoutMap layouts(test::rank_mesh({{"batch", 4}}, communicator));
    BatchLoader loader(data, {.layouts = layouts});
    const std::optional<Examples> local = loader.next();
    const Interval mine = local->part.value().rows;
    test::expect(mine.size() == 3, "three rows");
    test::expect(at::equal(local->x[0], expected_rows.slice(0, mine.lo, mine.hi)), "the same rows");
  });
  CHECK(expected_rows.size(0) == 12);
}

TEST_CASE("fit on a pipeline trains as on its data on every mesh") {
  const TensorDataset data = test::small_data(30);
  const DataPipeline batches =
      DataPipeline(data).shuffle({.seed = Seed{global_seed(), 0}}).batch(8);
  const auto trained = [](const Mesh& mesh, const DatasetHandle& dataset) {
    const Sequential model = test::compiled_small(mesh);
    const History history = model.fit(
        dataset,
        {.batch_size = 8, .epochs = 2, .verbose = 0, .class_weight = {{0, 2.0}, {3, 0.5}}});
    model.evaluate(dataset, {.batch_size = 8, .verbose = 0});
    return history.steps;
  };
  const std::vector<double> expected = trained(create_mesh({{"batch", 4}}), data);
  CHECK(expected.size() == 8);
  CHECK(trained(create_mesh({{"batch", 4}}), batches) == expected);
  for (const int processes : {2, 4}) {
    std::mutex mutex;
    std::vector<std::vector<double>> losses;
    test::run_ranks(processes, [&](int, const std::shared_ptr<Communicator>& communicator) {
      const auto own = trained(test::rank_mesh({{"batch", 4}}, communicator), batches);
      const std::lock_guard lock(mutex);
      losses.push_back(own);
    });
    for (const auto& own : losses) {
      REQUIRE(own.size() == expected.size());
      for (size_t i = 0; i < own.size(); ++i) CHECK(own[i] == Approx(expected[i]).epsilon(1e-9));
    }
  }
  const Sequential model = test::compiled_small(create_mesh({{"batch", 2}}));
  // Matrix products with another number of rows may round differently.
  CHECK(test::difference(model.predict(DataPipeline(data).batch(7)), model.predict(data), 1e-12,
                         1e-13) == "");
}

}  // namespace pipeline_reads_test
