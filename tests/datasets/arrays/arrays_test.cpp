// Tests pad_sequences, to_categorical, split_dataset and timeseries_dataset_from_array.
#include <tessera/datasets/arrays/arrays.hpp>

#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/data/batch_loader.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"

namespace arrays_test {

using namespace tessera;
using namespace tessera::detail;
using test::error_line;

namespace {

using Sequences = std::vector<std::vector<int64_t>>;

const Json& goldens(const std::string& part) {
  static const Json all = read_json_file(test::golden_path("keras_arrays.json").string());
  return all.at(part);
}

at::Tensor tensor_of(const Json& json) {
  const std::map<std::string, at::ScalarType> dtypes = {
      {"int32", at::kInt}, {"int64", at::kLong}, {"float32", at::kFloat}, {"float64", at::kDouble}};
  return at::tensor(json.at("values").get<std::vector<double>>(), at::kDouble)
      .reshape(json.at("shape").get<Shape>())
      .to(dtypes.at(json.at("dtype").get<std::string>()));
}

bool same(const at::Tensor& actual, const Json& golden) {
  const at::Tensor expected = tensor_of(golden);
  return actual.scalar_type() == expected.scalar_type() && at::equal(actual, expected);
}

template <class T>
std::optional<T> option(const Json& options, const std::string& key) {
  if (!options.contains(key) || options.at(key).is_null()) return std::nullopt;
  return options.at(key).get<T>();
}

std::optional<SplitSize> size_of(const Json& options, const std::string& key) {
  if (!options.contains(key)) return std::nullopt;
  const Json& size = options.at(key);
  return size.is_number_integer() ? SplitSize(size.get<int64_t>()) : SplitSize(size.get<double>());
}

/// Returns the first input's numbers of all rows of a dataset.
std::vector<int64_t> numbers_of(const DatasetHandle& data) {
  std::vector<int64_t> rows(static_cast<size_t>(data->size()));
  std::iota(rows.begin(), rows.end(), 0);
  const at::Tensor x = data->get(rows).x[0].contiguous();
  return {x.const_data_ptr<int64_t>(), x.const_data_ptr<int64_t>() + x.numel()};
}

}  // namespace

TEST_CASE("sequences are padded as by Keras") {
  const auto sequences = goldens("sequences").get<Sequences>();
  for (const Json& golden : goldens("paddings")) {
    const Json& options = golden.at("options");
    CAPTURE(options.dump());
    PadSequencesOptions own{.maxlen = option<int64_t>(options, "maxlen")};
    own.padding = option<std::string>(options, "padding").value_or(own.padding);
    own.truncating = option<std::string>(options, "truncating").value_or(own.truncating);
    own.value = option<double>(options, "value").value_or(own.value);
    if (options.contains("dtype")) own.dtype = at::kFloat;
    CHECK(same(pad_sequences(sequences, own), golden.at("result")));
  }
  CHECK(pad_sequences({{1}, {2, 3}}).sizes() == at::IntArrayRef({2, 2}));
  const std::vector<at::Tensor> equal_lengths = {at::ones({1, 3}), at::ones({2, 3})};
  const at::Tensor rows = pad_sequences(equal_lengths, {.dtype = at::kFloat});
  CHECK(at::equal(rows.sum(2), at::tensor({0, 3, 3, 3}, at::kFloat).reshape({2, 2})));
  CHECK(error_line([] { pad_sequences({{1}}, {.padding = "left"}); }) ==
        "[pad_sequences] padding is \"pre\" or \"post\". Received: \"left\". "
        "To fix: pass one of them.");
  CHECK(error_line([] { pad_sequences({{1}}, {.maxlen = 0}); }) ==
        "[pad_sequences] maxlen is at least 1. Received: 0. To fix: pass maxlen.");
  CHECK(error_line([] { pad_sequences(Sequences()); }) ==
        "[pad_sequences] without maxlen there are sequences. Received: none. "
        "To fix: pass maxlen.");
  const std::vector<at::Tensor> others = {at::ones({1, 3}), at::ones({2, 4})};
  CHECK(error_line([&] { pad_sequences(others); }) ==
        "[pad_sequences, sequence 1] sequences differ in axis 0 only. "
        "Received: shapes (1, 3) and (2, 4). To fix: make their other axes equal.");
}

TEST_CASE("classes become one-hot rows as in Keras") {
  for (const Json& golden : goldens("classes")) {
    CAPTURE(golden.dump());
    CHECK(same(to_categorical(tensor_of(golden.at("x")), option<int64_t>(golden, "num_classes")),
               golden.at("result")));
  }
  CHECK(error_line([] {
          to_categorical(at::tensor({0, 3}), 3);
        }) ==
        "[to_categorical] classes lie in [0, 3). Received: 3. To fix: pass a larger num_classes.");
  CHECK(error_line([] {
          to_categorical(at::tensor({0, -1}));
        }) ==
        "[to_categorical] classes lie in [0, 1). Received: -1. "
        "To fix: pass a larger num_classes.");
}

TEST_CASE("a dataset is split as by Keras") {
  const DatasetHandle data(at::arange(10));
  for (const Json& golden : goldens("splits")) {
    const Json& options = golden.at("options");
    CAPTURE(options.dump());
    const auto [left, right] = split_dataset(data, {.left_size = size_of(options, "left_size"),
                                                    .right_size = size_of(options, "right_size")});
    CHECK(numbers_of(left) == golden.at("sides").at(0).get<std::vector<int64_t>>());
    CHECK(numbers_of(right) == golden.at("sides").at(1).get<std::vector<int64_t>>());
  }
  const auto [left, right] = split_dataset(data, {.left_size = 7, .shuffle = true, .seed = Seed{}});
  std::vector<int64_t> all = numbers_of(left);
  CHECK(all.size() == 7);
  CHECK_FALSE(std::is_sorted(all.begin(), all.end()));
  for (const int64_t number : numbers_of(right)) all.push_back(number);
  std::sort(all.begin(), all.end());
  CHECK(all == numbers_of(data));
  const std::string wrong =
      "[split_dataset] left_size is a number of rows below 10, or a part in "
      "(0, 1). Received: ";
  CHECK(error_line([&] { split_dataset(data, {.left_size = 10}); }) ==
        wrong + "10. To fix: leave rows on both sides.");
  CHECK(error_line([&] { split_dataset(data, {.left_size = 1.0}); }) ==
        wrong + "1. To fix: leave rows on both sides.");
  CHECK(error_line([&] { split_dataset(data, {}); }) ==
        "[split_dataset] a size is given. Received: none. To fix: pass left_size or right_size.");
  CHECK(error_line([&] { split_dataset(data, {.left_size = 6, .right_size = 0.5}); }) ==
        "[split_dataset] both sides have some of the 10 rows. Received: 6 and 5. "
        "To fix: pass smaller sizes.");
}

TEST_CASE("windows over series equal Keras'") {
  const at::Tensor data = at::arange(40, at::kFloat).reshape({20, 2});
  for (const Json& golden : goldens("windows")) {
    const Json& options = golden.at("options");
    CAPTURE(options.dump());
    const at::Tensor targets = options.contains("targets") ? at::arange(100, 115) : at::Tensor();
    const DataPipeline windows = timeseries_dataset_from_array(
        data, targets, options.at("sequence_length").get<int64_t>(),
        {.sequence_stride = option<int64_t>(options, "sequence_stride").value_or(1),
         .sampling_rate = option<int64_t>(options, "sampling_rate").value_or(1),
         .batch_size = option<int64_t>(options, "batch_size").value_or(128),
         .start_index = option<int64_t>(options, "start_index"),
         .end_index = option<int64_t>(options, "end_index")});
    const BatchFunction next = windows.start(0);
    for (const Json& batch : golden.at("batches")) {
      const std::optional<Examples> own = next();
      REQUIRE(own);
      CHECK(same(own->x[0], batch.at(0)));
      CHECK(own->y.size() == batch.size() - 1);
      if (batch.size() == 2) CHECK(same(own->y[0], batch.at(1)));
    }
    CHECK_FALSE(next());
  }
  const DataPipeline mixed =
      timeseries_dataset_from_array(data, {}, 3, {.batch_size = 18, .shuffle = true});
  const at::Tensor first = mixed.start(0)()->x[0];
  CHECK_FALSE(at::equal(first, mixed.start(1)()->x[0]));
  CHECK(at::equal(std::get<0>(first.select(1, 0).select(1, 0).sort()),
                  data.select(1, 0).slice(0, 0, 18)));
  const auto line = [&](int64_t length, const TimeseriesDatasetOptions& own,
                        const at::Tensor& targets = {}) {
    return error_line([&] { timeseries_dataset_from_array(data, targets, length, own); });
  };
  const std::string where = "[timeseries_dataset_from_array] ";
  CHECK(line(3, {.start_index = 20}) == where +
                                            "start_index lies in [0, 20). Received: 20. "
                                            "To fix: pass another, or longer series.");
  CHECK(line(3, {.end_index = 20}) == where +
                                          "end_index lies in [1, 20). Received: 20. "
                                          "To fix: pass another, or longer series.");
  CHECK(line(21, {}) == where +
                            "a window fits into the series. Received: 21 steps, 1 apart, of 20. "
                            "To fix: pass a shorter sequence_length.");
  CHECK(line(3, {.start_index = 5}, at::arange(16)) ==
        where +
            "targets have a step for each window, up to 18. Received: 16 steps. "
            "To fix: pass as many targets as data.");
}

}  // namespace arrays_test
