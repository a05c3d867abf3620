#pragma once

#include <tessera/metrics/accuracy.hpp>
#include <tessera/metrics/auc.hpp>
#include <tessera/metrics/confusion_counts.hpp>
#include <tessera/metrics/correlation.hpp>
#include <tessera/metrics/f_score.hpp>
#include <tessera/metrics/iou.hpp>
#include <tessera/metrics/loss_metrics.hpp>
#include <tessera/metrics/mean.hpp>
#include <tessera/metrics/precision_recall.hpp>
#include <tessera/metrics/r2_score.hpp>
#include <tessera/metrics/sensitivity_specificity.hpp>

/// All metrics; those that share no name with a loss are in namespace tessera, too.
namespace tessera::metrics {

using tessera::Accuracy;
using tessera::AUC;
using tessera::BinaryAccuracy;
using tessera::BinaryIoU;
using tessera::CategoricalAccuracy;
using tessera::ConcordanceCorrelation;
using tessera::F1Score;
using tessera::FalseNegatives;
using tessera::FalsePositives;
using tessera::FBetaScore;
using tessera::IoU;
using tessera::LogCoshError;
using tessera::Mean;
using tessera::MeanIoU;
using tessera::OneHotIoU;
using tessera::OneHotMeanIoU;
using tessera::PearsonCorrelation;
using tessera::Precision;
using tessera::PrecisionAtRecall;
using tessera::R2Score;
using tessera::Recall;
using tessera::RecallAtPrecision;
using tessera::RootMeanSquaredError;
using tessera::SensitivityAtSpecificity;
using tessera::SparseCategoricalAccuracy;
using tessera::SparseTopKCategoricalAccuracy;
using tessera::SpecificityAtSensitivity;
using tessera::Sum;
using tessera::TopKCategoricalAccuracy;
using tessera::TrueNegatives;
using tessera::TruePositives;

}  // namespace tessera::metrics
