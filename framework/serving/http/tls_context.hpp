#pragma once

#include <memory>
#include <string>

#include <boost/asio/ssl/context.hpp>

namespace tessera::detail {

/// What connections of a server are encrypted with, by TLS 1.2 or newer: the chain of certificates
/// and the key of two PEM files; null for two empty paths. Throws FileError for a file that cannot
/// be read, ConfigError for what is none of that, a key of another certificate, or one of both
/// alone.
std::shared_ptr<boost::asio::ssl::context> make_tls_context(const std::string& certificate,
                                                            const std::string& key);

}  // namespace tessera::detail
