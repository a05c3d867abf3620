#pragma once

#include <cstdint>

namespace tessera::test::fake_nccl {

/// A libnccl.so.2 for fake GPUs. Ranks are threads of a process or processes of a machine, which
/// exchange files in the temporary folder. Non-blocking communicators are in progress for a few
/// queries, after which a group's operations are queued on its stream.

/// Makes a rank's communicators fail at a group of operations, counted from 0 from now on over all
/// of them: the group never ends, and its communicator's state is an error. -1: none fails.
/// TESSERA_FAKE_NCCL_FAILS=rank:group does so from the start of a process.
void fail_at(int rank, int64_t group);

/// Returns the number of communicators of this process that were created and not aborted.
int alive();

}  // namespace tessera::test::fake_nccl
