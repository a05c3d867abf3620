#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tessera::test {

/// Arguments of a test program, as name=value.
class Arguments {
 public:
  Arguments(int argc, char** argv);
  std::string text(const std::string& name, const std::string& otherwise = "") const;
  int64_t number(const std::string& name, int64_t otherwise) const;

 private:
  std::map<std::string, std::string> values_;
};

/// A fault planted in one process: fault=kill|stop|throw|exit|hang, at=PHASE, step=S.
struct Fault {
  std::string kind, phase;
  int64_t step = 0;
  bool here = false;
  /// Microseconds by which a kill comes later, wherever the process then is: at the latest in the
  /// same phase of the next step.
  int64_t delay = 0;

  void at(const std::string& now, int64_t number) const;
};

}  // namespace tessera::test
