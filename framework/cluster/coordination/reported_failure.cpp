#include <tessera/framework/cluster/coordination/reported_failure.hpp>

#include <mutex>
#include <utility>

namespace tessera::detail {
namespace {

struct FailureReporter {
  std::mutex mutex;
  std::function<void(const std::string&)> report;
};

FailureReporter& failure_reporter() {
  static FailureReporter reporter;
  return reporter;
}

}  // namespace

void report_failure(const std::string& what) {
  FailureReporter& reporter = failure_reporter();
  const std::lock_guard<std::mutex> lock(reporter.mutex);
  if (reporter.report) reporter.report(what);
}

void set_failure_reporter(std::function<void(const std::string& what)> report) {
  FailureReporter& reporter = failure_reporter();
  const std::lock_guard<std::mutex> lock(reporter.mutex);
  reporter.report = std::move(report);
}

}  // namespace tessera::detail
