#!/usr/bin/env bash
# Builds the fuzz targets and runs each for a while. Usage: fuzz.sh [--seconds 60] [TARGET...]
# Exit code 1 on a finding, whose input lies in build/fuzz/findings/.
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
[[ $seconds =~ ^[1-9][0-9]*$ ]] || fail "--seconds is a whole number of seconds, not \"$seconds\""
mapfile -t known < <(cd tests/fuzz && printf '%s\n' *_fuzz.cpp | sed 's/_fuzz\.cpp$//')
((${#targets[@]})) || targets=("${known[@]}")
for target in "${targets[@]}"; do
  [[ -f tests/fuzz/${target}_fuzz.cpp ]] ||
    fail "unknown target \"$target\". Targets: ${known[*]}"
done

command -v clang++-14 >/dev/null || fail "clang++-14 is missing: apt-get install clang-14"
folder=build/fuzz
mkdir -p "$folder/findings"
[[ $folder/build.ninja -nt CMakePresets.json ]] ||
  cmake --preset fuzz >"$folder/configure.log" 2>&1 || { cat "$folder/configure.log" >&2; exit 2; }
cmake --build --preset fuzz --target "${targets[@]/%/_fuzz}" >"$folder/build.log" 2>&1 ||
  { tail -n 40 "$folder/build.log" >&2; exit 2; }
python3 -B tests/fuzz/make_seeds.py "$folder/seeds"

# statistic NAME LOG: a figure that libFuzzer prints at its end.
statistic() { sed -n "s/^stat::$1: *//p" "$2" | tail -n 1; }

found=0
for target in "${targets[@]}"; do
  log=$folder/$target.log
  mkdir -p "$folder/corpus/$target"
  code=0
  "$folder/bin/${target}_fuzz" -max_total_time="$seconds" -rss_limit_mb=512 -timeout=5 \
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
