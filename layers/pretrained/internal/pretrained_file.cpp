#include <tessera/layers/pretrained/internal/pretrained_file.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/io/format/safetensors_reader.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>

namespace tessera::detail {
namespace {

/// A folder with config.json and safetensors files.
class PretrainedFolder final : public PretrainedFile {
 public:
  explicit PretrainedFolder(const std::string& folder)
      : config_path_(path_in(folder, "config.json")), file_(weights_path(folder)) {
    for (const StoredSafeTensor& tensor : file_.tensors()) {
      std::string name = tensor.name;
      for (const std::string prefix : {"model.", "transformer.", "bert."}) {
        if (name.starts_with(prefix)) name.erase(0, prefix.size());
      }
      // The first files of BERT call a norm's weights as TensorFlow does.
      if (name.ends_with("LayerNorm.gamma")) name.replace(name.size() - 5, 5, "weight");
      if (name.ends_with("LayerNorm.beta")) name.replace(name.size() - 4, 4, "bias");
      const auto dtype = safetensors_scalar_type(tensor.dtype);
      tensors_.push_back(
          {name, tensor.name, tensor.dtype, tensor.shape, dtype && at::isFloatingType(*dtype)});
    }
  }

  Json config() const override { return read_json_file(config_path_); }
  std::string config_path() const override { return config_path_; }
  std::string path() const override { return file_.path(); }
  const std::vector<PretrainedTensor>& tensors() const override { return tensors_; }
  void verify() const override { file_.verify(); }

  at::Tensor read(size_t tensor, const Rectangle& area) const override {
    const StoredSafeTensor& stored = file_.tensors()[tensor];
    at::Tensor block = at::empty(area.shape(), *safetensors_scalar_type(stored.dtype));
    file_.read(stored, area,
               {static_cast<std::byte*>(block.data_ptr()), static_cast<size_t>(block.nbytes())});
    return block;
  }

 private:
  static std::string weights_path(const std::string& folder) {
    const std::string one = path_in(folder, "model.safetensors");
    return exists(one) ? one : path_in(folder, "model.safetensors.index.json");
  }

  std::string config_path_;
  SafetensorsReader file_;
  std::vector<PretrainedTensor> tensors_;
};

}  // namespace

std::unique_ptr<PretrainedFile> open_pretrained(const std::string& path) {
  if (path.ends_with(".gguf")) return open_gguf(path);
  return std::make_unique<PretrainedFolder>(path);
}

}  // namespace tessera::detail
