#pragma once

namespace tessera::gpt {

/// `gpt train`: gives the program's exit code.
int train_main(int argc, const char* const* argv);
/// `gpt generate FOLDER [TEXT...]`.
int generate_main(int argc, const char* const* argv);
/// `gpt serve FOLDER`.
int serve_main(int argc, const char* const* argv);

}  // namespace tessera::gpt
