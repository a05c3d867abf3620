#include <tessera/framework/data/text_data.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/shape.hpp>

namespace tessera {

using namespace detail;

namespace {

class TextsInMemory final : public TextData {
 public:
  TextsInMemory(std::vector<std::string> texts, at::Tensor labels)
      : texts_(std::move(texts)), labels_(std::move(labels)) {
    if (!labels_.defined()) return;
    if (labels_.dim() == 1 && labels_.size(0) == size()) return;
    throw ShapeError("texts", str("there is one label for each of the ", size(), " texts"),
                     "shape " + to_string(labels_.sizes().vec()), "pass labels [texts]");
  }
  int64_t size() const override { return static_cast<int64_t>(texts_.size()); }
  std::string_view text(int64_t row) const override { return texts_[static_cast<size_t>(row)]; }
  at::Tensor labels() const override { return labels_; }

 private:
  std::vector<std::string> texts_;
  at::Tensor labels_;
};

}  // namespace

TextDataHandle::TextDataHandle(std::vector<std::string> texts, at::Tensor labels)
    : Handle(std::make_shared<TextsInMemory>(std::move(texts), std::move(labels))) {}

TextDataHandle::TextDataHandle(std::initializer_list<const char*> texts)
    : TextDataHandle(std::vector<std::string>(texts.begin(), texts.end())) {}

void TextDataHandle::check_made() const {
  if (get()) return;
  throw ConfigError("texts", "the texts are not null", "a null pointer",
                    "pass texts that were read");
}

}  // namespace tessera
