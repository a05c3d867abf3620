#include <tessera/framework/nn/dtype_policy_map.hpp>

#include <algorithm>

#include <re2/re2.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr const char* policy_map_name = "DTypePolicyMap";

}  // namespace

DTypePolicyMap::DTypePolicyMap(const std::string& default_policy,
                               const std::vector<std::pair<std::string, std::string>>& rules)
    : default_(dtype_policy(default_policy)) {
  for (const auto& [match, policy] : rules) add(match, policy);
}

void DTypePolicyMap::add(const std::string& match, const std::string& policy) {
  const bool there = std::any_of(rules_.begin(), rules_.end(),
                                 [&](const Rule& rule) { return rule.match == match; });
  if (there) {
    throw ConfigError(policy_map_name, "rules are unique", in_quotes(match) + " twice",
                      "remove one of them");
  }
  RE2::Options options;
  options.set_log_errors(false);
  options.set_never_capture(true);
  auto expression = std::make_shared<const RE2>(match, options);
  if (!expression->ok()) {
    throw ConfigError(policy_map_name, "a rule is a path or an RE2 expression",
                      str(in_quotes(match), ": ", expression->error()),
                      "correct it, with a backslash before each special character of a name");
  }
  rules_.push_back({match, std::move(expression), dtype_policy(policy)});
}

DTypePolicy DTypePolicyMap::find(const std::string& path) const {
  std::vector<const Rule*> matches;
  for (const Rule& rule : rules_) {
    if (rule.match == path) return rule.policy;
    if (RE2::FullMatch(path, *rule.expression)) matches.push_back(&rule);
  }
  if (matches.empty()) return default_;
  if (matches.size() == 1) return matches[0]->policy;
  throw ConfigError(policy_map_name, "at most one expression may match a layer's path",
                    str(in_quotes(matches[0]->match), " and ", in_quotes(matches[1]->match),
                        " for ", in_quotes(path)),
                    "make them narrower, or add a rule for this exact path");
}

std::string DTypePolicyMap::to_string() const {
  std::string text = tessera::to_string(default_);
  for (const Rule& rule : rules_) {
    text += str("; ", rule.match, ": ", tessera::to_string(rule.policy));
  }
  return text;
}

void set_dtype_policy(const DTypePolicyMap& policies) {
  set_dtype_policy(policies.default_policy());
  dtype_policy_map() = std::make_shared<const DTypePolicyMap>(policies);
}

}  // namespace tessera
