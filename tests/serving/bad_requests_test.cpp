#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>

#include <unistd.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/serving/http/http_server.hpp>
#include <tessera/framework/serving/http/model_route.hpp>
#include <tessera/framework/serving/http/predict_request.hpp>

#include "tests/serving/parsing_server.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/http_client.hpp"

namespace bad_requests_test {

using namespace tessera;
using namespace tessera::detail;
using test::HttpAnswer;
using test::HttpClient;
using test::ParsingServer;

namespace {

/// Resident memory of this process, in bytes.
int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// Whether an answer is a client error with a JSON error, or no answer to an incomplete request.
bool is_refusal(const HttpAnswer& answer) {
  if (answer.status < 400 || answer.status > 499) return false;
  return parse_json(answer.body, "answer").at("error").is_string();
}

const std::string good_body = R"({"instances": ["a fine film", {"text": "dull"}]})";

/// Bodies that are JSON, or nearly, and no request.
std::vector<std::string> bad_bodies() {
  std::vector<std::string> bodies;
  const std::vector<std::string> values{"",
                                        "null",
                                        "true",
                                        "-1",
                                        "1.5",
                                        "1e400",
                                        "18446744073709551616",
                                        "\"\"",
                                        "{}",
                                        "[]",
                                        "[[]]",
                                        "[{}]",
                                        "[null]",
                                        "[1, true]",
                                        "[[\"a\"]]",
                                        "[\"a\", 1]",
                                        "[1, \"a\"]",
                                        "[[1], [1, 2]]",
                                        "[[1], [[1]]]",
                                        "[{\"text\": null}]",
                                        "[{\"text\": [\"a\"]}]",
                                        "[{\"b64\": \"YQ=\"}]",
                                        "[{\"text\": \"a\", \"text\": \"b\"}]",
                                        "[\"\\ud800\"]",
                                        "[\"\xff\"]",
                                        "[\"a\x01\"]",
                                        "[\"a\"",
                                        "[\"a",
                                        "[\"a\",]",
                                        "[,]",
                                        "[1e39]",
                                        "[-]",
                                        "[01]",
                                        "[+1]",
                                        "[0x10]",
                                        "[NaN]",
                                        "['a']",
                                        "[\"a\"]]",
                                        "{\"text\": \"a\"}",
                                        "{\"texts\": [\"a\"]}",
                                        "{\"text\": []}",
                                        "/etc/passwd",
                                        "[\"\\x\"]",
                                        "[\"\\u12\"]",
                                        "[/**/\"a\"]"};
  for (const char* key : {"instances", "inputs", "instance", ""}) {
    for (const std::string& value : values) {
      bodies.push_back("{\"" + std::string(key) + "\": " + value + "}");
    }
  }
  bodies.insert(bodies.end(), values.begin(), values.end());
  bodies.push_back(std::string(100000, '['));
  bodies.push_back(R"({"instances": )" + std::string(100000, '['));
  bodies.push_back(R"({"instances": ["a"], "signature_name": "x"})");
  bodies.push_back(R"({"instances": ["a"], "inputs": ["a"]})");
  bodies.push_back(std::string("{\"instances\": [\"\0\"]}", 20));
  return bodies;
}

/// A request with some of its bytes changed, removed, doubled or moved.
std::string mutated(std::string bytes, std::mt19937_64& random) {
  const auto below = [&](size_t end) { return static_cast<size_t>(random() % end); };
  for (size_t n = 1 + below(4); n > 0 && !bytes.empty(); --n) {
    const size_t at = below(bytes.size());
    const size_t count = 1 + below(std::min<size_t>(16, bytes.size() - at));
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes.erase(at, count);
        break;
      case 2:
        bytes.insert(at, bytes.substr(at, count));
        break;
      case 3:
        bytes.insert(below(bytes.size()), bytes.substr(at, count));
        break;
      default:
        bytes.insert(at, 1, "{}[]\",:\\0\r\n"[below(11)]);
        break;
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("handcrafted bad requests are answered with 4xx and a JSON error") {
  ParsingServer server;
  const std::vector<std::string> bodies = bad_bodies();
  CHECK(bodies.size() >= 200);
  for (const std::string& body : bodies) {
    CAPTURE(body.substr(0, 80));
    CHECK(is_refusal(test::http_post(server.port(), "/v1/models/imdb:predict", body)));
  }
  CHECK(test::http_post(server.port(), "/v1/models/imdb:predict", good_body).status == 200);
}

TEST_CASE("ten thousand mutated requests crash nothing and leak no memory") {
  ParsingServer server;
  const std::string good = test::post_bytes("/v1/models/imdb:predict", good_body);
  std::mt19937_64 random(48);
  const int64_t before = resident_bytes();
  int refused = 0;
  int silent = 0;
  int accepted = 0;
  for (int i = 0; i < 10000; ++i) {
    HttpClient client(server.port());
    const std::string bytes = mutated(good, random);
    client.send(bytes);
    // The server sees the end of the request here.
    client.finish();
    const HttpAnswer answer = client.read();
    refused += is_refusal(answer);
    silent += answer.status == 0;
    accepted += answer.status == 200;
    if (answer.status >= 500 || answer.status == 0 || answer.status == 200) continue;
    if (!is_refusal(answer)) FAIL_CHECK("status " << answer.status << ": " << bytes);
  }
  CAPTURE(refused, silent, accepted);
  CHECK(refused + silent + accepted == 10000);
  CHECK(refused > 5000);
  // Room for the sanitizers' own tables.
  CHECK(resident_bytes() - before <= int64_t{32} << 20);
  CHECK(test::http_post(server.port(), "/v1/models/imdb:predict", good_body).status == 200);
}

}  // namespace bad_requests_test
