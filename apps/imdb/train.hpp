#pragma once

namespace tessera::imdb {

/// `imdb train`: argv[0] is skipped. Returns the exit code; throws Error.
int train_main(int argc, const char* const* argv);

}  // namespace tessera::imdb
