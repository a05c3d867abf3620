#pragma once

namespace tessera::bench {

/// `bench ops [OPTIONS]`: times every registered operation on its samples. Returns the exit code.
/// Throws ConfigError, FileError.
int bench_ops(int argc, const char* const* argv);

/// `bench step [OPTIONS]`: times a training step of an MLP on meshes of several sizes. Returns the
/// exit code. Throws ConfigError, FileError.
int bench_step(int argc, const char* const* argv);

/// `bench compare [OPTIONS]`: times our work beside that of other frameworks. Returns the exit
/// code. Throws ConfigError, FileError.
int bench_compare(int argc, const char* const* argv);

/// `bench compare-work`: our part of a comparison, a process that `bench compare` starts.
int compare_work(int argc, const char* const* argv);

/// `bench compare-nothing`: answers as compare_work() does, having done nothing.
int compare_nothing();

/// `bench text [OPTIONS]`: times TextVectorization's passes over film reviews. Returns the exit
/// code. Throws ConfigError, FileError.
int bench_text(int argc, const char* const* argv);

/// `bench data [OPTIONS]`: times DataPipeline on threads and beside training. Returns the exit
/// code. Throws ConfigError, FileError.
int bench_data(int argc, const char* const* argv);

/// `bench processes [OPTIONS]`: times a training step on several processes. Returns the exit code.
/// Throws ConfigError, FileError, CommError.
int bench_processes(int argc, const char* const* argv);

/// `bench process-steps`: a process that `bench processes` starts.
int process_steps(int argc, const char* const* argv);

/// `bench comm [OPTIONS]`: times sums over processes against Gloo's own. Returns the exit code.
/// Throws ConfigError, FileError, StateError; ConfigError in a build without Gloo.
int bench_comm(int argc, const char* const* argv);

/// `bench parameter-server [OPTIONS]`: times fit with parameter servers. Returns the exit code.
/// Throws ConfigError, FileError, StateError; ConfigError in a build without gRPC.
int bench_parameter_server(int argc, const char* const* argv);

/// `bench parameter-server-task`: a task that `bench parameter-server` starts.
int parameter_server_task(int argc, const char* const* argv);

}  // namespace tessera::bench
