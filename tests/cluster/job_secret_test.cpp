#include <tessera/framework/cluster/internal/job_secret.hpp>

#include <sys/stat.h>

#include <cstdio>
#include <set>

#include <tessera/framework/base/internal/secret.hpp>

#include "tests/cluster/cluster_cases.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace job_secret_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

JobAccess access_of(const Values& values, const Cluster& cluster = {}) {
  return job_access(cluster, environment_of(values));
}

std::string error_of(const Values& values) {
  try {
    access_of(values);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string hexadecimal(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
    text += digits;
  }
  return text;
}

}  // namespace

TEST_CASE("a job's secret comes from its cluster, a variable or a file", "[cluster]") {
  const TempFolder folder;
  const std::string path = (folder / "secret").string();
  const std::string secret(40, 's');
  write_file(path, "  " + secret + "\n");
  ::chmod(path.c_str(), 0600);
  CHECK(access_of({}).secret.empty());
  CHECK_FALSE(access_of({}).insecure);
  CHECK(access_of({{"TESSERA_SECRET", secret}}).secret == secret);
  CHECK(access_of({{"TESSERA_SECRET_FILE", path}}).secret == secret);
  Cluster cluster;
  cluster.secret = std::string(32, 'c');
  CHECK(access_of({{"TESSERA_SECRET", secret}}, cluster).secret == cluster.secret);
  CHECK(access_of({{"TESSERA_INSECURE", "1"}}).insecure);
  CHECK_FALSE(access_of({{"TESSERA_INSECURE", "0"}}).insecure);
  CHECK(find_cluster({"h:1", 0, 2, true}, environment_of({})).insecure);
  CHECK_FALSE(access_of({}).encrypt);
  CHECK(access_of({{"TESSERA_ENCRYPT", "1"}}).encrypt);
  CHECK_FALSE(access_of({{"TESSERA_ENCRYPT", "0"}}).encrypt);
  CHECK(find_cluster({"h:1", 0, 2, false, true}, environment_of({})).encrypt);
  cluster = {};
  cluster.insecure = true;
  cluster.encrypt = true;
  CHECK(access_of({}, cluster).insecure);
  CHECK(access_of({}, cluster).encrypt);
  CHECK_THAT(error_of({{"TESSERA_SECRET", secret}, {"TESSERA_SECRET_FILE", path}}),
             Contains("[TESSERA_SECRET] must not be set together with TESSERA_SECRET_FILE"));
  CHECK_THAT(error_of({{"TESSERA_SECRET", "short"}}),
             Contains("[TESSERA_SECRET] a secret has 32 to 4096 characters. Received: 5. To fix: "
                      "generate one with: openssl rand -hex 32"));
  CHECK_THAT(error_of({{"TESSERA_INSECURE", "yes"}}), Contains("[TESSERA_INSECURE] must be"));
  CHECK_THAT(error_of({{"TESSERA_ENCRYPT", "yes"}}), Contains("[TESSERA_ENCRYPT] must be"));
}

TEST_CASE("a secret file that others may read is refused", "[cluster]") {
  const TempFolder folder;
  const std::string path = (folder / "secret").string();
  write_file(path, std::string(64, 's'));
  for (const mode_t mode : {0640, 0604, 0620, 0601}) {
    ::chmod(path.c_str(), mode);
    CHECK_THAT(error_of({{"TESSERA_SECRET_FILE", path}}),
               Contains("[TESSERA_SECRET_FILE] must name a file that only the user") &&
                   Contains("chmod 600 " + path));
  }
  ::chmod(path.c_str(), 0400);
  CHECK(error_of({{"TESSERA_SECRET_FILE", path}}).empty());
  CHECK_THAT(error_of({{"TESSERA_SECRET_FILE", (folder / "none").string()}}),
             Contains("No such file"));
  CHECK_THAT(error_of({{"TESSERA_SECRET_FILE", folder.path().string()}}),
             Contains("must name a file"));
  write_file((folder / "long").string(), std::string(5000, 's'));
  ::chmod((folder / "long").c_str(), 0600);
  CHECK_THAT(error_of({{"TESSERA_SECRET_FILE", (folder / "long").string()}}),
             Contains("a secret has 32 to 4096 characters"));
}

TEST_CASE("beyond loopback a secret is required, or the insecure option", "[cluster]") {
  const auto outcome = [](const std::string& host, const JobAccess& access) {
    try {
      return check_access("coordination", "rank 0", host, access);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
  };
  for (const std::string host : {"127.0.0.1", "::1", "localhost"}) CHECK(outcome(host, {}).empty());
  CHECK(outcome("host1", {std::string(32, 's'), false}).empty());
  CHECK(outcome("host1", {"", true}) ==
        "Warning: [coordination] rank 0 listens beyond this host, at host1, without a secret: "
        "whoever "
        "reaches it may take part");
  CHECK_THAT(
      outcome("10.0.0.7", {}),
      Contains("[coordination] rank 0 needs a secret to listen beyond this host, at 10.0.0.7. "
               "Received: no secret. To fix: ") &&
          Contains("TESSERA_SECRET_FILE") && Contains("--insecure"));
  // Even on loopback: there would be no keys.
  CHECK_THAT(outcome("127.0.0.1", {"", true, true}), Contains("needs the job's secret"));
  CHECK(outcome("127.0.0.1", {std::string(32, 's'), false, true}).empty());
}

TEST_CASE("proofs are the HMAC-SHA256 of unambiguously encoded texts", "[cluster]") {
  // The output of openssl dgst -sha256 -hmac key for "1:a2:bc".
  CHECK(hexadecimal(proof_of("key", {"a", "bc"})) ==
        "1285c12d1467a2dda4fe0f874da6e8e15938a9e56a374ff0ac2a1778900e98f6");
  CHECK_FALSE(same_secret(proof_of("key", {"a", "bc"}), proof_of("key", {"ab", "c"})));
  CHECK_FALSE(same_secret(proof_of("key", {"a"}), proof_of("kez", {"a"})));
  CHECK(same_secret(proof_of("key", {"a"}), proof_of("key", {"a"})));
  CHECK_FALSE(same_secret(proof_of("key", {"a"}), ""));
  std::set<std::string> drawn;
  for (int i = 0; i < 100; ++i) drawn.insert(random_nonce());
  CHECK(drawn.size() == 100);
  CHECK(drawn.begin()->size() == 32);
  CHECK(make_secret().size() == 64);
  CHECK(make_secret() != make_secret());
}

}  // namespace job_secret_test
