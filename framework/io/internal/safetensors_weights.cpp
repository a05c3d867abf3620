#include <tessera/framework/io/internal/safetensors_weights.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <re2/re2.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/io/format/safetensors_reader.hpp>
#include <tessera/framework/io/internal/read_blocks.hpp>
#include <tessera/framework/io/internal/shards_to_save.hpp>
#include <tessera/framework/io/internal/torch_layout.hpp>
#include <tessera/framework/io/keras/keras_weights.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>

namespace tessera::detail {
namespace {

constexpr const char* other_weights =
    "load a file of the same model, pass rename, or by_name to leave other weights unchanged";

/// Checks an expression of the options, and the replacement of `rename`.
void check_expression(const char* option, const std::string& text, const std::string* replacement) {
  const re2::RE2 expression(text, re2::RE2::Quiet);
  std::string problem = expression.error();
  const bool valid =
      expression.ok() && (!replacement || expression.CheckRewriteString(*replacement, &problem));
  if (valid) return;
  throw ConfigError(
      str("load_weights, ", option),
      expression.ok() ? "a replacement that fits its expression" : "an RE2 expression",
      str(in_quotes(expression.ok() ? *replacement : text), ": ", problem),
      "put a backslash before special characters");
}

/// Throws ConfigError for an expression that matches none of the names.
[[noreturn]] void fail_unused(const char* option, const char* what, const std::string& expression,
                              const std::vector<std::string>& names) {
  throw ConfigError(str("load_weights, ", option), str("an expression that matches ", what),
                    in_quotes(expression),
                    str("correct it, or leave it out; ", suggestion(expression, names)));
}

/// The tensors of a file by the paths of weights that they are for.
using TensorsByPath = std::map<std::string, const StoredSafeTensor*>;

TensorsByPath renamed(const SafetensorsReader& file, const LoadWeightsOptions& options) {
  std::vector<std::unique_ptr<re2::RE2>> expressions;
  for (const auto& [expression, replacement] : options.rename) {
    check_expression("rename", expression, &replacement);
    expressions.push_back(std::make_unique<re2::RE2>(expression));
  }
  std::vector<bool> used(expressions.size());
  TensorsByPath tensors;
  for (const StoredSafeTensor& tensor : file.tensors()) {
    std::string name = tensor.name;
    for (size_t i = 0; i < expressions.size(); ++i) {
      if (re2::RE2::GlobalReplace(&name, *expressions[i], options.rename[i].second) > 0) {
        used[i] = true;
      }
    }
    if (name.empty() && !options.rename.empty()) continue;
    const auto [it, is_new] = tensors.emplace(name, &tensor);
    if (is_new) continue;
    throw FileError(file.path(), str("one tensor for ", in_quotes(name)),
                    str(in_quotes(it->second->name), " and ", in_quotes(tensor.name)),
                    "correct the expressions of rename");
  }
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    std::vector<std::string> names;
    for (const StoredSafeTensor& tensor : file.tensors()) names.push_back(tensor.name);
    fail_unused("rename", "a name of the file", options.rename[i].first, names);
  }
  return tensors;
}

/// Returns the paths of weights that the options say are in PyTorch's layout.
std::set<std::string> paths_to_transpose(const std::vector<Variable>& weights,
                                         const std::vector<std::string>& expressions) {
  std::set<std::string> paths;
  for (const std::string& text : expressions) {
    check_expression("transpose", text, nullptr);
    const re2::RE2 expression(text);
    bool used = false;
    std::vector<std::string> names;
    for (const Variable& weight : weights) {
      names.push_back(weight.path());
      if (!re2::RE2::PartialMatch(weight.path(), expression)) continue;
      used = true;
      paths.insert(weight.path());
    }
    if (!used) fail_unused("transpose", "a weight's path", text, names);
  }
  return paths;
}

/// A weight, and the tensor to read it from.
struct WeightMatch {
  Variable weight;
  const StoredSafeTensor* tensor;
  StoredAxes axes;
};

/// Matches the weights of a model with the tensors of a file.
class WeightMatcher {
 public:
  WeightMatcher(const Layer& model, const SafetensorsReader& file,
                const LoadWeightsOptions& options)
      : file_(file),
        options_(options),
        weights_(model.weights()),
        tensors_(renamed(file, options)),
        to_transpose_(paths_to_transpose(weights_, options.transpose)) {}

  std::vector<WeightMatch> match() {
    std::vector<WeightMatch> matches;
    for (const Variable& weight : weights_) {
      const auto found = tensors_.find(weight.path());
      if (found == tensors_.end()) {
        if (options_.by_name) continue;
        (options_.skip_mismatch ? skipped_ : missing_).push_back(weight.path());
        continue;
      }
      const StoredSafeTensor& tensor = *found->second;
      const std::optional<StoredAxes> axes = axes_of(weight, tensor);
      if (axes && has_right_dtype(weight, tensor)) {
        matches.push_back({weight, &tensor, *axes});
      } else if (options_.skip_mismatch) {
        skipped_.push_back(weight.path());
      } else {
        fail_mismatch(weight, tensor);
      }
    }
    if (!missing_.empty()) fail_missing();
    return matches;
  }

  /// Returns the weights left out by skip_mismatch.
  const std::vector<std::string>& skipped() const { return skipped_; }

  /// Returns the names of the file that are of no weight, as the file has them.
  std::vector<std::string> unmatched() const {
    std::set<std::string> paths;
    for (const Variable& weight : weights_) paths.insert(weight.path());
    std::vector<std::string> names;
    for (const auto& [path, tensor] : tensors_) {
      if (paths.count(path) == 0) names.push_back(tensor->name);
    }
    return names;
  }

 private:
  bool is_transposed(const Variable& weight) const {
    return to_transpose_.count(weight.path()) > 0;
  }

  std::optional<StoredAxes> axes_of(const Variable& weight, const StoredSafeTensor& tensor) const {
    return is_transposed(weight) ? StoredAxes::of_torch(tensor.shape, weight.shape())
                                 : StoredAxes::same(tensor.shape, weight.shape());
  }

  static bool can_be_cast(const Variable& weight, const StoredSafeTensor& tensor) {
    const std::optional<at::ScalarType> stored = safetensors_scalar_type(tensor.dtype);
    return stored && at::isFloatingType(*stored) && at::isFloatingType(weight.dtype());
  }

  bool has_right_dtype(const Variable& weight, const StoredSafeTensor& tensor) const {
    return tensor.dtype == safetensors_dtype(weight.dtype(), weight.path()) ||
           (options_.cast && can_be_cast(weight, tensor));
  }

  [[noreturn]] void fail_mismatch(const Variable& weight, const StoredSafeTensor& tensor) const {
    std::string fix = "load a file of the same model, or pass skip_mismatch";
    if (axes_of(weight, tensor)) {
      fix = dtype_fix(tensor.dtype);
      if (can_be_cast(weight, tensor)) fix += ", or pass cast";
    } else if (!is_transposed(weight) && StoredAxes::of_torch(tensor.shape, weight.shape())) {
      fix = "pass transpose, if the file has PyTorch's layout, or " + fix;
    }
    const std::string name =
        tensor.name == weight.path() ? "" : str(" for ", in_quotes(weight.path()));
    throw FileError(file_.path(),
                    str("tensor ", in_quotes(tensor.name), name, " has shape ",
                        to_string(weight.shape()), is_transposed(weight) ? " transposed" : "",
                        " and dtype ", safetensors_dtype(weight.dtype(), weight.path())),
                    str(to_string(tensor.shape), " and ", tensor.dtype), fix);
  }

  [[noreturn]] void fail_missing() const {
    std::vector<std::string> paths;
    for (const auto& [path, tensor] : tensors_) paths.push_back(path);
    const std::string near = nearest(missing_[0], paths);
    std::string received =
        near.empty() ? "no name like it"
                     : str("the nearest to ", in_quotes(missing_[0]), " is ", in_quotes(near));
    const std::vector<std::string> others = unmatched();
    if (!others.empty()) {
      received += str("; ", others.size(), " names of no weight: ", quoted_list(others, 5));
    }
    throw FileError(
        file_.path(),
        str("the file holds the ", missing_.size() == 1 ? "weight " : "weights ",
            quoted_list(missing_, 5), missing_.size() > 5 ? str(", in all ", missing_.size()) : ""),
        received, other_weights);
  }

  const SafetensorsReader& file_;
  const LoadWeightsOptions& options_;
  std::vector<Variable> weights_;
  TensorsByPath tensors_;
  std::set<std::string> to_transpose_;
  std::vector<std::string> skipped_, missing_;
};

DTensor read_weight(const SafetensorsReader& file, const WeightMatch& match) {
  const Variable& weight = match.weight;
  const at::ScalarType stored = *safetensors_scalar_type(match.tensor->dtype);
  const auto read_area = [&](const Rectangle& area) {
    at::Tensor block = at::empty(area.shape(), at::TensorOptions().dtype(stored));
    file.read(*match.tensor, area,
              {static_cast<std::byte*>(block.data_ptr()), static_cast<size_t>(block.nbytes())});
    return block;
  };
  const ShardingPtr sharding = intern(weight.shape(), weight.dtype(), weight.layout());
  return read_blocks(sharding, [&](const std::vector<Interval>& intervals) {
    const Rectangle area{tile_begin(intervals), tile_end(intervals)};
    return match.axes.read(area, read_area).to(weight.dtype());
  });
}

}  // namespace

void load_safetensors_weights(const Layer& model, const std::string& path,
                              const LoadWeightsOptions& options) {
  const Mesh mesh = mesh_of(model.weights());
  std::optional<SafetensorsReader> file;
  collectively(mesh, path, [&] {
    file.emplace(path);
    if (is_first_rank(mesh)) file->verify();
  });
  WeightMatcher matcher(model, *file, options);
  const std::vector<WeightMatch> matches = matcher.match();
  std::vector<DTensor> values;
  collectively(mesh, path, [&] {
    for (const WeightMatch& match : matches) values.push_back(read_weight(*file, match));
  });
  for (size_t i = 0; i < matches.size(); ++i) {
    Variable weight = matches[i].weight;
    weight.assign(std::exchange(values[i], {}));
  }
  warn_of_skipped(mesh, path, matcher.skipped());
  const std::vector<std::string> unmatched = matcher.unmatched();
  if (options.rename.empty() || unmatched.empty()) return;
  warn_once(mesh, str(path, " has tensors of no weight (", unmatched.size(),
                      "): ", quoted_list(unmatched, 5),
                      "; rename them to weights' paths, or to \"\" to leave them out"));
}

}  // namespace tessera::detail
