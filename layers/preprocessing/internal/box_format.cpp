#include <tessera/layers/preprocessing/internal/box_format.hpp>

#include <map>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/nn/config/registry.hpp>

namespace tessera::detail {

BoxFormat box_format(const std::string& where, const std::string& name) {
  using F = BoxFormat;
  static const std::map<std::string, F> formats = {
      {"xyxy", {F::corners, false, false}},         {"yxyx", {F::corners, true, false}},
      {"xywh", {F::corner, false, false}},          {"center_xywh", {F::center, false, false}},
      {"center_yxhw", {F::center, true, false}},    {"rel_xyxy", {F::corners, false, true}},
      {"rel_yxyx", {F::corners, true, true}},       {"rel_xywh", {F::corner, false, true}},
      {"rel_center_xywh", {F::center, false, true}}};
  const auto found = formats.find(lower_case(name));
  if (found != formats.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [text, format] : formats) known.push_back(text);
  throw ConfigError(where, "the bounding box format is known", in_quotes(name),
                    suggestion(name, known));
}

}  // namespace tessera::detail
