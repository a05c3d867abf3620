#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/losses/loss_fields.hpp>

namespace tessera {
namespace {

template <class Made, class Options>
LossHandle made(const JsonObject& options) {
  return Made(options_from<Options>(options));
}

const Factories<LossHandle, JsonObject>& factories() {
  static const Factories<LossHandle, JsonObject> all = {
      {"bce", made<BinaryCrossentropy, BinaryCrossentropyOptions>},
      {"binary_crossentropy", made<BinaryCrossentropy, BinaryCrossentropyOptions>},
      {"binary_focal_crossentropy",
       made<BinaryFocalCrossentropy, BinaryFocalCrossentropyOptions>},
      {"categorical_crossentropy", made<CategoricalCrossentropy, CategoricalCrossentropyOptions>},
      {"categorical_focal_crossentropy",
       made<CategoricalFocalCrossentropy, CategoricalFocalCrossentropyOptions>},
      {"categorical_generalized_cross_entropy",
       made<CategoricalGeneralizedCrossEntropy, CategoricalGeneralizedCrossEntropyOptions>},
      {"categorical_hinge", made<CategoricalHinge, LossOptions>},
      {"circle", made<Circle, CircleOptions>},
      {"cosine_similarity", made<CosineSimilarity, CosineSimilarityOptions>},
      {"ctc", made<CTC, LossOptions>},
      {"dice", made<Dice, DiceOptions>},
      {"hinge", made<Hinge, LossOptions>},
      {"huber", made<Huber, HuberOptions>},
      {"kl_divergence", made<KLDivergence, LossOptions>},
      {"kld", made<KLDivergence, LossOptions>},
      {"log_cosh", made<LogCosh, LossOptions>},
      {"mae", made<MeanAbsoluteError, LossOptions>},
      {"mape", made<MeanAbsolutePercentageError, LossOptions>},
      {"mean_absolute_error", made<MeanAbsoluteError, LossOptions>},
      {"mean_absolute_percentage_error", made<MeanAbsolutePercentageError, LossOptions>},
      {"mean_squared_error", made<MeanSquaredError, LossOptions>},
      {"mean_squared_logarithmic_error", made<MeanSquaredLogarithmicError, LossOptions>},
      {"mse", made<MeanSquaredError, LossOptions>},
      {"msle", made<MeanSquaredLogarithmicError, LossOptions>},
      {"poisson", made<Poisson, LossOptions>},
      {"sparse_categorical_crossentropy",
       made<SparseCategoricalCrossentropy, SparseCategoricalCrossentropyOptions>},
      {"squared_hinge", made<SquaredHinge, LossOptions>},
      {"tversky", made<Tversky, TverskyOptions>},
  };
  return all;
}

}  // namespace

LossHandle make_loss(const std::string& name, const JsonObject& options) {
  return make_by_name("loss", factories(), name, options);
}

LossHandle make_loss(const std::string& name) {
  const Json defaults = Json::object();
  return make_loss(name, JsonObject(defaults, JsonPath("loss")));
}

LossHandle loss_from_config(const Json& json, const std::string& where) {
  if (json.is_string()) return make_loss(json.get<std::string>());
  const auto [name, options] = read_serialized(json, JsonPath(where));
  return make_loss(name, options);
}

std::vector<std::string> loss_names() { return names_in(factories()); }

LossHandle::LossHandle(const char* name) : LossHandle(make_loss(name)) {}

}  // namespace tessera
