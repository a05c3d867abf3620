#pragma once

namespace tessera::bench {

/// `bench ops [OPTIONS]`: times every registered operation on its samples. Returns the exit code.
/// Throws ConfigError, FileError.
int bench_ops(int argc, const char* const* argv);

/// `bench step [OPTIONS]`: times a training step of an MLP on meshes of several sizes. Returns the
/// exit code. Throws ConfigError, FileError.
int bench_step(int argc, const char* const* argv);

/// `bench text [OPTIONS]`: times TextVectorization's passes over film reviews. Returns the exit
/// code. Throws ConfigError, FileError.
int bench_text(int argc, const char* const* argv);

}  // namespace tessera::bench
