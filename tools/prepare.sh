# Sourced by cm and test.sh: makes virtual environments inside the checkout and a CM home beside them.
# Nothing outside the checkout is touched. Everything here may be killed at any moment and started again. Every command
# passes through here, and each program that is started takes a millisecond: bash itself reads files and cuts paths.

unset CDPATH # with it, cd prints the folder and may choose another
CHECKOUT="$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)"

# pip keeps what it downloads here too.
export PIP_CACHE_DIR="$CHECKOUT/.cm/pip-cache"
TORCH_CPU_INDEX="https://download.pytorch.org/whl/cpu"

# own_streams FILE...: where the caller closed standard input, output or error, bash has put the script that it reads, one
# of these files, in that place, and every program that is started would inherit it. It becomes /dev/null.
own_streams() {
  local file
  for file in "$@"; do
    if [ /dev/fd/0 -ef "$file" ]; then exec 0</dev/null; fi
    if [ /dev/fd/1 -ef "$file" ]; then exec 1>/dev/null; fi
    if [ /dev/fd/2 -ef "$file" ]; then exec 2>/dev/null; fi
  done
}

say() { printf '%s\n' "$*" >&2; }

# Prints the first Python 3.10 or newer on PATH.
find_python() {
  local name
  for name in "${CROWDPERF_PYTHON:-python3}" python3.13 python3.12 python3.11 python3.10 python3; do
    if command -v "$name" >/dev/null 2>&1 &&
      "$name" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then
      command -v "$name"
      return 0
    fi
  done
  say "crowdperf needs Python 3.10 or newer; none was found on PATH."
  say "  hint: sudo apt-get install -y python3 python3-venv   (or set CROWDPERF_PYTHON=/path/to/python3)"
  return 1
}

# python_of CHOICE: prints the Python for a version such as 3.12, on PATH or installed by pyenv, or for a path; fails when
# there is none, or when it is older than 3.10.
python_of() {
  local path paths=("python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/"python$1")
  if [[ "$1" == */* ]]; then paths=("$1"); fi
  for path in "${paths[@]}"; do
    if "$path" -c 'import sys
v = sys.version_info[:2]
sys.exit(v < (3, 10) or "/" not in sys.argv[1] and sys.argv[1] != "%d.%d" % v)' "$1" >/dev/null 2>&1; then
      command -v "$path"
      return 0
    fi
  done
  return 1
}

# Prints each choice for which python_of finds a Python of its own: 3.10 to 3.14, and that of the system.
pythons() {
  local choice version seen=""
  for choice in 3.10 3.11 3.12 3.13 3.14 /usr/bin/python3; do
    version="$("$(python_of "$choice")" --version 2>/dev/null)" || continue
    if [[ "$seen" != *"[$version]"* ]]; then printf '%s ' "$choice"; fi
    seen="${seen}[$version]"
  done
}

# compiling PYTHON WORD...: runs it so that it keeps what it compiles, pip among it: that takes longer than what pip does.
compiling() { env -u PYTHONDONTWRITEBYTECODE "$@"; }

# prepare_torch PYTHON REQUIREMENTS NOTE: installs the CPU build of torch first where the requirements ask for torch and
# there is no NVIDIA GPU: for Linux on x86-64, pip's usual index has builds with several GB of CUDA libraries only. Fails
# where none can be reached; with CROWDPERF_TORCH=optional it writes the reason to the file NOTE instead.
prepare_torch() {
  local python="$1" wanted
  wanted="$(grep -oE '^torch==[0-9.]+' "$2")" || return 0
  if [ "$(uname -sm)" != "Linux x86_64" ] || command -v nvidia-smi >/dev/null 2>&1 || [ -n "${CROWDPERF_CUDA_TORCH:-}" ]; then
    return 0
  fi
  if compiling "$python" -m pip install --quiet --no-compile --no-deps "$wanted+cpu" >/dev/null 2>&1; then
    say "  $wanted: the CPU build that pip is set up with (there is no NVIDIA GPU)"
  elif compiling "$python" -m pip install --quiet --timeout 10 --retries 0 --no-compile --no-deps --index-url "$TORCH_CPU_INDEX" "$wanted" \
    >/dev/null 2>&1; then
    say "  $wanted: the CPU build of $TORCH_CPU_INDEX (there is no NVIDIA GPU)"
  elif [ "${CROWDPERF_TORCH:-}" = optional ]; then
    printf '%s\n' "no CPU build of $wanted for $("$python" --version) can be reached" >"$3"
    say "  $(cat "$3"): the environment is made without torch"
  else
    say "$wanted: no CPU build for $("$python" --version) can be reached, and there is no NVIDIA GPU for the CUDA build."
    say "  hint: take another Python (CROWDPERF_PYTHON=python3.11), or the several GB of CUDA: CROWDPERF_CUDA_TORCH=yes"
    return 1
  fi
}

# create_environment PYTHON FOLDER: makes an empty virtual environment with pip in it.
create_environment() {
  "$1" -I "$CHECKOUT/script/install-python-venv/environment.py" "$1" "$2" >&2 && return 0
  if [ $? -ne 2 ]; then # with 2 it has printed its own hint
    rm -rf "$2"
    say_hint "sudo apt-get install -y python3-venv"
  fi
  return 1
}

# say_hint TEXT: prints what to try after a failure: to free space where that is what lacks, else TEXT.
say_hint() {
  local place free_mb
  for place in "$CHECKOUT" "${TMPDIR:-/tmp}"; do
    free_mb="$(df -Pk "$place" 2>/dev/null | awk 'NR == 2 { print int($4 * 1.024 / 1000) }')" || free_mb=""
    if [ "${free_mb:-100}" -lt 100 ]; then
      if [ "$place" != "$CHECKOUT" ]; then place="temporary files in $place, set TMPDIR to another folder"; fi
      say "  hint: only $free_mb MB are free for $place (df -h shows where there is more); then the same line again"
      return 0
    fi
  done
  say "  hint: $1"
}

# Prints how to get a checkout of one's own: git clones no folder of another user, and there may be no repository.
copy_words() {
  local quoted
  quoted="$(printf '%q' "$CHECKOUT")"
  if [ -O "$CHECKOUT/.git" ]; then
    printf '%s' "make a clone of your own: git clone $quoted crowdperf"
  else
    printf '%s' "make a copy of your own: mkdir crowdperf && tar -C $quoted --exclude='./.venv*' --exclude=./.cm" \
      " --exclude=./cache --exclude=./results -c . | tar -C crowdperf -x"
  fi
}

# prepare_environment FOLDER REQUIREMENTS [IMPORTS]: the environment holds what the file asks for; done once per version of
# it. It keeps the Python that it was made with, unless CROWDPERF_PYTHON names one of another version. With IMPORTS, as
# "numpy, yaml", only what these import is compiled now, and other files when they are first imported.
prepare_environment() {
  local folder="$CHECKOUT/$1" requirements="$CHECKOUT/$2" imports="${3:-}" python stamp wanted before=""
  stamp="$folder/crowdperf-ready"
  wanted="$(cat "$CHECKOUT/requirements.txt" "$requirements" | cksum)"
  if is_ready "$folder" "$wanted"; then return 0; fi
  if ! { exec 9>"$folder.lock"; } 2>/dev/null; then
    say "$(id -un 2>/dev/null) cannot write into $CHECKOUT, where ./cm keeps its environment, cache and results."
    say_hint "$(copy_words)"
    return 1
  fi
  if command -v flock >/dev/null 2>&1; then flock 9; fi
  if is_ready "$folder" "$wanted"; then
    exec 9>&-
    return 0
  fi
  if is_whole "$folder"; then
    say "preparing $1 with $("$folder/bin/python" --version) ..."
  else
    python="$(find_python)" || return 1
    if [ -f "$stamp" ]; then before="$(sed -n 2p "$stamp")"; fi
    say "preparing $1 with $("$python" --version)${before:+ in place of $before} ..."
    rm -rf "$folder"
    create_environment "$python" "$folder" || return 1
  fi
  rm -f "$stamp" "$folder/without-torch"
  if [ -n "$imports" ] && [ "$1" != .venv ]; then # pip 26.3 needs a third of the time of pip 23.2, which Python 3.11 brings; any will do
    compiling "$folder/bin/python" -m pip install --quiet --no-compile --upgrade pip >/dev/null 2>&1 || true
  fi
  prepare_torch "$folder/bin/python" "$requirements" "$folder/without-torch" || return 1
  if [ -f "$folder/without-torch" ]; then
    sed '/^torch==/d' "$requirements" >"$folder/requirements.txt"
    requirements="$folder/requirements.txt"
    imports="${imports/torch, /}"
  fi
  compiling "$folder/bin/python" -m pip install --quiet --disable-pip-version-check ${imports:+--no-compile} \
    -r "$requirements" >&2 || {
    say "pip could not install what $requirements asks for; its message is above."
    say_hint "without a network, or behind a proxy: docs/howto/get-crowdperf.md; then the same line again"
    return 1
  }
  if [ -n "$imports" ]; then
    compiling "$folder/bin/python" -I -c "import $imports" || return 1
  fi
  printf '%s\n%s\n' "$wanted" "$("$folder/bin/python" --version)" >"$stamp.new" && mv "$stamp.new" "$stamp"
  exec 9>&-
}

# is_whole FOLDER: an environment was made there, its Python still exists, and is what CROWDPERF_PYTHON names, if set.
is_whole() {
  [ -f "$1/crowdperf-ready" ] && [ -x "$1/bin/python" ] || return 1
  [ -z "${CROWDPERF_PYTHON:-}" ] || [ "$(sed -n 2p "$1/crowdperf-ready")" = "$("$(find_python)" --version)" ]
}

# is_ready FOLDER WANTED: the environment is whole and holds what these requirements ask for, torch too unless optional.
is_ready() {
  local found
  is_whole "$1" && read -r found <"$1/crowdperf-ready" && [ "$found" = "$2" ] || return 1
  [ ! -f "$1/without-torch" ] || { [ "${CROWDPERF_TORCH:-}" = optional ] && [ -z "${CROWDPERF_CUDA_TORCH:-}" ]; }
}

# Puts the CM home inside the checkout, and the cache unless CROWDPERF_CACHE names another; registers the checkout there.
# The stamp says for which checkout that was done; where CM changed its lists since, they are looked at again.
prepare_cm_home() {
  local stamp="$CHECKOUT/.cm/crowdperf-ready" local_repo="$CHECKOUT/.cm/repos/local/cmr.yaml" found
  export CM_REPOS="$CHECKOUT/.cm"
  export CROWDPERF_CACHE="${CROWDPERF_CACHE:-$CHECKOUT/cache}"
  if [ -s "$local_repo" ] && is_older "$CM_REPOS/repos.json" "$stamp" && is_older "$CM_REPOS/index.json" "$stamp" &&
    IFS= read -r found <"$stamp" && [ "$found" = "$CHECKOUT" ]; then
    return 0
  fi
  mkdir -p "$CM_REPOS"
  "$CHECKOUT/.venv/bin/python" "$CHECKOUT/src/crowdperf/call/cm_home.py" "$CM_REPOS" "$CHECKOUT"
  printf '%s\n' "$CHECKOUT" >"$stamp"
}

# is_older FILE OTHER: both are there, and FILE was last changed before OTHER.
is_older() { [ -f "$1" ] && [ "$2" -nt "$1" ]; }

# words_for PATH: prints how to call the file PATH again from the folder it was called from and, unless that is the
# checkout, from any other: "./cm", its name where PATH finds it, else the absolute path, quoted for a shell.
words_for() {
  local folder=. name="${1##*/}"
  if [[ "$1" == */* ]]; then folder="${1%/*}/"; fi
  if [ "$PWD" -ef "$CHECKOUT" ] && [ "$folder" -ef "$CHECKOUT" ]; then
    printf './%s' "$name"
  elif [ "$(type -P -- "$name")" = "$1" ]; then
    printf '%s' "$name"
  else
    printf '%q' "$(cd -- "$folder" && pwd)/$name"
  fi
}
