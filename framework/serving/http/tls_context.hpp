#pragma once

#include <memory>
#include <string>

#include <boost/asio/ssl/context.hpp>

namespace tessera::detail {

/// Makes a server's context for TLS 1.2 or newer from two PEM files, the certificate chain and the
/// key; null if both paths are empty. Throws FileError for a file that cannot be read, ConfigError
/// for an invalid file, a key that does not match the certificate, or only one of the two.
std::shared_ptr<boost::asio::ssl::context> make_tls_context(const std::string& certificate,
                                                            const std::string& key);

}  // namespace tessera::detail
