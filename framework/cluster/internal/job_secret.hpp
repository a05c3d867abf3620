#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <tessera/framework/cluster/cluster.hpp>

namespace tessera::detail {

/// What a process of a job needs where others connect to it.
struct JobAccess {
  /// What the processes of the job know and nobody else; it is proved and never sent. Empty: none.
  std::string secret = {};
  /// Whether without one it may listen beyond this host.
  bool insecure = false;
};

/// The cluster's own secret, else that of TESSERA_SECRET or the file of TESSERA_SECRET_FILE, which
/// nobody but its owner may read. TESSERA_INSECURE=1 does what Cluster::insecure does. Throws
/// ConfigError naming the variable, FileError.
JobAccess job_access(const Cluster& cluster, const EnvironmentLookup& environment = {});

/// A secret drawn at random: 64 hexadecimal digits.
std::string make_secret();

/// Throws ConfigError unless what listens at `host` is on loopback, has a secret or may do without
/// one; in the last case returns the line that says so, else nothing. `who` is what listens,
/// "rank 0", and `where` what errors name.
std::string check_access(const std::string& where, const std::string& who, const std::string& host,
                         const JobAccess& access);

/// 32 bytes that nobody can foresee, for a challenge.
std::string random_nonce();

/// What only who knows the secret can say of these texts: their HMAC-SHA256.
std::string proof_of(const std::string& secret, std::initializer_list<std::string_view> texts);

}  // namespace tessera::detail
