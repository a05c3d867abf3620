#!/usr/bin/env bash
# Builds the fuzz targets and runs each for a while. Usage: fuzz.sh [--seconds 60] [TARGET...]
# Without targets: all but those that need libtorch, which take much longer to build.
# Exit code 1 on a finding, whose input is in build/fuzz/findings/.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."

fail() { echo "fuzz: $*" >&2; exit 2; }

seconds=60
targets=()
while (($#)); do
  case $1 in
    --seconds) (($# > 1)) || fail "--seconds needs a number"; seconds=$2; shift ;;
    --seconds=*) seconds=${1#*=} ;;
    -*) fail "unknown flag \"$1\". Usage: fuzz.sh [--seconds 60] [TARGET...]" ;;
    *) targets+=("$1") ;;
  esac
  shift
done
[[ $seconds =~ ^[1-9][0-9]*$ ]] || fail "--seconds must be a positive integer, not \"$seconds\""
mapfile -t known < <(cd tests/fuzz && printf '%s\n' *_fuzz.cpp | sed 's/_fuzz\.cpp$//')
with_models=(model_config)
needs_models() { [[ " ${with_models[*]} " == *" $1 "* ]]; }
if ((!${#targets[@]})); then
  for target in "${known[@]}"; do needs_models "$target" || targets+=("$target"); done
fi
for target in "${targets[@]}"; do
  [[ -f tests/fuzz/${target}_fuzz.cpp ]] ||
    fail "unknown target \"$target\". Targets: ${known[*]}"
done

command -v clang++-14 >/dev/null || fail "clang++-14 is missing: apt-get install clang-14"
folder=build/fuzz
mkdir -p "$folder/findings"

# build_targets PRESET TARGET...
build_targets() {
  local preset=$1 log=$folder/$1.log
  shift
  [[ build/$preset/build.ninja -nt CMakePresets.json ]] ||
    cmake --preset "$preset" >"$log" 2>&1 || { cat "$log" >&2; exit 2; }
  cmake --build --preset "$preset" --target "${@/%/_fuzz}" >"$log" 2>&1 ||
    { tail -n 40 "$log" >&2; exit 2; }
}

plain=() models=()
for target in "${targets[@]}"; do
  if needs_models "$target"; then models+=("$target"); else plain+=("$target"); fi
done
((!${#plain[@]})) || build_targets fuzz "${plain[@]}"
((!${#models[@]})) || build_targets fuzz-models "${models[@]}"
python3 -B tests/fuzz/make_seeds.py "$folder/seeds"

# statistic NAME LOG: a figure that libFuzzer prints at its end.
statistic() { sed -n "s/^stat::$1: *//p" "$2" | tail -n 1; }

found=0
for target in "${targets[@]}"; do
  log=$folder/$target.log
  mkdir -p "$folder/corpus/$target"
  code=0
  programs=$folder/bin megabytes=512
  # libtorch itself takes a part of the memory.
  if needs_models "$target"; then programs=build/fuzz-models/bin megabytes=2048; fi
  "$programs/${target}_fuzz" -max_total_time="$seconds" -rss_limit_mb="$megabytes" \
    -malloc_limit_mb=256 -timeout=5 \
    -max_len=16384 -dict=tests/fuzz/json.dict -print_final_stats=1 \
    -artifact_prefix="$folder/findings/$target-" \
    "$folder/corpus/$target" "$folder/seeds/$target" >"$log" 2>&1 || code=$?
  printf '%-18s %9s runs %7s /s   %s\n' "$target" \
    "$(statistic number_of_executed_units "$log")" "$(statistic average_exec_per_sec "$log")" \
    "$( ((code)) && echo "FINDING (see $log)" || echo "no findings")"
  ((code == 0)) && continue
  found=1
  tail -n 40 "$log" >&2
done
exit "$found"
