#pragma once

namespace tessera::imdb {

/// Runs `imdb serve DIR --port N`: answers predict requests over HTTP until SIGTERM or SIGINT.
/// Returns the exit code. Throws ConfigError, FileError.
int serve_main(int argc, const char* const* argv);

}  // namespace tessera::imdb
