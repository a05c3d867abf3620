#include <tessera/framework/io/hdf5/handles.hpp>

namespace tessera::detail::hdf5 {

void fail(const std::string& what) {
  std::string reason;
  const auto keep = [](unsigned, const H5E_error2_t* error, void* text) -> herr_t {
    auto& first = *static_cast<std::string*>(text);
    if (first.empty() && error->desc) first = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep, &reason);
  throw Refusal(reason.empty() ? what : what + ": " + reason);
}

}  // namespace tessera::detail::hdf5
