#include "tests/support/rank_ends.hpp"

#include <tessera/framework/base/error.hpp>

#include "tests/support/thread_communicator.hpp"

namespace tessera::test {

using namespace detail;

std::vector<RankOutcome> rank_outcomes(
    int ranks, const std::function<void(int rank, const Mesh& mesh)>& work) {
  std::vector<RankOutcome> all(static_cast<size_t>(ranks));
  run_ranks(ranks, [&](int rank, const std::shared_ptr<Communicator>& communicator) {
    const Mesh mesh = rank_mesh({{"batch", 4}}, communicator);
    RankOutcome& end = all[static_cast<size_t>(rank)];
    try {
      work(rank, mesh);
    } catch (const Error& error) {
      end.error = error.what();
    }
    const RankNotes& notes = notes_of(mesh);
    end.noted = notes.failure;
    end.steps = notes.steps;
    end.calls = notes.calls;
  });
  return all;
}

}  // namespace tessera::test
