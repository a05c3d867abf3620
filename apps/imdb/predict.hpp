#pragma once

namespace tessera::imdb {

/// Runs `imdb predict DIR [TEXT...]`: prints label and probability of each text, or of each line of
/// standard input. Returns the exit code. Throws ConfigError, FileError.
int predict_main(int argc, const char* const* argv);

}  // namespace tessera::imdb
