#!/usr/bin/env bash
# The acceptance tests for a machine with a GPU: see README.md next to this file.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

payload=build/gpu_payload.tar.xz
max_mib=50
programs=(gpu_test mnist imdb bench)

say() { echo "accept: $*" >&2; }
fail() { say "$@"; exit 2; }

help() {
  cat <<TEXT
Usage: tests/gpu/accept.sh COMMAND [OPTIONS]

  pack [--preset NAME]   build gpu_test and the applications, and pack what they need besides
                         libtorch and CUDA into $payload
  run PART               on the machine with a GPU: correctness, nccl or speed
  rehearse               all parts at a small size on a CPU instead of a GPU
  table [FILE.json...]   the parts' results as one table in Markdown

Each has a --help. Exit codes: 0 if nothing failed, 1 if something did, 2 if it could not run.
TEXT
}

# Lists the libraries that programs are linked with and another system may lack: "name path". Leaves
# out those in libtorch's folder and those of every Linux with glibc.
carried_libraries() {
  ldd "${@:2}" | awk -v wheels="$1/" '
    $3 == "not" {exit 1}
    $1 ~ /^(linux-vdso|lib(c|m|dl|rt|pthread|util|resolv|stdc[+][+]|gcc_s))[.]so/ {next}
    $3 ~ /^[/]/ && index($3, wheels) != 1 {print $1, $3}' | sort -u
}

pack() {
  local preset=release data=${TESSERA_DATA:-../shared/data}
  local folder torch libraries staged program name path bytes
  cd "$here/../.."
  case ${1:-} in
    "") ;;
    -h | --help) help; exit 0 ;;
    --preset) preset=${2:?accept: --preset needs a value} ;;
    *) help; exit 2 ;;
  esac
  [[ -d $data/mnist ]] || fail "no mnist in $data. To fix: set TESSERA_DATA"
  folder=build/$preset
  ./run build --preset "$preset" "${programs[@]}"
  torch=$(sed -n 's/^TESSERA_TORCH_DIR:PATH=//p' "$folder/CMakeCache.txt")
  [[ -f $torch/version.py ]] || fail "$folder is not built with a torch wheel"
  libraries=$(carried_libraries "$(dirname "$torch")" "${programs[@]/#/$folder/bin/}") ||
    fail "ldd does not find all libraries of $folder/bin"

  staged=$(mktemp -d)
  trap "rm -rf '$staged'" EXIT
  mkdir "$staged/bin" "$staged/lib" "$staged/data"
  for program in "${programs[@]}"; do strip -o "$staged/bin/$program" "$folder/bin/$program"; done
  while read -r name path; do
    strip -o "$staged/lib/$name" "$(readlink -f "$path")"
  done <<<"$libraries"
  ${CC:-cc} -std=gnu11 -shared -fPIC -O2 -o "$staged/lib/count_cuda.so" tests/gpu/count_cuda.c -ldl
  cp -rL "$data/mnist" "$staged/data/"
  {
    echo "commit $(git describe --always --dirty --exclude '*' 2>/dev/null || echo unknown)"
    sed -n "s/^__version__ = '\(.*\)'/torch \1/p" "$torch/version.py"
  } >"$staged/origin"

  XZ_OPT="-6 -T0" tar -C "$staged" -cJf "$payload" .
  bytes=$(stat -c %s "$payload")
  ((bytes <= max_mib * 1048576)) || fail "$payload has $((bytes >> 20)) MiB, more than $max_mib"
  say "$payload: $((bytes >> 20)) MiB, $(du -sm "$staged" | cut -f1) unpacked"
}

command=${1:-help}
shift || true
case $command in
  -h | --help | help) help ;;
  pack) pack "$@" ;;
  run | rehearse | table)
    command -v python3 >/dev/null || fail "there is no python3. To fix: put Python 3 in PATH"
    exec python3 -B "$here/accept/main.py" "$command" "$@"
    ;;
  *) fail "there is no command \"$command\". To fix: write one of: pack, run, rehearse, table" ;;
esac
