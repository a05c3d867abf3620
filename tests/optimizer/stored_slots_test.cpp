#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include <ATen/ATen.h>

#include <tessera/framework/io/internal/checkpoint_snapshot.hpp>
#include <tessera/framework/optimizer/internal/stored_slots.hpp>
#include <tessera/framework/tensor/internal/stored_value.hpp>
#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process_memory.hpp"
#include "tests/support/program.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/small_model.hpp"

namespace stored_slots_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

LayoutMap on_disk(LayoutMap layouts, const std::string& folder) {
  layouts.set_memory({.slots = "disk:" + folder});
  return layouts;
}

std::vector<LayoutMap> layout_maps() {
  return {small_layouts("data", create_mesh({{"batch", 4}})),
          small_layouts("fsdp", create_mesh({{"batch", 2}})),
          small_layouts("model", create_mesh({{"batch", 2}, {"model", 2}}))};
}

Sequential compiled(const OptimizerHandle& optimizer, const LayoutMap& layouts) {
  const Sequential model = small_model();
  CompileOptions compile = small_compile(layouts);
  compile.optimizer = optimizer;
  model.compile(compile);
  model.build({4, 18});
  return model;
}

void fit(const Sequential& model, int64_t epochs = 2) {
  model.fit(small_data(32), {.batch_size = 8, .epochs = epochs, .verbose = 0, .shuffle = false});
}

bool all_stored(const Sequential& model) {
  bool all = true;
  for (const Variable& owned : model->optimizer()->variables()) {
    all = all && (!StoredSlots::rests(owned) || StoredValue::of(owned.value()));
  }
  return all;
}

/// Returns weights and slots, in full.
std::vector<at::Tensor> everything(const Sequential& model) {
  std::vector<at::Tensor> all = full_weights(model);
  for (const Variable& owned : model->optimizer()->variables()) {
    all.push_back(owned.value().full().clone());
  }
  return all;
}

bool equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return at::equal(x, y); });
}

/// Returns the descriptors of open files that were in a folder.
std::vector<int> files_of(const std::string& folder) {
  std::vector<int> files;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string path = std::filesystem::read_symlink(entry.path(), gone).string();
    if (!gone && path.starts_with(folder + "/"))
      files.push_back(std::stoi(entry.path().filename()));
  }
  return files;
}

/// Returns the file's pages in the page cache.
int64_t cached_pages(int file) {
  struct stat info {};
  ::fstat(file, &info);
  if (info.st_size == 0) return 0;
  const auto bytes = static_cast<size_t>(info.st_size);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  std::vector<unsigned char> present((bytes + 4095) / 4096);
  ::mincore(memory, bytes, present.data());
  ::munmap(memory, bytes);
  return std::count_if(present.begin(), present.end(), [](unsigned char p) { return p & 1; });
}

/// Momentum of 8 rates: 8 slots for each weight.
class EightMomenta final : public Optimizer {
 public:
  EightMomenta() : Optimizer("EightMomenta", 0.01, {}) {}

 private:
  std::vector<SlotSpec> slot_specs(const Variable&) const override {
    std::vector<SlotSpec> specs;
    for (int i = 0; i < 8; ++i) specs.push_back({str("momentum_", i)});
    return specs;
  }
  void update(const UpdateArgs& args) const override {
    for (size_t i = 0; i < args.slots.size(); ++i) {
      args.slots[i].mul_(0.1 * double(i)).add_(args.gradient);
      args.weight.sub_(args.slots[i], args.learning_rate / 8);
    }
  }
};

}  // namespace

TEST_CASE("slots on disk train with the same bits") {
  const TempFolder folder;
  const std::string where = (folder / "slots").string();
  for (const LayoutMap& layouts : layout_maps()) {
    CAPTURE(layouts.mesh().describe());
    const std::vector<std::function<OptimizerHandle()>> optimizers = {
        [] { return Adam(1e-2, {.global_clipnorm = 0.3, .use_ema = true}); },
        [] { return SGD(0.1, {.momentum = 0.9, .weight_decay = 0.01}); },
        [] { return Adagrad(0.1); },
        [] { return Adafactor(0.1); },
        [] { return Lamb(0.01); },
        [] { return Adam(1e-2, {.gradient_accumulation_steps = 2}); },
        [] { return OptimizerHandle(std::make_shared<EightMomenta>()); }};
    for (const auto& make : optimizers) {
      const OptimizerHandle optimizer = make();
      CAPTURE(optimizer->class_name());
      const Sequential in_memory = compiled(make(), layouts);
      const Sequential stored = compiled(optimizer, on_disk(layouts, where));
      fit(in_memory);
      fit(stored);
      CHECK(all_stored(stored));
      CHECK_FALSE(files_of(where).empty());
      CHECK(std::filesystem::is_empty(where));
      CHECK(equal(everything(stored), everything(in_memory)));
      // Reading them has brought the slots into memory; the next update puts them away.
      fit(in_memory, 1);
      fit(stored, 1);
      CHECK(all_stored(stored));
      CHECK(equal(everything(stored), everything(in_memory)));
    }
  }
  CHECK(files_of(where).empty());
}

TEST_CASE("slots of kernels in another order of memory rest on disk") {
  const TempFolder folder;
  const auto trained = [&](bool stored) {
    LayoutMap layouts(create_mesh({{"batch", 2}}));
    if (stored) layouts.set_memory({.slots = "disk:" + folder.path().string()});
    const Sequential model({Conv2D(4, 3, {.name = "first"}), Conv2D(3, 3, {.name = "second"}),
                            Flatten(), Dense(2, {.name = "head"})});
    model.compile({.optimizer = Adam(1e-2), .loss = MeanSquaredError(), .layouts = layouts});
    const at::Tensor x = at::arange(8 * 8 * 8 * 3, at::kFloat).sin().view({8, 8, 8, 3});
    model.fit(x, x.flatten(1).narrow(1, 0, 2),
              {.batch_size = 4, .epochs = 3, .verbose = 0, .shuffle = false});
    return everything(model);
  };
  CHECK(equal(trained(true), trained(false)));
}

TEST_CASE("checkpoints hold stored slots as they were, and any model reads them") {
  const TempFolder folder;
  const std::string where = (folder / "slots").string(), saved = (folder / "saved").string();
  for (const LayoutMap& layouts : layout_maps()) {
    CAPTURE(layouts.mesh().describe());
    const Sequential stored = compiled(Adam(1e-2), on_disk(layouts, where));
    fit(stored);
    CheckpointParts parts;
    parts.model = &stored.model();
    const CheckpointSnapshot snapshot(parts, nullptr);
    // Goes on before the snapshot is written.
    fit(stored);
    snapshot.write(saved);
    CHECK(all_stored(stored));
    const Sequential expected = compiled(Adam(1e-2), layouts);
    fit(expected);
    for (const bool on_disk_again : {false, true}) {
      const Sequential restored =
          compiled(Adam(1e-2), on_disk_again ? on_disk(layouts, where) : layouts);
      Checkpoint(restored).restore(saved);
      CHECK(all_stored(restored));
      CHECK(equal(everything(restored), everything(expected)));
    }
    // Training goes on from the slots that replaced those of the snapshot.
    fit(expected);
    CHECK(equal(everything(stored), everything(expected)));
  }
}

TEST_CASE("a handle keeps the elements that a stored slot had") {
  const TempFolder folder;
  const Sequential model = compiled(Adam(1e-2), on_disk(layout_maps()[0], folder.path().string()));
  fit(model);
  const Variable slot = model->optimizer()->variables()[0];
  const DTensor unread = slot.value();
  const Sequential same = compiled(Adam(1e-2), layout_maps()[0]);
  fit(same);
  const at::Tensor expected = same->optimizer()->variables()[0].value().full().clone();
  fit(model);
  CHECK(at::equal(unread.full(), expected));
  CHECK_FALSE(at::equal(slot.value().full(), expected));
}

TEST_CASE("slots on disk do not stay in the page cache") {
  // Not on a file system in memory, whose files are their pages.
  const std::string where = std::filesystem::current_path() / "stored_slots_test";
  const Sequential model = compiled(Adam(1e-2), on_disk(layout_maps()[0], where));
  fit(model);
  const std::vector<int> files = files_of(where);
  CHECK(files.size() == 2 * 6);
  for (const int file : files) CHECK(cached_pages(file) == 0);
  std::filesystem::remove(where);
}

TEST_CASE("where slots cannot rest, the error names the folder and the reason") {
  const TempFolder folder;
  write_file(folder / "file", "");
  const std::string where = (folder / "file" / "slots").string();
  const Sequential model = compiled(Adam(1e-2), on_disk(layout_maps()[0], where));
  CHECK_THROWS_WITH(
      fit(model), Contains("[" + where + "]") && Contains("Not a directory") && Contains("To fix"));
  CHECK(model->optimizer()->iterations() == 0);
}

// Hidden: run as a separate program, whose small disk ends with it.
TEST_CASE("training with slots on a full disk", "[.slots_on_full_disk]") {
  const std::string root = std::getenv("TESSERA_SLOTS");
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", root.c_str(), "tmpfs", 0, "size=64k") != 0) {
    return skip("this process may not mount a small disk");
  }
  const Sequential model({Dense(500, {.name = "wide"}), Dense(5, {.name = "logits"})});
  LayoutMap layouts(create_mesh({{"batch", 1}}));
  layouts.set_memory({.slots = "disk:" + root});
  model.compile({.optimizer = Adam(1e-2), .loss = MeanSquaredError(), .layouts = layouts});
  CHECK_THROWS_WITH(model.fit(at::ones({4, 18}), at::ones({4, 5}), {.verbose = 0}),
                    Contains("[" + root + "]") && Contains("No space left on device"));
}

TEST_CASE("a full disk is named") {
  const TempFolder folder;
  const ProgramRun run =
      run_program(std::filesystem::read_symlink("/proc/self/exe"), {"[.slots_on_full_disk]"},
                  {{"TESSERA_SLOTS", folder.path().string()}});
  CAPTURE(run.out, run.err);
  CHECK(run.exit_code == 0);
}

// Hidden: run as a separate program, which limits its memory.
TEST_CASE("training with slots of four times the rest", "[.slots_under_limit]") {
  const bool stored = std::getenv("TESSERA_SLOTS") != nullptr;
  constexpr int64_t width = 1024, layers = 24;
  std::vector<LayerHandle> stack;
  for (int64_t i = 0; i < layers; ++i) stack.push_back(Dense(width, {.name = str("dense_", i)}));
  const Sequential model(stack);
  LayoutMap layouts(create_mesh({{"batch", 1}}));
  if (stored) layouts.set_memory({.slots = str("disk:", std::getenv("TESSERA_SLOTS"))});
  model.compile({.optimizer = OptimizerHandle(std::make_shared<EightMomenta>()),
                 .loss = MeanSquaredError(),
                 .layouts = layouts});
  model.build({8, width});
  const int64_t before = anonymous_bytes();
  constexpr int64_t weights = layers * (width + 1) * width * 4, staging = 8 * width * width * 4;
  constexpr int64_t limit = 2 * weights + 2 * staging + 50 * (int64_t{1} << 20);
  // Limits reserved memory, with the threads' stacks of 8 MB, most of which are never used.
  const auto most =
      rlim_t(number_in_proc("status", "VmData:") * 1024 + limit + 64 * (int64_t{1} << 20));
  const rlimit data{most, most};
  REQUIRE(::setrlimit(RLIMIT_DATA, &data) == 0);
  AnonymousPeak peak;
  const auto fit = [&] {
    model.fit(at::ones({8, width}), at::ones({8, width}), {.epochs = 3, .verbose = 0});
  };
  if (!stored) {
    CHECK_THROWS_WITH(fit(), Contains("out of memory"));
    return;
  }
  fit();
  const std::string checkpoint = str(std::getenv("TESSERA_SLOTS"), "/saved");
  Checkpoint(model).save(checkpoint);
  Checkpoint(model).restore(checkpoint);
  fit();
  const int64_t used = peak.end() - before;
  CAPTURE(used, limit);
  CHECK(used <= limit);
}

TEST_CASE("slots on disk train in memory that lacks them") {
  const TempFolder folder;
  for (const bool stored : {true, false}) {
    std::vector<std::pair<std::string, std::string>> environment = {
        // The C library gives back what is freed, so that what it keeps for later does not count.
        {"MALLOC_MMAP_THRESHOLD_", "1000000"},
        {"OMP_NUM_THREADS", "1"}};
    if (stored) environment.emplace_back("TESSERA_SLOTS", folder.path().string());
    const ProgramRun run = run_program(std::filesystem::read_symlink("/proc/self/exe"),
                                       {"[.slots_under_limit]"}, environment);
    CAPTURE(stored, run.out, run.err);
    CHECK(run.exit_code == 0);
  }
}

TEST_CASE("a plan counts what an update has of stored slots in memory") {
  const LayoutMap layouts = layout_maps()[0];
  const auto plan = [&](const LayoutMap& map) {
    return compiled(Adam(1e-2), map).plan(small_data(8), {.batch_size = 8});
  };
  const StepPlan in_memory = plan(layouts), stored = plan(on_disk(layouts, "/nowhere"));
  const double largest = 2 * 8 * 18 * 14;
  CHECK(stored.peaks[0].slots == 2 * largest);
  CHECK(in_memory.peaks[0].slots == 2 * in_memory.peaks[0].weights);
  for (const StepPlan::Row& row : stored.layers) CHECK(row.slots[0] == 0);
}

}  // namespace stored_slots_test
