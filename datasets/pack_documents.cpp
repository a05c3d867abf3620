#include <tessera/datasets/pack_documents.hpp>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

using namespace detail;

namespace {

/// A part of a document with at most as many steps as a row.
struct DocumentPiece {
  const TokenDocument* document;
  int64_t first, steps;
};

void check_document(const TokenDocument& document, size_t number) {
  const auto size = static_cast<int64_t>(document.tokens.size());
  const std::string where = str("pack_documents, document ", number);
  if (size < 2) {
    throw ConfigError(where, "a document has at least two tokens", str(size), "leave it out");
  }
  if (document.prompt < 0 || document.prompt > size) {
    throw ConfigError(where, str("prompt is in [0, ", size, "], the number of tokens"),
                      str(document.prompt), "count the tokens of the prompt");
  }
  const auto learned = std::ssize(document.is_learned);
  if (learned == 0 || learned == size) return;
  throw ConfigError(where, str("is_learned has an element for each of ", size, " tokens"),
                    str(learned), "leave it out to learn all");
}

/// Whether a model learns to predict token `i` of a document.
bool learns(const TokenDocument& document, int64_t i) {
  if (i < document.prompt) return false;
  return document.is_learned.empty() || document.is_learned[static_cast<size_t>(i)];
}

/// Adds pieces to rows.
class RowPacker {
 public:
  explicit RowPacker(int64_t length) : length_(length) {}
  void add(const DocumentPiece& piece) {
    // The row with the least room that suffices; among equals, the first.
    const auto fullest = rooms_.lower_bound({piece.steps, 0});
    size_t row = rows_.size();
    int64_t room = length_;
    if (fullest == rooms_.end()) {
      rows_.emplace_back();
    } else {
      std::tie(room, row) = *fullest;
      rooms_.erase(fullest);
    }
    rows_[row].push_back(piece);
    if (room > piece.steps) rooms_.emplace(room - piece.steps, row);
  }
  const std::vector<std::vector<DocumentPiece>>& rows() const { return rows_; }

 private:
  int64_t length_;
  std::vector<std::vector<DocumentPiece>> rows_;
  std::set<std::pair<int64_t, size_t>> rooms_;  ///< by room and row, of rows with room
};

}  // namespace

TensorDataset pack_documents(const std::vector<TokenDocument>& documents,
                             const PackingOptions& options) {
  const int64_t length = options.length;
  if (length < 1) {
    throw ConfigError("pack_documents", "length is at least 1", str(length),
                      "give the number of steps of a row");
  }
  RowPacker packer(length);
  for (size_t i = 0; i < documents.size(); ++i) {
    check_document(documents[i], i);
    const auto steps = static_cast<int64_t>(documents[i].tokens.size()) - 1;
    for (int64_t first = 0; first < steps; first += length) {
      packer.add({&documents[i], first, std::min(length, steps - first)});
    }
  }
  const auto count = static_cast<int64_t>(packer.rows().size());
  const at::Tensor tokens = at::full({count, length}, options.padding_id, at::kLong);
  const at::Tensor next = tokens.clone();
  const at::Tensor ids = at::zeros({count, length}, at::kLong);
  const at::Tensor weights = at::zeros({count, length}, at::kFloat);
  auto token = tokens.accessor<int64_t, 2>();
  auto label = next.accessor<int64_t, 2>();
  auto id = ids.accessor<int64_t, 2>();
  auto weight = weights.accessor<float, 2>();
  for (int64_t row = 0; row < count; ++row) {
    int64_t step = 0, number = 0;
    for (const auto& [document, first, steps] : packer.rows()[static_cast<size_t>(row)]) {
      ++number;
      for (int64_t t = first; t < first + steps; ++t, ++step) {
        token[row][step] = document->tokens[static_cast<size_t>(t)];
        label[row][step] = document->tokens[static_cast<size_t>(t + 1)];
        id[row][step] = number;
        weight[row][step] = learns(*document, t + 1) ? 1 : 0;
      }
    }
  }
  return TensorDataset({.x = {tokens, ids}, .y = {next}, .sample_weight = {weights}}, "documents");
}

}  // namespace tessera
