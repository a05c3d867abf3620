#pragma once

#include <tessera/datasets/datasets.hpp>
#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/io/weights.hpp>
#include <tessera/framework/mesh/layout_file.hpp>
#include <tessera/framework/model/sequential.hpp>
#include <tessera/framework/nn/initializers.hpp>
#include <tessera/framework/nn/losses.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/training/batch_loader.hpp>
#include <tessera/framework/training/history.hpp>
#include <tessera/framework/training/options.hpp>
#include <tessera/layers/layers.hpp>
#include <tessera/metrics/metrics.hpp>
#include <tessera/optimizers/optimizers.hpp>
