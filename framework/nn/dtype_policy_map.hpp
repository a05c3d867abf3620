#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/dtype_policy.hpp>

namespace re2 {
class RE2;
}

namespace tessera {

/// Dtype policies by layer path (keras.dtype_policies.DTypePolicyMap), for layers that name none:
///
///     set_dtype_policy(DTypePolicyMap("mixed_bfloat16", {{"decoder/logits", "float32"}}));
///
/// A layer's policy is that of the rule with its exact path; else of the one RE2 expression that
/// matches the full path; else the default. A layer resolves its policy whenever its path changes,
/// until it is built.
class DTypePolicyMap {
 public:
  /// Each rule is a path or expression and the name of a policy. Throws ConfigError for an unknown
  /// policy, an invalid expression and a duplicate rule.
  explicit DTypePolicyMap(const std::string& default_policy,
                          const std::vector<std::pair<std::string, std::string>>& rules = {});
  const DTypePolicy& default_policy() const { return default_; }
  /// Returns the policy of the layer at `path`. Throws ConfigError if several expressions match.
  DTypePolicy find(const std::string& path) const;
  /// Describes the map: "mixed_bfloat16; decoder/logits: float32".
  std::string to_string() const;

 private:
  struct Rule {
    std::string match;
    std::shared_ptr<const re2::RE2> expression;
    DTypePolicy policy;
  };
  void add(const std::string& match, const std::string& policy);

  DTypePolicy default_;
  std::vector<Rule> rules_;
};

/// Sets the policies of layers created from now on that name none.
void set_dtype_policy(const DTypePolicyMap& policies);

}  // namespace tessera
