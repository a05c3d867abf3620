#pragma once

#include <tessera/framework/strategy/central_storage.hpp>
#include <tessera/framework/strategy/cluster_resolver.hpp>
#include <tessera/framework/strategy/distributed_dataset.hpp>
#include <tessera/framework/strategy/internal/devices.hpp>
#include <tessera/framework/strategy/make_strategy.hpp>
#include <tessera/framework/strategy/mirrored_strategy.hpp>
#include <tessera/framework/strategy/multi_worker_mirrored_strategy.hpp>
#include <tessera/framework/strategy/one_device_strategy.hpp>
#include <tessera/framework/strategy/sidecar_evaluator.hpp>
#include <tessera/framework/strategy/strategy.hpp>
#include <tessera/framework/strategy/tpu_strategy.hpp>
