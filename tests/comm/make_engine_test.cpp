#include <tessera/framework/comm/internal/make_engine.hpp>

#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"

namespace make_engine_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// The processes of a run, of which none can be reached.
class Unreachable final : public Coordination {
 public:
  explicit Unreachable(std::vector<Peer> peers) : peers_(std::move(peers)) {}
  int rank() const override { return 0; }
  int size() const override { return static_cast<int>(peers_.size()); }
  const std::vector<Peer>& peers() const override { return peers_; }
  std::vector<std::string> gather(const std::string&, const std::string&) override {
    throw CommError("nobody is there");
  }
  void check(const CallRecord&) override {}
  void set_calls(std::function<std::vector<CallRecord>()>) override {}
  void set_on_end(std::function<void(const std::string&)>) override {}
  std::string reason(std::chrono::milliseconds) override { return ""; }
  void abort(const std::string&) override {}
  void report_failure(const std::string&) override {}
  void leave() override {}
  void give_up(const std::string&) override {}

 private:
  std::vector<Peer> peers_;
};

std::string error_with(const std::string& second_host, bool encrypts, Device::Type type) {
  const auto coordination = std::make_shared<Unreachable>(
      std::vector<Peer>{{0, 1, "host1", "10.0.0.1"}, {1, 2, second_host, "10.0.0.2"}});
  try {
    make_engine(coordination, {}, {std::string(32, 's'), false, encrypts}, {type, 0});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a run that encrypts refuses GPUs of several hosts") {
  CHECK(error_with("host2", true, Device::Type::cuda) ==
        "[create_distributed_mesh] a run that encrypts its traffic has its GPUs on one host, as "
        "NCCL encrypts nothing. Received: GPUs of 2 hosts. To fix: use CPUs (--device cpu), or "
        "leave out --encrypt and TESSERA_ENCRYPT and connect the hosts by an encrypted network, "
        "such as WireGuard.");
  CHECK(error_with("host1", true, Device::Type::cuda) == "nobody is there");
  CHECK(error_with("host2", false, Device::Type::cuda) == "nobody is there");
  CHECK(error_with("host2", true, Device::Type::cpu) == "nobody is there");
}

}  // namespace make_engine_test
