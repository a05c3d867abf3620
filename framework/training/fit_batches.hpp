#pragma once

#include <tessera/framework/model/model.hpp>
#include <tessera/framework/training/batch_loader.hpp>
#include <tessera/framework/training/options.hpp>

namespace tessera {

/// How fit reads the batches of an epoch from `position` on, and those of its validation.
BatchLoaderOptions training_batches(const FitOptions& options, const FitPosition& position = {},
                                    const LayoutMap& layouts = {});
BatchLoaderOptions validation_batches(const FitOptions& options, const LayoutMap& layouts = {});

}  // namespace tessera
