#pragma once

#include <string>

namespace tessera::detail {

/// A key and its certificate, as PEM.
struct RpcIdentity {
  std::string key;
  std::string certificate;
};

/// What whoever knows the secret makes alike, and nobody else: with it tasks prove to each other,
/// in TLS, that they are of one job.
RpcIdentity identity_of(const std::string& secret);

/// The name that all these certificates are made out to.
inline constexpr const char* identity_name = "tessera";

}  // namespace tessera::detail
