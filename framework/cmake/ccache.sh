#!/bin/sh
# Runs ccache, the first argument, on a compiler's command. A precompiled header of 390 MB is hashed
# once, into a file beside it, and not for every source that uses it.
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1
"$@" || exit
while [ $# -gt 1 ]; do
  case "$1 $2" in
    "-o "*.gch) sha256sum "$2" >"$2.sum" ;;
  esac
  shift
done
