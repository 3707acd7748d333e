# Sourced by the commands in tools/: makes .venv with fastpq built in place and the packages of one layer.
#   $layer    demo (the default), spark, bench, test, full or release: how much is installed
#   $PYTHON   the interpreter to take (default: the first that fits)
# Every step is skipped when its inputs have not changed. Optional packages never stop set-up: they are left out and named once.
# Leaves: the working directory at the project's root, and $python, the interpreter of .venv.

set -eu
cd "$(dirname "$0")/.."
layer=${layer:-demo}
python=$PWD/.venv/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

say() { printf 'setup: %s\n' "$*" >&2; }

die() { say "$*"; exit 1; }

case $layer in
demo) extras="demo" optional_extras="" optional_packages="" ;;
spark) extras="bench spark" optional_extras="" optional_packages="default-jdk-headless" ;;
bench) extras="bench" optional_extras="peers" optional_packages="" ;;
test) extras="dev" optional_extras="lzo pkcs11 peers" optional_packages="liblzo2-dev softhsm2" ;;
full) extras="dev docs release" optional_extras="lzo pkcs11 peers" optional_packages="liblzo2-dev softhsm2 default-jdk-headless mmdebstrap" ;;
release) extras="release" optional_extras="" optional_packages="" ;;
*) die "no layer $layer" ;;
esac

# --- packages of the system ---------------------------------------------------------------------------------------------------

usable_python() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if usable_python "$candidate"; then
            printf '%s' "$candidate"
            return
        fi
    done
}

compiles() {    # does a C file with this include compile?
    printf '#include <%s>\nint main(void) { return 0; }\n' "$1" | "${CC:-gcc}" -x c -fsyntax-only ${CFLAGS:-} ${2:+"-I$2"} - 2>/dev/null
}

missing_packages() {    # the Debian packages that are needed and not there
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

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_install() {
    say "apt-get install $*"
    apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" >/dev/null
}

install_system_packages() {
    packages=$(missing_packages | tr '\n' ' ')
    [ -n "$packages" ] || return 0
    can_install || die "missing: $packages(Debian and Ubuntu names). Install them, for example: sudo apt-get install $packages"
    # shellcheck disable=SC2086  # a list of names
    apt_install $packages
    packages=$(missing_packages | tr '\n' ' ')
    [ -z "$packages" ] || die "still missing after installation: $packages(python >= 3.11 is needed)"
}

there() {   # is an optional package of the system there?
    case $1 in
    liblzo2-dev) compiles lzo/lzo1.h ;;
    softhsm2) command -v softhsm2-util >/dev/null ;;
    default-jdk-headless) command -v javac >/dev/null ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

needed_for() {
    case $1 in
    liblzo2-dev) echo "the codec LZO" ;;
    softhsm2) echo "the tests of PKCS#11" ;;
    default-jdk-headless) echo "the tests of Spark and parquet-java" ;;
    mmdebstrap) echo "tools/fresh" ;;
    esac
}

install_optional_packages() {
    for package in $optional_packages; do
        if there "$package" || [ -e ".venv/stamps/without-$package" ]; then continue; fi
        if ! can_install || ! apt_install "$package" 2>/dev/null || ! there "$package"; then
            say "without $package: $(needed_for "$package")"
            : >".venv/stamps/without-$package"
        fi
    done
}

# --- Python packages and fastpq -----------------------------------------------------------------------------------------------

# unchanged NAME FILE...: have these files the contents that they had when NAME was last stamped?
unchanged() {
    stamp=.venv/stamps/$1
    shift
    cat "$@" | cksum | cmp -s - "$stamp"
}

stamp() {
    name=.venv/stamps/$1
    shift
    cat "$@" | cksum >"$name"
}

make_venv() {
    if ! [ -x "$python" ] || ! usable_python "$python"; then
        base=$(find_python)
        say "virtual environment .venv with $("$base" --version)"
        "$base" -m venv --clear .venv
    fi
    mkdir -p .venv/stamps build
}

pip_install() { "$python" -m pip install -qq --no-compile --prefer-binary "$@"; }

required() { "$python" tools/requirements.py "$@"; }

install_optional() {    # all at once, or else one after the other without those that fail
    # shellcheck disable=SC2086  # names of extras
    required $optional_extras >build/optional.txt
    pip_install -r build/optional.txt 2>build/optional.log && return
    while read -r requirement; do
        pip_install "$requirement" 2>>build/optional.log || say "without $requirement: it cannot be installed (build/optional.log)"
    done <build/optional.txt
}

install_requirements() {
    say "packages: ${extras}${optional_extras:+, where they can be had $optional_extras}"
    # shellcheck disable=SC2086
    required library $extras >"build/$layer.txt"
    [ "$layer" = demo ] || pip_install --upgrade pip        # Debian's does not find what fits together among so many
    pip_install -r "build/$layer.txt"
    [ -z "$optional_extras" ] || install_optional
}

sources() { find fastpq -name '*.pyx' -o -name '*.pxd' -o -name '*.h' | LC_ALL=C sort; echo setup.py; }

compile() { "$python" setup.py -q build_ext --inplace >build/compile.log 2>&1; }

finish_compiling() {
    if ! wait "$compiling"; then
        cat build/compile.log >&2
        die "fastpq does not compile"
    fi
    # shellcheck disable=SC2046  # paths without spaces
    stamp sources $(sources)
}

install_project() {
    compiling=""
    if ! unchanged build pyproject.toml; then
        say "packages: build"
        required build >build/build.txt
        pip_install -r build/build.txt
        stamp build pyproject.toml
    fi
    # shellcheck disable=SC2046
    if ! unchanged sources $(sources); then
        say "compiling what changed, the first time everything"
        compile &
        compiling=$!
    fi
    if ! unchanged "$layer" pyproject.toml; then
        install_requirements
        [ -z "$compiling" ] || finish_compiling
        compiling=""
        pip_install --no-deps --no-build-isolation -e .     # everything is compiled: this adds fastpq to the environment
        stamp "$layer" pyproject.toml
    fi
    [ -z "$compiling" ] || finish_compiling
}

started=$(date +%s)
install_system_packages
make_venv
install_optional_packages
install_project
say "ready after $(($(date +%s) - started)) s"
unset started
