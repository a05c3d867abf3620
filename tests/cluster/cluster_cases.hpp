#pragma once

#include <map>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/cluster.hpp>

#include "tests/support/catch.hpp"

namespace tessera::test {

using namespace detail;

using Values = std::map<std::string, std::string>;

inline EnvironmentLookup environment_of(const Values& values) {
  return [values](const char* name) -> const char* {
    const auto it = values.find(name);
    return it == values.end() ? nullptr : it->second.c_str();
  };
}

inline std::string describe(const Cluster& c) {
  return str(c.source, " ", to_string(c.type), " ", c.rank, "/", c.size, " local ", c.local_rank,
             " ", c.address, ":", c.port, c.job.empty() ? "" : " job " + c.job);
}

/// Returns the cluster as text, or the error's text.
inline std::string outcome(const Values& values, const ClusterFlags& flags = {}) {
  try {
    return describe(find_cluster(flags, environment_of(values)));
  } catch (const ConfigError& error) {
    return error.what();
  }
}

/// An environment and the expected beginning of the outcome.
struct Case {
  Values values;
  std::string expected;
};

/// Checks that every outcome is one line that begins as expected.
inline void check_all(const std::vector<Case>& cases) {
  for (const auto& [values, expected] : cases) {
    std::string text;
    for (const auto& [name, value] : values) text += name + "=" + value + " ";
    CAPTURE(text);
    const std::string received = outcome(values);
    CHECK(received.substr(0, expected.size()) == expected);
    CHECK(received.find('\n') == received.npos);
  }
}

/// Returns an environment with this TF_CONFIG.
inline Values tf(const std::string& cluster, const std::string& task) {
  return {{"TF_CONFIG", "{\"cluster\": " + cluster + ", \"task\": " + task + "}"}};
}

inline const std::string two_workers = R"({"worker": ["a:1", "b:2"]})";

}  // namespace tessera::test
