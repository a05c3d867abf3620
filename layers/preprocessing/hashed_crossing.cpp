#include <tessera/layers/preprocessing/hashed_crossing.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/layers/internal/layer_config.hpp>
#include <tessera/layers/internal/replayed_layer.hpp>
#include <tessera/layers/preprocessing/internal/category_output.hpp>
#include <tessera/layers/preprocessing/internal/hash_buckets.hpp>
#include <tessera/layers/preprocessing/internal/integer_dtype.hpp>
#include <tessera/layers/text/internal/farm_hash.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(HashedCrossingOptions& o, const Visit& visit) {
  visit("output_mode", o.output_mode);
  visit("sparse", o.sparse);
}

namespace {

class HashedCrossingLayer final : public ReplayedLayer {
 public:
  HashedCrossingLayer(int64_t num_bins, const HashedCrossingOptions& options);
  std::string class_name() const override { return "HashedCrossing"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override;

  at::Tensor bins(const std::vector<Table::Column>& columns) const;

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;
  at::ScalarType symbolic_dtype(const Shapes&) const override { return output_dtype(); }

 private:
  std::string where() const { return "HashedCrossing " + path(); }
  void check_num_inputs(size_t inputs) const;
  at::ScalarType output_dtype() const {
    return options_.output_mode == "int" ? integer_dtype(options_.dtype) : dtype_policy().compute;
  }

  int64_t num_bins_;
  HashedCrossingOptions options_;
};

const RegisteredLayer registered_hashed_crossing("HashedCrossing", [](JsonObject& config) {
  const auto options = integer_layer_options_from<HashedCrossingOptions>(config);
  return HashedCrossing(take_extent(config, "num_bins"), options);
});

HashedCrossingLayer::HashedCrossingLayer(int64_t num_bins, const HashedCrossingOptions& options)
    : ReplayedLayer(integer_layer_options(options)), num_bins_(num_bins), options_(options) {
  check_output_mode(where(), options.output_mode, {"int", "one_hot"}, options.sparse);
  if (num_bins >= 1) return;
  throw ConfigError(where(), "num_bins is at least 1", str(num_bins), "give the number of bins");
}

Json HashedCrossingLayer::config() const {
  Json json = layer_config(*this, {{"num_bins", num_bins_}}, options_);
  put_integer_dtype(json, options_);
  // Keras writes no such key.
  json.erase("trainable");
  return json;
}

void HashedCrossingLayer::check_num_inputs(size_t inputs) const {
  if (inputs >= 2) return;
  throw ShapeError(where(), "it is called on at least two inputs", str(inputs),
                   "give all features that are crossed, in a list");
}

Shape HashedCrossingLayer::output_shape(const Shapes& inputs) const {
  check_num_inputs(inputs.size());
  for (const Shape& input : inputs) {
    const bool column = input.size() == 1 || (input.size() == 2 && input[1] == 1);
    if (column && input == inputs[0]) continue;
    throw ShapeError(where(), "all inputs are (batch,), or all (batch, 1)",
                     to_string(inputs[0]) + " and " + to_string(input),
                     "give each feature as one column");
  }
  return encoded_shape(where(), inputs[0], options_.output_mode, num_bins_);
}

DTensor HashedCrossingLayer::call(const Inputs& inputs, const CallContext&) {
  std::vector<DTensor> numbers;
  for (const DTensor& input : inputs) {
    if (at::isIntegralType(input.dtype(), /*includeBool=*/false)) {
      numbers.push_back(truncated_to_int64(input));
      continue;
    }
    throw ConfigError(where(), "inputs are integers", dtype_name(input.dtype()),
                      "convert them to categories first, for example with Discretization");
  }
  return encoded(cross_buckets(numbers, num_bins_), options_.output_mode, num_bins_,
                 output_dtype());
}

/// Returns the value of each row that enters the hash: texts' fingerprints, or the integers.
std::vector<uint64_t> crossed_values(const std::string& where, const Table::Column& column) {
  std::vector<uint64_t> values;
  if (column.is_text()) {
    for (const std::string& text : column.texts()) values.push_back(fingerprint64(text));
    return values;
  }
  const at::Tensor& numbers = column.numbers();
  if (!at::isIntegralType(numbers.scalar_type(), /*includeBool=*/false) ||
      numbers.numel() != numbers.size(0)) {
    throw ConfigError(where, "columns are texts, or one integer in each row",
                      str(numbers.toString(), " ", to_string(numbers.sizes().vec())),
                      "convert them to categories first, for example with Discretization");
  }
  const at::Tensor flat = numbers.to(at::kLong).contiguous();
  const int64_t* const data = flat.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < flat.numel(); ++i) values.push_back(static_cast<uint64_t>(data[i]));
  return values;
}

at::Tensor HashedCrossingLayer::bins(const std::vector<Table::Column>& columns) const {
  check_num_inputs(columns.size());
  std::vector<std::vector<uint64_t>> values;
  for (const Table::Column& column : columns) {
    values.push_back(crossed_values(where(), column));
    if (values.back().size() == values[0].size()) continue;
    throw ShapeError(where(), "columns have equally many rows",
                     str(values[0].size(), " and ", values.back().size()),
                     "give columns of one table");
  }
  at::Tensor all = at::empty({columns[0].rows()}, at::kLong);
  int64_t* const out = all.mutable_data_ptr<int64_t>();
  std::vector<uint64_t> row(columns.size());
  for (size_t i = 0; i < values[0].size(); ++i) {
    for (size_t c = 0; c < row.size(); ++c) row[c] = values[c][i];
    out[i] = cross_bucket(row, num_bins_);
  }
  return encoded(all, options_.output_mode, num_bins_, output_dtype());
}

}  // namespace

HashedCrossing::HashedCrossing(int64_t num_bins, const HashedCrossingOptions& options)
    : LayerHandle(std::make_shared<HashedCrossingLayer>(num_bins, options)) {}

at::Tensor HashedCrossing::operator()(const std::vector<Table::Column>& columns) const {
  return static_cast<HashedCrossingLayer&>(*layer()).bins(columns);
}

}  // namespace tessera
