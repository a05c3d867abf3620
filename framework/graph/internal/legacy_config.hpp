#pragma once

#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// A model's configuration as Keras writes it today: one of Keras 2, or of Keras 3's ".h5" files,
/// is translated, all else stays as it is. A "keras_version" beside "class_name" says which
/// defaults its layers had. Throws ConfigError naming the layer for what has no form today.
Json todays_config(Json serialized, const JsonPath& path);

/// "compile_config" as Keras writes it today, of the "training_config" of such a file. Throws
/// ConfigError naming the place.
Json todays_compile_config(Json training, const JsonPath& path);

}  // namespace tessera::detail
