#pragma once

#include <map>
#include <vector>

#include <tessera/framework/drawing/styled_table.hpp>
#include <tessera/framework/model/functional.hpp>
#include <tessera/framework/model/summary.hpp>

namespace tessera::detail {

/// Formats a shape like "(None, 10)".
StyledText keras_shape(const Shape& shape);
/// Formats a number like "101,770".
std::string with_commas(int64_t count);

/// Whether a model is a plain chain of calls, each layer called once.
bool is_chain(const FunctionalModel& model);

/// Makes the rows of a summary.
class SummaryRows {
 public:
  /// `graph` is the model whose connections are shown; null to show none.
  SummaryRows(const Model& model, const SummaryOptions& options, const FunctionalModel* graph);
  /// Appends the row of a layer and, with expand_nested, the rows of its layers.
  void add(const Layer& layer, int level, std::vector<std::vector<StyledText>>& rows) const;

 private:
  void remember_shapes(const Model& model);
  StyledText shape_text(const Layer& layer) const;
  StyledText connections(const Layer& layer) const;

  const SummaryOptions& options_;
  const FunctionalModel* graph_;
  std::map<const Layer*, Shapes> shapes_;
};

}  // namespace tessera::detail
