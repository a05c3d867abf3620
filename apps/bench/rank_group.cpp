#include "apps/bench/rank_group.hpp"

#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tessera/framework/base/error.hpp>

namespace tessera::bench {

using namespace detail;

namespace {

constexpr int max_ranks = 16;

/// Memory that all ranks share.
struct Board {
  struct Text {
    size_t size;
    std::array<char, 4096> bytes;
    void write(const std::string& text) {
      size = std::min(text.size(), bytes.size());
      std::memcpy(bytes.data(), text.data(), size);
    }
    std::string read() const { return {bytes.data(), size}; }
  };
  pthread_barrier_t all;
  std::array<Text, max_ranks> texts;
  Text result;
};

Board& make_board(int ranks) {
  void* memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || ranks > max_ranks) {
    throw StateError("bench", "the ranks share a page of memory", str(ranks, " ranks"), "");
  }
  Board& board = *new (memory) Board;
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&board.all, &attributes, static_cast<unsigned>(ranks));
  return board;
}

/// Runs a forked process to its end.
[[noreturn]] void be_rank(Board& board, int ranks, int rank,
                          const std::function<std::string(int, const Gather&)>& function) {
  const Gather gather = [&](const std::string& text) {
    board.texts[static_cast<size_t>(rank)].write(text);
    pthread_barrier_wait(&board.all);
    std::vector<std::string> all;
    for (int r = 0; r < ranks; ++r) all.push_back(board.texts[static_cast<size_t>(r)].read());
    pthread_barrier_wait(&board.all);
    return all;
  };
  try {
    const std::string result = function(rank, gather);
    if (rank == 0) board.result.write(result);
    _exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    _exit(1);
  }
}

}  // namespace

std::string run_ranks(int ranks,
                      const std::function<std::string(int rank, const Gather& gather)>& function) {
  Board& board = make_board(ranks);
  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    processes.push_back(fork());
    if (processes.back() == 0) be_rank(board, ranks, rank, function);
  }
  bool failed = false;
  for (const pid_t process : processes) {
    int status = 0;
    waitpid(process, &status, 0);
    failed = failed || status != 0;
  }
  const std::string result = board.result.read();
  munmap(&board, sizeof(Board));
  if (failed) throw StateError("bench", "every rank ends well", "one failed", "");
  return result;
}

}  // namespace tessera::bench
