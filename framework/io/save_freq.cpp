#include <tessera/framework/io/save_freq.hpp>

#include <string>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

using namespace detail;

SaveFreq::SaveFreq(const char* freq) {
  if (freq == std::string("epoch")) return;
  throw ConfigError("save_freq", "must be \"epoch\" or a number of batches", in_quotes(freq),
                    "pass one of them");
}

SaveFreq::SaveFreq(int batches) : batches_(batches) {
  if (batches > 0) return;
  throw ConfigError("save_freq", "must be \"epoch\" or a positive number of batches", str(batches),
                    "pass 1 to save after every batch");
}

}  // namespace tessera
