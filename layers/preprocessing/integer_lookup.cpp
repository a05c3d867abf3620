#include <tessera/layers/preprocessing/integer_lookup.hpp>

#include <algorithm>
#include <charconv>
#include <numeric>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/preprocessing/internal/category_output.hpp>
#include <tessera/layers/preprocessing/internal/column_layer.hpp>
#include <tessera/layers/preprocessing/internal/hash_buckets.hpp>
#include <tessera/layers/preprocessing/internal/number_counts.hpp>
#include <tessera/layers/text/internal/index_lookup.hpp>
#include <tessera/layers/text/internal/lookup_config.hpp>
#include <tessera/layers/text/internal/vocabulary_file.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(IntegerLookupOptions& o, const Visit& visit) {
  visit("max_tokens", o.max_tokens);
  visit("num_oov_indices", o.num_oov_indices);
  visit("mask_token", o.mask_token);
  visit("oov_token", o.oov_token);
  visit("vocabulary", o.vocabulary);
  visit("idf_weights", o.idf_weights);
  visit("invert", o.invert);
  visit("output_mode", o.output_mode);
  visit("pad_to_max_tokens", o.pad_to_max_tokens);
  visit("sparse", o.sparse);
  visit("oov_method", o.oov_method);
  visit("salt", o.salt);
}

namespace {

constexpr int64_t adapted_rows = 1024;

at::Tensor tensor_of(const std::vector<int64_t>& numbers) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(numbers.size())}, at::kLong);
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

DTensor constant_of(const at::Tensor& tensor, const Mesh& mesh) {
  return pack(tensor, Layout::replicated(mesh, tensor.dim()));
}

/// Keeps the vocabulary as an IndexLookup of the numbers' digits, and looks up in a copy of its
/// table in tensors, so that inputs stay on their devices.
class IntegerLookupLayer final
    : public LayerOf<IntegerLookupLayer, IntegerLookupOptions, ColumnLayer> {
 public:
  static constexpr const char* keras_name = "IntegerLookup";
  explicit IntegerLookupLayer(const IntegerLookupOptions& options);
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override;
  bool learns() const override { return !lookup_.from_options(); }
  bool ready() const override { return lookup_.has_vocabulary(); }
  void learn(const at::Tensor& column) override;
  Json learned() const override { return {{"vocabulary", vocabulary(false)}}; }
  int64_t categories() const override { return vocabulary_size(); }
  LayerAssets assets() const override;
  void load_assets(const LayerAssets& assets) override;

  void reset_state();
  void update_state(const at::Tensor& data);
  void finalize_state();
  std::vector<int64_t> vocabulary(bool include_special_tokens) const;
  int64_t vocabulary_size() const { return lookup_.vocabulary_size(); }
  void set_vocabulary(const std::vector<std::string>& tokens, const std::vector<double>& weights);
  /// Sets the number of indices that load_assets() must find.
  void expect_size(std::optional<int64_t> size) { expected_size_ = size; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;
  at::ScalarType symbolic_dtype(const Shapes&) const override {
    return arguments_.output_mode == "int" ? at::kLong : dtype_policy().compute;
  }

 private:
  void make_table();
  /// Returns the columns of an output other than "int"; -1 if not known yet.
  int64_t depth() const {
    return lookup_.depth() < 0 ? expected_size_.value_or(-1) : lookup_.depth();
  }
  DTensor indices(const DTensor& x) const;
  DTensor numbers(const DTensor& indices) const;
  /// Returns the index of each number as an unknown one.
  DTensor unknown_indices(const DTensor& x) const;

  IndexLookup lookup_;  ///< holds the vocabulary, which arguments_ then lacks
  std::optional<int64_t> expected_size_;
  NumberCounts counts_;         ///< during an adapt()
  at::Tensor known_, indices_;  ///< the numbers, ascending, and their indices
  at::Tensor by_index_;         ///< the number of each index, then oov_token
};

std::vector<std::string> digits_of(const std::vector<int64_t>& numbers) {
  std::vector<std::string> digits;
  for (const int64_t number : numbers) digits.push_back(std::to_string(number));
  return digits;
}

void check_oov(const IntegerLookupOptions& options) {
  const std::string where = "IntegerLookup " + options.name;
  check_output_mode(where, options.output_mode, {"int", "one_hot", "multi_hot", "count", "tf_idf"},
                    options.sparse);
  const std::vector<std::string> known = {"floormod", "farmhash"};
  if (std::find(known.begin(), known.end(), options.oov_method) == known.end()) {
    throw ConfigError(where, "oov_method is one of " + quoted_list(known),
                      in_quotes(options.oov_method), suggestion(options.oov_method, known));
  }
  if (options.salt.size() > 2 || (!options.salt.empty() && options.oov_method != "farmhash")) {
    throw ConfigError(where, "salt is one number or two, for oov_method \"farmhash\"",
                      str(options.salt.size(), " for ", in_quotes(options.oov_method)),
                      "leave it out, or give oov_method");
  }
}

IndexLookup lookup_of(const IntegerLookupOptions& options) {
  check_oov(options);
  std::optional<std::string> mask;
  if (options.mask_token) mask = std::to_string(*options.mask_token);
  try {
    return IndexLookup({.max_tokens = options.max_tokens,
                        .num_oov_indices = options.num_oov_indices,
                        .mask_token = mask,
                        .oov_token = std::to_string(options.oov_token),
                        .vocabulary = digits_of(options.vocabulary),
                        .idf_weights = options.idf_weights,
                        .invert = options.invert,
                        .output_mode = options.output_mode,
                        .pad_to_max_tokens = options.pad_to_max_tokens});
  } catch (const Error&) {
    rethrow_at("IntegerLookup " + options.name);
  }
}

const RegisteredLayer registered_integer_lookup("IntegerLookup", [](JsonObject& config) {
  const auto size = config.take_optional<int64_t>("vocabulary_size");
  const auto dtype = config.take_or<std::string>("vocabulary_dtype", "int64");
  if (dtype != "int64") {
    throw ConfigError(config.path().key("vocabulary_dtype").text(), "\"int64\"", in_quotes(dtype),
                      "leave it out");
  }
  check_vocabulary(config);
  const IntegerLookup layer(layer_options_from<IntegerLookupOptions>(config));
  static_cast<IntegerLookupLayer&>(*layer.layer()).expect_size(size);
  return layer;
});

IntegerLookupLayer::IntegerLookupLayer(const IntegerLookupOptions& options)
    : LayerOf(options), lookup_(lookup_of(options)) {
  if (arguments_.salt.size() == 1) arguments_.salt.push_back(arguments_.salt[0]);
  arguments_.vocabulary.clear();
  arguments_.idf_weights.clear();
  if (lookup_.has_vocabulary()) make_table();
}

Json IntegerLookupLayer::config() const {
  Json json = LayerOf::config();
  json["vocabulary_dtype"] = "int64";
  json["vocabulary_size"] = ready() ? Json(vocabulary_size()) : Json(nullptr);
  if (!lookup_.from_options()) return json;
  json["idf_weights"] = option_json(lookup_.options().idf_weights);
  json["vocabulary"] = Json::array();
  for (const std::string& digits : lookup_.options().vocabulary) {
    json["vocabulary"].push_back(std::stoll(digits));
  }
  return json;
}

Shape IntegerLookupLayer::output_shape(const Shapes& inputs) const {
  const Shape& x = single_input(inputs);
  const int64_t depth = this->depth();
  if (arguments_.output_mode != "int" && depth < 0) {
    throw StateError(where(), "the vocabulary is known", "none",
                     "call adapt() or set_vocabulary(), or give `vocabulary`");
  }
  const std::string& mode = arguments_.output_mode;
  return encoded_shape(where(), x, mode == "tf_idf" ? "count" : mode, depth);
}

std::vector<int64_t> IntegerLookupLayer::vocabulary(bool include_special_tokens) const {
  std::vector<int64_t> numbers;
  for (const std::string& digits : lookup_.vocabulary(include_special_tokens)) {
    numbers.push_back(std::stoll(digits));
  }
  return numbers;
}

void IntegerLookupLayer::make_table() {
  const std::vector<int64_t> all = vocabulary(true), tokens = vocabulary(false);
  const auto first = static_cast<int64_t>(all.size() - tokens.size());
  const auto [known, order] = tensor_of(tokens).sort();
  known_ = known;
  indices_ = order + first;
  by_index_ = at::cat({tensor_of(all), tensor_of({arguments_.oov_token})});
}

DTensor IntegerLookupLayer::unknown_indices(const DTensor& x) const {
  const int64_t count = arguments_.num_oov_indices;
  const bool masks = arguments_.mask_token && arguments_.output_mode == "int";
  const DTensor first = scalar(masks ? 1 : 0, x.mesh(), at::kLong);
  if (count == 1) return first;
  const DTensor buckets = scalar(static_cast<double>(count), x.mesh(), at::kLong);
  const DTensor bucket = arguments_.oov_method == "farmhash"
                             ? hash_buckets(x, count, arguments_.salt)
                             : ops::remainder(x, buckets);
  return ops::add(bucket, first);
}

DTensor IntegerLookupLayer::indices(const DTensor& x) const {
  const Mesh& mesh = x.mesh();
  const DTensor known = constant_of(known_, mesh), numbers = constant_of(indices_, mesh);
  const auto last = static_cast<double>(known_.numel() - 1);
  DTensor position = ops::minimum(ops::searchsorted(known, x), scalar(last, mesh, at::kLong));
  const DTensor is_known = ops::equal(ops::gather(known, position), x);
  DTensor is_mask;
  if (arguments_.mask_token) {
    is_mask =
        ops::equal(x, constant_of(at::scalar_tensor(*arguments_.mask_token, at::kLong), mesh));
  }
  if (arguments_.num_oov_indices == 0) {
    // Unknown numbers have no index: they get a position that gather() rejects.
    const DTensor allowed = is_mask.defined() ? ops::logical_or(is_known, is_mask) : is_known;
    position = ops::where(allowed, position, scalar(last + 1, mesh, at::kLong));
  }
  DTensor index = ops::gather(numbers, position);
  if (arguments_.num_oov_indices > 0) index = ops::where(is_known, index, unknown_indices(x));
  if (!is_mask.defined()) return index;
  // In modes other than "int" the mask is ignored.
  const DTensor masked = scalar(arguments_.output_mode == "int" ? 0 : -1, mesh, at::kLong);
  return ops::where(is_mask, masked, index);
}

DTensor IntegerLookupLayer::numbers(const DTensor& indices) const {
  const auto size = static_cast<double>(vocabulary_size());
  const DTensor outside = scalar(size, indices.mesh(), at::kLong);
  const DTensor below = ops::less(indices, scalar(0, indices.mesh(), at::kLong));
  const DTensor within = ops::where(below, outside, ops::minimum(indices, outside));
  return ops::gather(constant_of(by_index_, indices.mesh()), within);
}

DTensor IntegerLookupLayer::call(const Inputs& inputs, const CallContext&) {
  if (!ready()) {
    throw StateError(where(), "the vocabulary is known", "none",
                     "call adapt() or set_vocabulary(), or give `vocabulary`");
  }
  const DTensor x = truncated_to_int64(inputs[0]);
  if (arguments_.invert) return numbers(x);
  const DTensor index = indices(x);
  const std::string& mode = arguments_.output_mode;
  if (mode == "int") return index;
  const at::ScalarType dtype = dtype_policy().compute;
  const int64_t depth = lookup_.depth();
  if (mode != "tf_idf") return encoded(index, mode, depth, dtype);
  at::Tensor weights = at::zeros({depth}, at::kFloat);
  const std::vector<float>& known = lookup_.idf_weights();
  std::copy(known.begin(), known.end(), weights.mutable_data_ptr<float>());
  return encoded(index, "count", depth, dtype) * constant_of(weights.to(dtype), x.mesh());
}

void IntegerLookupLayer::reset_state() {
  if (lookup_.from_options()) {
    throw StateError(where(), "adapt() is for a layer without a vocabulary",
                     "options that give one", "leave it out, or call set_vocabulary()");
  }
  counts_ = {};
}

void IntegerLookupLayer::update_state(const at::Tensor& data) { counts_.add(data); }

void IntegerLookupLayer::finalize_state() {
  std::vector<int64_t> special = {arguments_.oov_token};
  if (arguments_.mask_token) special.push_back(*arguments_.mask_token);
  int64_t max_numbers = -1;
  if (arguments_.max_tokens) {
    const bool masks = arguments_.mask_token && arguments_.output_mode == "int";
    max_numbers = *arguments_.max_tokens - arguments_.num_oov_indices - (masks ? 1 : 0);
  }
  const std::vector<NumberCount> learned = counts_.top_by_count(max_numbers, special);
  if (learned.empty()) {
    throw ConfigError(where(), "adapt() takes at least one number that is not special", "none",
                      "give it other data");
  }
  std::vector<std::string> tokens;
  std::vector<double> weights;
  for (const NumberCount& known : learned) {
    tokens.push_back(std::to_string(known.number));
    if (arguments_.output_mode != "tf_idf") continue;
    weights.push_back(idf_weight(counts_.documents(), known.documents));
  }
  reset_state();
  set_vocabulary(tokens, weights);
}

void IntegerLookupLayer::learn(const at::Tensor& column) {
  reset_state();
  update_state(column);
  finalize_state();
}

void IntegerLookupLayer::set_vocabulary(const std::vector<std::string>& tokens,
                                        const std::vector<double>& weights) {
  try {
    lookup_.set_vocabulary(tokens, weights);
  } catch (const Error&) {
    rethrow_at(where());
  }
  make_table();
}

LayerAssets IntegerLookupLayer::assets() const {
  if (!lookup_.has_vocabulary() || lookup_.from_options()) return {};
  return vocabulary_files({lookup_.vocabulary(), lookup_.idf_weights()});
}

void IntegerLookupLayer::load_assets(const LayerAssets& assets) {
  if (assets.empty() || lookup_.from_options()) return Layer::load_assets(assets);
  try {
    VocabularyFiles read = read_vocabulary_files(assets);
    // Empty lines at the end are ignored, as in Keras.
    while (!read.tokens.empty() && read.tokens.back().empty()) read.tokens.pop_back();
    for (const std::string& token : read.tokens) {
      int64_t number = 0;
      const char* const end = token.data() + token.size();
      const auto [stop, error] = std::from_chars(token.data(), end, number);
      if (error == std::errc() && stop == end && token == std::to_string(number)) continue;
      throw ConfigError("vocabulary.txt", "one integer on each line", in_quotes(token),
                        "write the file again");
    }
    const auto size = static_cast<int64_t>(read.tokens.size());
    if (expected_size_.value_or(size) != size) {
      throw ConfigError("vocabulary.txt", str(*expected_size_, " lines, as the configuration says"),
                        str(size), "save the model again");
    }
    set_vocabulary(read.tokens, {read.idf_weights.begin(), read.idf_weights.end()});
  } catch (const Error&) {
    rethrow_at(where());
  }
}

IntegerLookupLayer& layer_of(const IntegerLookup& handle) {
  return static_cast<IntegerLookupLayer&>(*handle.layer());
}

}  // namespace

IntegerLookup::IntegerLookup(const IntegerLookupOptions& options)
    : LayerHandle(std::make_shared<IntegerLookupLayer>(options)) {}

void IntegerLookup::adapt(const at::Tensor& data) const { layer_of(*this).learn(data); }

void IntegerLookup::adapt(const DatasetHandle& data) const {
  reset_state();
  for (int64_t first = 0; first < data->size(); first += adapted_rows) {
    std::vector<int64_t> rows(static_cast<size_t>(std::min(adapted_rows, data->size() - first)));
    std::iota(rows.begin(), rows.end(), first);
    update_state(data->get(rows).x.at(0));
  }
  finalize_state();
}

void IntegerLookup::reset_state() const { layer_of(*this).reset_state(); }
void IntegerLookup::update_state(const at::Tensor& data) const {
  layer_of(*this).update_state(data);
}
void IntegerLookup::finalize_state() const { layer_of(*this).finalize_state(); }

std::vector<int64_t> IntegerLookup::get_vocabulary(bool include_special_tokens) const {
  return layer_of(*this).vocabulary(include_special_tokens);
}

int64_t IntegerLookup::vocabulary_size() const { return layer_of(*this).vocabulary_size(); }

void IntegerLookup::set_vocabulary(const std::vector<int64_t>& tokens,
                                   const std::vector<double>& idf_weights) const {
  layer_of(*this).set_vocabulary(digits_of(tokens), idf_weights);
}

}  // namespace tessera
