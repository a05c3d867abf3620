#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// A layer that FeatureSpace can use to turn a column of a table into numbers.
class ColumnLayer : public Layer {
 public:
  using Layer::Layer;

  /// Whether it needs learn(), because the options do not give what it would learn.
  virtual bool learns() const { return false; }
  /// Whether it may be called.
  virtual bool ready() const { return true; }
  /// Learns from all values of a column (rows, …), on the host; replaces what it learned before.
  virtual void learn(const at::Tensor&) {}
  /// Returns what learn() learned as options with Keras' keys, which config() leaves out.
  virtual Json learned() const { return Json::object(); }
  /// Returns the number of categories; 0 if it makes none.
  virtual int64_t categories() const { return 0; }
  /// Returns the categories of texts, on the host. Throws ConfigError if the layer takes numbers.
  virtual at::Tensor text_categories(const std::vector<std::string>& texts) const;
};

}  // namespace tessera::detail
