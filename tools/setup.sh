# Sourced by tools/test, tools/demo, tools/bench and tools/fuzz: makes .venv with fastpq built in place.
# Every step is skipped when its inputs have not changed; $PYTHON chooses the interpreter (default: the first that fits).
# Leaves: the working directory at the project's root, and $python, the interpreter of .venv.

set -eu
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

say() { printf 'setup: %s\n' "$*" >&2; }

die() { say "$*"; exit 1; }

usable_python() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if usable_python "$candidate"; then
            printf '%s' "$candidate"
            return
        fi
    done
}

compiles() {    # does a C file with these includes compile?
    printf '#include <%s>\nint main(void) { return 0; }\n' "$1" | "${CC:-gcc}" -x c -fsyntax-only ${CFLAGS:-} ${2:+"-I$2"} - 2>/dev/null
}

missing_packages() {    # the Debian packages that are still needed
    command -v "${CC:-gcc}" >/dev/null || echo gcc
    base=$(find_python)
    if [ -z "$base" ]; then
        echo python3 python3-venv python3-dev
    else
        "$base" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
        compiles Python.h "$("$base" -c 'import sysconfig; print(sysconfig.get_path("include"))')" || echo python3-dev
    fi
    compiles openssl/evp.h || echo libssl-dev
    compiles stdio.h || echo libc6-dev
}

install_system_packages() {
    packages=$(missing_packages | tr ' ' '\n' | sort -u | tr '\n' ' ')
    [ -n "$packages" ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        die "missing: $packages(Debian and Ubuntu names). Install them, for example: sudo apt-get install $packages"
    fi
    say "apt-get install $packages"
    apt-get update -q >/dev/null
    # shellcheck disable=SC2086  # a list of names
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages >/dev/null
    packages=$(missing_packages | tr '\n' ' ')
    [ -z "$packages" ] || die "still missing after installation: $packages(python >= 3.11 is needed)"
}

# unchanged NAME FILE...: have these files the contents that they had when NAME was last stamped?
unchanged() {
    stamp=.venv/stamps/$1
    shift
    cat "$@" | cksum | cmp -s - "$stamp"
}

stamp() {
    name=.venv/stamps/$1
    shift
    mkdir -p .venv/stamps
    cat "$@" | cksum >"$name"
}

make_venv() {
    if ! [ -x "$python" ] || ! usable_python "$python"; then
        base=$(find_python)
        say "virtual environment .venv with $("$base" --version)"
        "$base" -m venv --clear .venv
    fi
}

install_softhsm() {     # a PKCS#11 token for the tests, which are skipped without it: tried once, and never in the way
    if command -v softhsm2-util >/dev/null || unchanged softhsm tools/setup.sh; then return; fi
    stamp softhsm tools/setup.sh
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        say "no softhsm2: the tests of PKCS#11 will be skipped"
        return
    fi
    say "apt-get install softhsm2"
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends softhsm2; } >/dev/null 2>&1 ||
        say "softhsm2 cannot be installed: the tests of PKCS#11 will be skipped"
}

build_sources() { find fastpq -name '*.pyx' -o -name '*.pxd' -o -name '*.h' | LC_ALL=C sort; echo setup.py; }

install_project() {
    if ! unchanged requirements pyproject.toml; then
        say "build requirements"
        "$python" -m pip install -qq --upgrade pip 'setuptools>=77' wheel 'cython>=3.3' 'numpy>=2'
        say "fastpq in place, with the extras dev and bench (the first time compiles everything: some minutes)"
        "$python" -m pip install -qq --no-build-isolation -e '.[dev,bench]'
        stamp requirements pyproject.toml
        # shellcheck disable=SC2046  # a list of paths without spaces
        stamp build $(build_sources)
    # shellcheck disable=SC2046
    elif ! unchanged build $(build_sources); then
        say "compiling what changed"
        mkdir -p build
        "$python" setup.py -q build_ext --inplace >build/setup.log 2>&1 || { cat build/setup.log >&2; exit 1; }
        # shellcheck disable=SC2046
        stamp build $(build_sources)
    fi
}

started=$(date +%s)
install_system_packages
make_venv
install_softhsm
install_project
say "ready after $(($(date +%s) - started)) s"
unset started
