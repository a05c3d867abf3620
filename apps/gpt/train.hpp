#pragma once

namespace tessera::gpt {

/// Runs `gpt train`; returns the exit code.
int train_main(int argc, const char* const* argv);
/// Runs `gpt generate FOLDER [TEXT...]`; returns the exit code.
int generate_main(int argc, const char* const* argv);
/// Runs `gpt serve FOLDER`; returns the exit code.
int serve_main(int argc, const char* const* argv);

}  // namespace tessera::gpt
