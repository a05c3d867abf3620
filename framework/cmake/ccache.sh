#!/bin/sh
# Runs ccache (the first argument) on a compiler command. A precompiled header has 390 MB: it is hashed
# once, into a file next to it, and not for every source that uses it.
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1
"$@" || exit
while [ $# -gt 1 ]; do
  case "$1 $2" in
    "-o "*.gch) sha256sum "$2" >"$2.sum" ;;
  esac
  shift
done
