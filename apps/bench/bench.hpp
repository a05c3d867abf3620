#pragma once

namespace tessera::bench {

/// Runs `bench ops [OPTIONS]`: times every registered operation on its samples. Returns the exit
/// code. Throws ConfigError, FileError.
int bench_ops(int argc, const char* const* argv);

/// Runs `bench step [OPTIONS]`: times a training step of an MLP on meshes of several sizes. Returns
/// the exit code. Throws ConfigError, FileError.
int bench_step(int argc, const char* const* argv);

/// Runs `bench compare [OPTIONS]`: compares Tessera's times with those of other frameworks. Returns
/// the exit code. Throws ConfigError, FileError.
int bench_compare(int argc, const char* const* argv);

/// Runs `bench compare-work`: Tessera's part of a comparison, a process that `bench compare`
/// starts.
int compare_work(int argc, const char* const* argv);

/// Runs `bench compare-nothing`: answers like compare_work(), without doing any work.
int compare_nothing();

/// Runs `bench text [OPTIONS]`: times TextVectorization's passes over film reviews. Returns the
/// exit code. Throws ConfigError, FileError.
int bench_text(int argc, const char* const* argv);

/// Runs `bench data [OPTIONS]`: times DataPipeline on threads, and how long training waits for it.
/// Returns the exit code. Throws ConfigError, FileError.
int bench_data(int argc, const char* const* argv);

/// Runs `bench generate [OPTIONS]`: times the tokens of generated texts. Returns the exit code.
/// Throws ConfigError, FileError.
int bench_generate(int argc, const char* const* argv);

/// Runs `bench processes [OPTIONS]`: times a training step on several processes. Returns the exit
/// code. Throws ConfigError, FileError, CommError.
int bench_processes(int argc, const char* const* argv);

/// Runs `bench process-steps`: a process that `bench processes` starts.
int process_steps(int argc, const char* const* argv);

/// Runs `bench comm [OPTIONS]`: compares the times of all-reduces over processes with Gloo's own.
/// Returns the exit code. Throws ConfigError, also in a build without Gloo, FileError, StateError.
int bench_comm(int argc, const char* const* argv);

/// Runs `bench parameter-server [OPTIONS]`: times fit with parameter servers. Returns the exit
/// code. Throws ConfigError, also in a build without gRPC, FileError, StateError.
int bench_parameter_server(int argc, const char* const* argv);

/// Runs `bench parameter-server-task`: a task that `bench parameter-server` starts.
int parameter_server_task(int argc, const char* const* argv);

}  // namespace tessera::bench
