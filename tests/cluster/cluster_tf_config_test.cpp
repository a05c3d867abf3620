#include "tests/cluster/cluster_cases.hpp"
#include "tests/support/catch.hpp"

namespace cluster_tf_config_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

const std::string all_types =
    R"({"ps": ["p:9"], "worker": ["a:1", "a:2"], "chief": ["a:3"], "evaluator": ["e:1", "e:2"]})";

}  // namespace

TEST_CASE("reads the tasks of TF_CONFIG", "[cluster]") {
  const auto task = [](const std::string& type, int index) {
    return str("{\"type\": \"", type, "\", \"index\": ", index, "}");
  };
  check_all({
      {tf(two_workers, task("worker", 1)), "TF_CONFIG worker 1/2 local 0 a:1"},
      {tf(all_types, task("chief", 0)), "TF_CONFIG chief 0/3 local 0 a:3"},
      {tf(all_types, task("worker", 0)), "TF_CONFIG worker 1/3 local 1 a:3"},
      {tf(all_types, task("worker", 1)), "TF_CONFIG worker 2/3 local 2 a:3"},
      {tf(all_types, task("ps", 0)), "TF_CONFIG ps 0/3 local 0 a:3"},
      {tf(all_types, task("evaluator", 1)), "TF_CONFIG evaluator 1/3 local 0 a:3"},
      {tf(two_workers, task("evaluator", 0)), "TF_CONFIG evaluator 0/2"},
      {tf(R"({"worker": ["[::1]:7"]})", R"({"type": "worker"})"),
       "TF_CONFIG worker 0/1 local 0 ::1:7"},
      {{{"TF_CONFIG", R"({"cluster": {"worker": ["a:1"]}, "environment": "cloud", "job": {},
                         "task": {"type": "worker", "index": 0, "trial": ""}})"}},
       "TF_CONFIG worker 0/1"},
  });
}

TEST_CASE("a malformed TF_CONFIG is an error that names the key", "[cluster]") {
  const std::string worker = R"({"type": "worker", "index": 0})";
  check_all({
      {{{"TF_CONFIG", "{"}}, "[TF_CONFIG:1:1] the text must be valid JSON. Received: "},
      {{{"TF_CONFIG", "{\n  \"cluster\": }"}}, "[TF_CONFIG:2:14] the text must be valid JSON"},
      {{{"TF_CONFIG", "[1]"}}, "[TF_CONFIG] the value must be an object"},
      {{{"TF_CONFIG", "{\"cluster\": " + two_workers + "}"}},
       "[TF_CONFIG] the key \"task\" is required"},
      {{{"TF_CONFIG", "{\"task\": " + worker + "}"}},
       "[TF_CONFIG] the key \"cluster\" is required"},
      {{{"TF_CONFIG", "{\"cluster\": " + two_workers + ", \"tusk\": 1, \"task\": " + worker + "}"}},
       "[TF_CONFIG] every key must be known. Received: \"tusk\""},
      {tf("7", worker), "[TF_CONFIG: cluster] the value must be an object"},
      {tf("{}", worker), "[TF_CONFIG: cluster] must have a chief or a worker"},
      {tf(R"({"ps": ["a:1"]})", worker), "[TF_CONFIG: cluster] must have a chief or a worker"},
      {tf(R"({"wroker": ["a:1"]})", worker),
       "[TF_CONFIG: cluster.wroker] must be a type of task. Received: \"wroker\". To fix: write "
       "\"worker\""},
      {tf(R"({"worker": []})", worker), "[TF_CONFIG: cluster.worker] must have at least one task"},
      {tf(R"({"worker": ["a:1"], "ps": []})", worker),
       "[TF_CONFIG: cluster.ps] must have at least one task. Received: an empty list"},
      {tf(R"({"worker": "a:1"})", worker), "[TF_CONFIG: cluster.worker] the value must be a list"},
      {tf(R"({"worker": {"0": "a:1"}})", worker),
       "[TF_CONFIG: cluster.worker] the value must be a list"},
      {tf(R"({"worker": [1]})", worker),
       "[TF_CONFIG: cluster.worker[0]] the value must be a text in quotes. Received: 1"},
      {tf(R"({"worker": ["a:1"], "evaluator": [null]})", worker),
       "[TF_CONFIG: cluster.evaluator[0]] the value must be a text in quotes. Received: null"},
      {tf(R"({"worker": ["a:1"], "worker": ["b:1"]})", worker),
       "[TF_CONFIG:1:40] a key may appear only once in an object. Received: \"worker\" again"},
      {tf(R"({"worker": ["a:1"], "chief": ["b:1"], "master": ["c:1"]})", worker),
       "[TF_CONFIG: cluster.master] must be a type of task. Received: \"master\""},
      {tf(R"({"worker": ["a:1", "a"]})", worker),
       "[TF_CONFIG: cluster.worker[1]] must be a host and a port. Received: \"a\""},
      {tf(R"({"worker": ["a:1", "a:x"]})", worker),
       "[TF_CONFIG: cluster.worker[1], port] must be an integer from 1 to 65535"},
      {tf(R"({"worker": ["a:1", "a:0"]})", worker), "[TF_CONFIG: cluster.worker[1], port] must be"},
      {tf(R"({"worker": ["a:1", "b:1"], "ps": ["b:1"]})", worker),
       "[TF_CONFIG: cluster.ps[0]] must have a unique address. Received: \"b:1\" again"},
      {tf(R"({"worker": ["host:1", "HOST:01"]})", worker),
       "[TF_CONFIG: cluster.worker[1]] must have a unique address. Received: \"HOST:01\""},
      {tf(R"({"worker": ["a:1"], "evaluator": ["a:65536"]})", worker),
       "[TF_CONFIG: cluster.evaluator[0], port] must be an integer from 1 to 65535"},
      {tf(R"({"chief": ["a:1", "b:1"]})", worker), "[TF_CONFIG: cluster.chief] must be one task"},
      {tf(two_workers, R"({"type": "worker", "index": 2})"),
       "[TF_CONFIG: task.index] must be an integer from 0 to 1. Received: \"2\""},
      {tf(two_workers, R"({"type": "worker", "index": -1})"), "[TF_CONFIG: task.index] must be"},
      {tf(two_workers, R"({"type": "worker", "index": "0"})"), "[TF_CONFIG: task.index]"},
      {tf(two_workers, R"({"type": "chief", "index": 0})"),
       "[TF_CONFIG: task.type] must be a type listed in cluster. Received: \"chief\""},
      {tf(two_workers, R"({"type": "ps", "index": 0})"),
       "[TF_CONFIG: task.type] must be a type listed in cluster. Received: \"ps\""},
      {tf(all_types, R"({"type": "ps", "index": 1})"),
       "[TF_CONFIG: task.index] must be an integer from 0 to 0. Received: \"1\""},
      {tf(all_types, R"({"type": "evaluator", "index": 2})"),
       "[TF_CONFIG: task.index] must be an integer from 0 to 1. Received: \"2\""},
      {tf(two_workers, R"({"type": "worker", "index": 0, "index": 1})"),
       "[TF_CONFIG:1:86] a key may appear only once in an object. Received: \"index\" again"},
      {tf(two_workers, R"({"type": "worker"})"),
       "[TF_CONFIG: task.index] must say which of 2 tasks it is. Received: nothing"},
      {tf(two_workers, R"({"type": "worker", "index": 0.5})"), "[TF_CONFIG: task.index]"},
      {tf(two_workers, R"({"type": 1, "index": 0})"), "[TF_CONFIG: task.type] the value must be"},
      {tf(two_workers, R"("worker")"), "[TF_CONFIG: task] the value must be an object"},
      {tf(two_workers, R"({"type": "boss", "index": 0})"), "[TF_CONFIG: task.type] must be a type"},
      {tf(two_workers, R"({"index": 0})"), "[TF_CONFIG: task] the key \"type\" is"},
      {tf(two_workers, R"({"type": "worker", "index": 0, "rank": 1})"),
       "[TF_CONFIG: task] every key must be known. Received: \"rank\""},
  });
}

}  // namespace cluster_tf_config_test
