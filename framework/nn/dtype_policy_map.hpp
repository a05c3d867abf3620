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

/// Dtype policies of layers by their path (keras.dtype_policies.DTypePolicyMap), for those that
/// name none themselves:
///
///     set_dtype_policy(DTypePolicyMap("mixed_bfloat16", {{"decoder/logits", "float32"}}));
///
/// A layer's policy is that of its exact path; else of the one expression that matches the whole
/// path; else the default. Expressions are RE2's. A layer takes it when it is built, at the latest
/// when the model that it is part of names it.
class DTypePolicyMap {
 public:
  /// Each rule is a path or expression and the name of a policy. Throws ConfigError for an unknown
  /// policy, an expression that RE2 does not take, and a rule that is there already.
  explicit DTypePolicyMap(const std::string& default_policy,
                          const std::vector<std::pair<std::string, std::string>>& rules = {});
  const DTypePolicy& default_policy() const { return default_; }
  /// The policy of the layer at `path`. Throws ConfigError if several expressions match.
  DTypePolicy find(const std::string& path) const;
  /// "mixed_bfloat16; decoder/logits: float32".
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

/// The policies of layers made from now on that name none.
void set_dtype_policy(const DTypePolicyMap& policies);

}  // namespace tessera
