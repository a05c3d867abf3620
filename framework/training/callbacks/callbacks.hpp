#pragma once

#include <tessera/framework/training/callbacks/callback.hpp>
#include <tessera/framework/training/callbacks/csv_logger.hpp>
#include <tessera/framework/training/callbacks/early_stopping.hpp>
#include <tessera/framework/training/callbacks/lambda_callback.hpp>
#include <tessera/framework/training/callbacks/learning_rate_scheduler.hpp>
#include <tessera/framework/training/callbacks/occasional_weight_reader.hpp>
#include <tessera/framework/training/callbacks/progress_bar.hpp>
#include <tessera/framework/training/callbacks/reduce_lr_on_plateau.hpp>
#include <tessera/framework/training/callbacks/swap_ema_weights.hpp>
#include <tessera/framework/training/callbacks/terminate_on_nan.hpp>
