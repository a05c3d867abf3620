#pragma once

#include <tessera/framework/training/callback.hpp>
#include <tessera/framework/training/csv_logger.hpp>
#include <tessera/framework/training/early_stopping.hpp>
#include <tessera/framework/training/lambda_callback.hpp>
#include <tessera/framework/training/learning_rate_scheduler.hpp>
#include <tessera/framework/training/reduce_lr_on_plateau.hpp>
#include <tessera/framework/training/swap_ema_weights.hpp>
#include <tessera/framework/training/terminate_on_nan.hpp>
