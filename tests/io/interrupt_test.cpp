#include <tessera/tessera.hpp>

#include <csignal>
#include <memory>

#include <tessera/framework/base/internal/file.hpp>

#include "tests/io/resumable.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/checkpoint_model.hpp"
#include "tests/support/files.hpp"
#include "tests/support/thread_communicator.hpp"

namespace interrupt_test {

using namespace tessera;
using namespace tessera::detail;
using test::differs;
using test::dropout_model;
using test::Everything;
using test::optimizer_named;
using test::Run;
using test::some_layouts;
using test::train;
using test::with_everything;

namespace {

/// Stops a run after `steps` steps like a signal.
class Signal final : public Callback {
 public:
  Signal(const CallbackHandle& told, int64_t steps, const std::string& saved)
      : told_(told), left_(steps), saved_(saved) {}
  void on_train_batch_end(int64_t, const Logs&) override {
    if (--left_ != 0) return;
    told_->on_interrupt();
    test::expect(exists(saved_), "nothing is on disk yet");
    throw Interrupted(SIGTERM, "fit", "SIGTERM", "start it again");
  }

 private:
  CallbackHandle told_;
  int64_t left_;
  std::string saved_;
};

}  // namespace

TEST_CASE("a signal in the middle of an epoch ends the run with a backup at once") {
  const Json optimizer = with_everything(optimizer_named("adam"));
  const ModelHandle uninterrupted = dropout_model(optimizer, some_layouts());
  const Run expected = train(uninterrupted, {});
  for (const bool asynchronous : {false, true}) {
    const test::TempFolder folder;
    const BackupAndRestore backup(folder / "backup", {.asynchronous = asynchronous});
    const ModelHandle first = dropout_model(optimizer, some_layouts());
    const auto signal =
        std::make_shared<Signal>(backup, 13, folder / "backup/step-000013/index.json");
    CHECK_THROWS_AS(train(first, {backup, signal}), Interrupted);
    const ModelHandle second = dropout_model(optimizer, some_layouts());
    const Run resumed = train(second, {BackupAndRestore(folder / "backup")});
    CHECK(resumed.steps == 8);
    CHECK(differs(expected, resumed) == "");
    CHECK(Everything(second).difference(Everything(uninterrupted)) == "");
  }
}

}  // namespace interrupt_test
