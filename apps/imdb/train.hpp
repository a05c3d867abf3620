#pragma once

namespace tessera::imdb {

/// Runs `imdb train`; argv[0] is skipped. Returns the exit code. Throws Error.
int train_main(int argc, const char* const* argv);

}  // namespace tessera::imdb
