// Replaces etcd_gateway.cpp in a build without Boost.
#include <tessera/framework/cluster/membership/etcd_gateway.hpp>

namespace tessera::detail {

class EtcdConnection {};
class EtcdWatch {};
struct EtcdAsio {};

EtcdGateway::EtcdGateway(EtcdAccess) {
  throw ConfigError("TESSERA_MEMBERS", "etcd needs Boost.Beast", "a build without it",
                    "install libboost1.81-dev and build again with TESSERA_ETCD=ON");
}

EtcdGateway::~EtcdGateway() = default;

void EtcdGateway::check_version() {}

Json EtcdGateway::post(const std::string&, const Json&) { return {}; }

void EtcdGateway::watch(const std::string&) {}

void EtcdGateway::wait(Time) {}

void EtcdGateway::wake() {}

void EtcdGateway::hurry(std::chrono::milliseconds) {}

std::string EtcdGateway::own_ip() const { return ""; }

}  // namespace tessera::detail
