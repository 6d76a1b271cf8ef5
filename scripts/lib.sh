# shellcheck shell=bash
# Shared by setup, demo and test: where things are kept, and how this tells what it does.
#
# Everything that is downloaded or made for real environments lies in one cache outside the clone:
#   $COHABIT_CACHE (default ${XDG_CACHE_HOME:-~/.cache}/cohabit)
#     uv/      uv's cache of wheels; environments are hard links into it (or $UV_CACHE_DIR, if set)
#     envs/    the environments of tests/wheels/environments.toml, one directory per pins + Python
#     truths/  what the real ld.so did there, recorded once
#     tools/   a virtual environment with uv, pytest and friends
#     ccache/, tidy/   so that a new clone builds and checks fast
# Removing the directory is safe at any time.

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${COHABIT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cohabit}
mkdir -p "$cache/locks"
export COHABIT_CACHE=$cache
export CCACHE_DIR=${CCACHE_DIR:-$cache/ccache}
# Two clones of one commit compile the same text: let the second have the first one's objects.
export CCACHE_BASEDIR=$repo CCACHE_NOHASHDIR=1
jobs=${COHABIT_JOBS:-$(nproc)}
export CMAKE_BUILD_PARALLEL_LEVEL=$jobs CTEST_PARALLEL_LEVEL=$jobs

# Bold only for people: logs are files.
bold='' plain=''
if [[ -t 2 && -z ${NO_COLOR:-} ]]; then bold=$'\033[1m' plain=$'\033[0m'; fi
say() { printf '%s==>%s %s\n' "$bold" "$plain" "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 2
}

# The tools venv: uv (makes environments), pytest. Its Python runs our own scripts.
tools_python() {
  local stamp
  stamp=$(sha256sum "$repo/scripts/requirements.txt" | cut -c1-16)
  printf '%s/tools/%s/bin/python\n' "$cache" "$stamp"
}

# A Python of at least 3.11 (our scripts read TOML with it).
host_python() {
  local candidate
  for candidate in python3 python3.11 python3.12 python3.13 /usr/bin/python3; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  die "no Python 3.11 or newer found; on Debian 12: apt-get install python3"
}
