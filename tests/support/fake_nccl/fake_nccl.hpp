#pragma once

#include <cstdint>

namespace tessera::test::fake_nccl {

/// A libnccl.so.2 for fake GPUs: ranks are threads of a process or processes of a machine, which
/// exchange files in the folder for temporary ones. Communicators that do not block are in progress
/// for a few questions, after which what a group asked for is put on its stream.

/// Lets a rank's communicators fail at a group of operations, counted from 0 over all of them from
/// here on: it never ends, and the state of its communicator tells of an error. -1: none does.
/// TESSERA_FAKE_NCCL_FAILS=rank:group does so from the start of a process.
void fail_at(int rank, int64_t group);

/// Communicators of this process that were made and not aborted.
int alive();

}  // namespace tessera::test::fake_nccl
