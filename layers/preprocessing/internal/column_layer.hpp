#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// A layer that makes numbers of a column of a table, as FeatureSpace knows it.
class ColumnLayer : public Layer {
 public:
  using Layer::Layer;

  /// Whether learn() is for it, for what it learns was not given.
  virtual bool learns() const { return false; }
  /// Whether it may be called.
  virtual bool ready() const { return true; }
  /// Learns from all values of a column (rows, …), on the host, and forgets what it learned before.
  virtual void learn(const at::Tensor&) {}
  /// Options that config() leaves out for what learn() learned, by Keras' keys.
  virtual Json learned() const { return Json::object(); }
  /// How many categories it knows; 0 if it makes none.
  virtual int64_t categories() const { return 0; }
  /// The categories of texts, on the host. Throws ConfigError where the layer takes numbers.
  virtual at::Tensor text_categories(const std::vector<std::string>& texts) const;
};

}  // namespace tessera::detail
