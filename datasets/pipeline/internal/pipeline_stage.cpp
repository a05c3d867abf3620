#include <tessera/datasets/pipeline/internal/pipeline_stage.hpp>

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

/// Elements in each interval of for_each_interval().
constexpr int64_t interval_size = 32;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

PipelineStage::PipelineStage(std::string kind, std::vector<PipelineStagePtr> before)
    : kind_(std::move(kind)), before_(std::move(before)) {
  for (const PipelineStagePtr& stage : before_)
    position_ = std::max(position_, stage->position_ + 1);
}

int64_t PipelineStage::threads() const {
  int64_t largest = 1;
  for (const PipelineStagePtr& stage : before_) largest = std::max(largest, stage->threads());
  return largest;
}

int64_t PipelineStage::ahead() const {
  int64_t largest = 0;
  for (const PipelineStagePtr& stage : before_) largest = std::max(largest, stage->ahead());
  return largest;
}

std::vector<Shape> PipelineStage::first_input_shapes() const {
  const std::lock_guard lock(mutex_);
  if (input_shapes_) return *input_shapes_;
  const std::shared_ptr<const PipelineElements> all = open({});
  const int64_t first[] = {0};
  const auto elements = all->size() == 0 ? std::vector<Examples>() : all->get(first);
  if (elements.empty()) {
    throw ConfigError(where(), "there are elements", "none",
                      "check the data and the stages before");
  }
  std::vector<Shape> shapes;
  for (const at::Tensor& x : elements[0].x) {
    shapes.emplace_back(x.sizes().begin() + (batched() ? 1 : 0), x.sizes().end());
  }
  input_shapes_ = shapes;
  return shapes;
}

std::string PipelineStage::text() const {
  std::string all;
  for (const PipelineStagePtr& stage : before_) all += stage->text() + ", ";
  if (before_.size() > 1) all = "(" + all + ")";
  return all + kind_ + arguments();
}

std::string PipelineStage::where() const {
  return position_ == 0 ? data_name() : str(data_name(), ", ", kind_, " at stage ", position_);
}

std::string PipelineStage::where(int64_t number) const {
  return str(where(), batched() ? ", batch " : ", row ", number);
}

void PipelineStage::check_any_order() const {
  for (const PipelineStagePtr& stage : before_) {
    if (!stage->is_stream()) continue;
    throw ConfigError(where(), "any element can be read", "a stream of batches",
                      "pass tensors or a Dataset");
  }
}

void PipelineStage::check_has_end() const {
  check_any_order();
  if (before().count() != no_end) return;
  throw ConfigError(where(), "the elements have an end", "repeat() without a count",
                    "put it after this stage");
}

void PipelineStage::check_rows() const {
  check_any_order();
  if (!before().batched()) return;
  throw ConfigError(where(), "the elements are rows", "batches", "batch only once");
}

void for_each_interval(int64_t size, int64_t threads,
                       const std::function<void(std::span<const int64_t>)>& visit) {
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  int64_t error_begin = no_end;
  const auto work = [&] {
    for (int64_t begin = 0; (begin = next.fetch_add(interval_size)) < size;) {
      try {
        std::vector<int64_t> numbers;
        for (int64_t i = begin; i < std::min(begin + interval_size, size); ++i) {
          numbers.push_back(i);
        }
        visit(numbers);
      } catch (...) {
        // Take no further intervals; those begun before this one are still finished.
        next = size;
        const std::lock_guard lock(mutex);
        if (begin < error_begin) error = std::current_exception();
        error_begin = std::min(begin, error_begin);
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (int64_t i = 1; i < std::min(threads, (size + interval_size - 1) / interval_size); ++i) {
      others.emplace_back([&work] {
        use_one_aten_thread();
        work();
      });
    }
    work();
  }
  if (error) std::rethrow_exception(error);
}

void use_one_aten_thread() {
  // The first call makes ATen initialize this thread's count, which the second then overrides.
  at::get_num_threads();
  omp_set_num_threads(1);
}

void rethrow_in_stage(const std::string& where) {
  try {
    throw;
  } catch (const FileError& error) {
    const std::string line = error.what();
    throw FileError(line.starts_with('[') ? str("[", where, ", ", line.substr(1)) : line);
  } catch (const Error&) {
    rethrow_at(where);
  } catch (const c10::Error& error) {
    throw Error(where, "the function makes an element", first_line(error.what_without_backtrace()),
                "look at what it is given");
  } catch (const std::exception& error) {
    throw Error(where, "the function makes an element", first_line(error.what()),
                "look at what it is given");
  }
}

void check_at_least(const std::string& where, const std::string& option, int64_t value,
                    int64_t least) {
  if (value >= least) return;
  throw ConfigError(where, str(option, " is at least ", least), str(value), "pass more");
}

}  // namespace tessera::detail
