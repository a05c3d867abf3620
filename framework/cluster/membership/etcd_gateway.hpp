#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/cluster/cluster.hpp>

namespace tessera::detail {

struct EtcdEndpoint {
  bool tls = false;
  std::string host;
  int port = 2379;
  /// Returns "https://host:2379".
  std::string url() const;
};

/// Addresses of an etcd cluster and credentials for it.
struct EtcdAccess {
  std::vector<EtcdEndpoint> endpoints;
  std::string user;
  std::string password;
  std::string ca;           ///< file of certificates to trust; empty: the system's
  std::string certificate;  ///< file of this process' certificate; empty: none
  std::string key;          ///< file of its key
};

/// Parses "https://user:password@host1:2379,https://host2:2379". User and password may also be in
/// TESSERA_ETCD_USER and TESSERA_ETCD_PASSWORD or, in a file, TESSERA_ETCD_PASSWORD_FILE; TLS is
/// set by TESSERA_ETCD_CA, TESSERA_ETCD_CERTIFICATE and TESSERA_ETCD_KEY. Throws ConfigError naming
/// `where`, also for a password that would cross a network unencrypted, unless `insecure`.
EtcdAccess etcd_access(const std::string& where, const std::string& text,
                       const EnvironmentLookup& environment, bool insecure);

/// No endpoint answers at the moment.
class EtcdUnavailable : public CommError {
  using CommError::CommError;
};

/// etcd refuses a request; the code is gRPC's.
class EtcdRefusal : public CommError {
 public:
  EtcdRefusal(const std::string& where, const std::string& expected, const std::string& received,
              const std::string& fix, int code)
      : CommError(where, expected, received, fix), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

class EtcdConnection;
class EtcdWatch;
struct EtcdAsio;

/// A client of etcd's JSON gateway on one thread: requests one after the other over a connection
/// that stays open, and a second one over which etcd tells that something has changed. Not
/// thread-safe apart from wake().
class EtcdGateway {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit EtcdGateway(EtcdAccess access);
  ~EtcdGateway();
  EtcdGateway(const EtcdGateway&) = delete;
  EtcdGateway& operator=(const EtcdGateway&) = delete;

  /// Throws ConfigError unless an etcd of version 3.4 or newer answers, EtcdUnavailable if nothing
  /// does.
  void check_version();
  /// Posts a request; returns the reply. Tries each endpoint once. Throws EtcdUnavailable or
  /// EtcdRefusal.
  Json post(const std::string& path, const Json& request);
  /// Opens the watch of all keys with a prefix unless it is open. A change of any of them ends a
  /// wait(), and so does the end of the watch. Throws EtcdUnavailable.
  void watch(const std::string& prefix);
  /// Waits until something has changed, wake() is called or the time has come.
  void wait(Time until);
  /// Ends a wait(), also the next one. Thread-safe.
  void wake();
  /// Makes all further requests fail at once if they have no answer after `time`. Thread-safe.
  void hurry(std::chrono::milliseconds time);

  /// Returns the IP address by which this process reaches etcd.
  std::string own_ip() const;

 private:
  struct Reply {
    int status = 0;
    std::string body;
  };

  std::unique_ptr<EtcdConnection> connect(std::string& error);
  Reply send(const std::string& method, const std::string& path, const std::string& body);
  void authenticate();
  Json read_reply(const std::string& path, const Reply& reply) const;
  [[noreturn]] void refuse(const std::string& path, const Reply& reply) const;
  Time deadline() const;

  EtcdAccess access_;
  std::unique_ptr<EtcdAsio> asio_;  ///< outlives the connections
  size_t endpoint_ = 0;             ///< the one in use
  std::string token_;
  std::unique_ptr<EtcdConnection> connection_;
  std::shared_ptr<EtcdWatch> watch_;
  std::string own_ip_;
  std::atomic<int64_t> request_ms_;
  std::atomic<bool> woken_ = false;
};

}  // namespace tessera::detail
