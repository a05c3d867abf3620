#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/io/format/checkpoint_grid.hpp>

namespace tessera::detail {

/// A tensor of a PretrainedFile.
struct PretrainedTensor {
  std::string name;   ///< Hugging Face's, without the prefix that some files leave out
  std::string label;  ///< how the file calls it, for errors
  std::string dtype;  ///< likewise
  Shape shape;
  bool is_floating = true;
};

/// A pretrained model's configuration and its weights, as Hugging Face's programs write them. Every
/// failure is a FileError or a ConfigError that names the file.
class PretrainedFile {
 public:
  virtual ~PretrainedFile() = default;

  /// Returns what is in Hugging Face's config.json.
  virtual Json config() const = 0;
  /// Returns the file of the configuration.
  virtual std::string config_path() const = 0;
  /// Returns the file of the weights, or its index.
  virtual std::string path() const = 0;
  /// Returns a number that is in the scales of norms, while Hugging Face's files lack it.
  virtual double scale_offset() const { return 0; }
  virtual const std::vector<PretrainedTensor>& tensors() const = 0;
  /// Returns a rectangle of a tensor of floats, with the dtype of the file or float32.
  virtual at::Tensor read(size_t tensor, const Rectangle& area) const = 0;
  /// Verifies checksums that the file has.
  virtual void verify() const {}
};

/// Opens a folder of Hugging Face's programs or a GGUF file, by the path's ending.
std::unique_ptr<PretrainedFile> open_pretrained(const std::string& path);

/// Opens a GGUF file.
std::unique_ptr<PretrainedFile> open_gguf(const std::string& path);

}  // namespace tessera::detail
