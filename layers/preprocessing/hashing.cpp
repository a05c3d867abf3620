#include <tessera/layers/preprocessing/hashing.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/layer_config.hpp>
#include <tessera/layers/preprocessing/internal/category_output.hpp>
#include <tessera/layers/preprocessing/internal/column_layer.hpp>
#include <tessera/layers/preprocessing/internal/hash_buckets.hpp>
#include <tessera/layers/preprocessing/internal/integer_dtype.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(HashingOptions& o, const Visit& visit) {
  visit("salt", o.salt);
  visit("output_mode", o.output_mode);
  visit("sparse", o.sparse);
}

namespace {

class HashingLayer final : public ColumnLayer {
 public:
  HashingLayer(int64_t num_bins, const HashingOptions& options);
  std::string class_name() const override { return "Hashing"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override {
    return encoded_shape(where(), single_input(inputs), options_.output_mode, num_bins_);
  }
  bool can_be_replayed() const override { return true; }

  int64_t categories() const override { return num_bins_; }
  at::Tensor text_categories(const std::vector<std::string>& texts) const override;

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;
  at::ScalarType symbolic_dtype(const Shapes&) const override { return output_dtype(); }

 private:
  std::string where() const { return "Hashing " + path(); }
  void check_options() const;
  bool has_mask_bin() const { return options_.mask_value.index() != 0 && num_bins_ > 1; }
  at::ScalarType output_dtype() const {
    return options_.output_mode == "int" ? integer_dtype(options_.dtype) : dtype_policy().compute;
  }

  int64_t num_bins_;
  HashingOptions options_;
};

const RegisteredLayer registered_hashing("Hashing", [](JsonObject& config) {
  auto options = integer_layer_options_from<HashingOptions>(config);
  if (const auto mask = config.take_optional<Json>("mask_value")) {
    const JsonPath path = config.path().key("mask_value");
    if (mask->is_string()) {
      options.mask_value = mask->get<std::string>();
    } else {
      options.mask_value = json_as<int64_t>(*mask, path);
    }
  }
  return Hashing(take_extent(config, "num_bins"), options);
});

HashingLayer::HashingLayer(int64_t num_bins, const HashingOptions& options)
    : ColumnLayer(integer_layer_options(options)), num_bins_(num_bins), options_(options) {
  check_options();
  if (options_.salt.size() == 1) options_.salt.push_back(options_.salt[0]);
}

void HashingLayer::check_options() const {
  check_output_mode(where(), options_.output_mode, {"int", "one_hot", "multi_hot", "count"},
                    options_.sparse);
  if (num_bins_ < 1) {
    throw ConfigError(where(), "num_bins is at least 1", str(num_bins_), "give the number of bins");
  }
  if (options_.salt.size() > 2) {
    throw ConfigError(where(), "salt is one number or two", str(options_.salt.size()),
                      "give two numbers");
  }
}

Json HashingLayer::config() const {
  Json json = layer_config(*this, {{"num_bins", num_bins_}}, options_);
  json["mask_value"] = nullptr;
  if (const auto* number = std::get_if<int64_t>(&options_.mask_value)) json["mask_value"] = *number;
  if (const auto* text = std::get_if<std::string>(&options_.mask_value)) json["mask_value"] = *text;
  put_integer_dtype(json, options_);
  return json;
}

DTensor HashingLayer::call(const Inputs& inputs, const CallContext&) {
  const DTensor x = truncated_to_int64(inputs[0]);
  DTensor bins = hash_buckets(x, has_mask_bin() ? num_bins_ - 1 : num_bins_, options_.salt);
  if (has_mask_bin()) {
    const auto* mask = std::get_if<int64_t>(&options_.mask_value);
    if (!mask) {
      throw ConfigError(where(), "mask_value is a number where the input is numbers", "a text",
                        "give a number, or call it on texts");
    }
    const at::Tensor mask_tensor = at::scalar_tensor(*mask, at::kLong);
    const DTensor value = pack(mask_tensor, Layout::replicated(x.mesh(), 0));
    const DTensor zero = scalar(0, x.mesh(), at::kLong), one = scalar(1, x.mesh(), at::kLong);
    bins = ops::where(ops::equal(x, value), zero, ops::add(bins, one));
  }
  return encoded(bins, options_.output_mode, num_bins_, output_dtype());
}

at::Tensor HashingLayer::text_categories(const std::vector<std::string>& texts) const {
  const auto* mask = std::get_if<std::string>(&options_.mask_value);
  if (has_mask_bin() && !mask) {
    throw ConfigError(where(), "mask_value is a text where the input is texts", "a number",
                      "give a text, or call it on numbers");
  }
  const bool masked = has_mask_bin();
  at::Tensor all = at::empty({static_cast<int64_t>(texts.size())}, at::kLong);
  int64_t* const out = all.mutable_data_ptr<int64_t>();
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!masked) {
      out[i] = hash_bucket(texts[i], num_bins_, options_.salt);
    } else {
      out[i] = texts[i] == *mask ? 0 : 1 + hash_bucket(texts[i], num_bins_ - 1, options_.salt);
    }
  }
  return encoded(all, options_.output_mode, num_bins_, output_dtype());
}

}  // namespace

Hashing::Hashing(int64_t num_bins, const HashingOptions& options)
    : LayerHandle(std::make_shared<HashingLayer>(num_bins, options)) {}

at::Tensor Hashing::operator()(const std::vector<std::string>& texts) const {
  return static_cast<HashingLayer&>(*layer()).text_categories(texts);
}

at::Tensor Hashing::operator()(std::initializer_list<const char*> texts) const {
  return (*this)(std::vector<std::string>(texts.begin(), texts.end()));
}

}  // namespace tessera
