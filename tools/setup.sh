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

usable_python() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if usable_python "$candidate"; then
            printf '%s' "$candidate"
            return
        fi
    done
}

# a help is printed, and a mistyped argument is refused, before anything is installed
base=$(find_python)
case " $* " in *" --help "* | *" -h "*) asks_help=yes ;; *) asks_help= ;; esac
if [ -n "$base" ]; then
    "$base" -m tools.command_lines "$(basename "$0")" "$@" || exit $?
    [ -z "$asks_help" ] || exit 0
fi

say() { printf 'setup: %s\n' "$*" >&2; }

die() { say "$*"; exit 1; }

case $layer in
demo) extras="demo" optional_extras="" optional_packages="" ;;
spark) extras="bench spark" optional_extras="" optional_packages="default-jdk-headless" ;;
bench) extras="bench" optional_extras="peers" optional_packages="" ;;
test) extras="dev" optional_extras="lzo pkcs11 peers" optional_packages="liblzo2-dev softhsm2 chromium fonts-dejavu-core" ;;
full) extras="dev docs release" optional_extras="lzo pkcs11 peers" optional_packages="liblzo2-dev softhsm2 chromium fonts-dejavu-core default-jdk-headless mmdebstrap" ;;
release) extras="release" optional_extras="" optional_packages="" ;;
*) die "no layer $layer" ;;
esac
# libraries of codecs; without one, the codec's package is called (setup.py)
[ "${FASTPQ_CODECS:-}" = packages ] || optional_packages="libzstd-dev liblz4-dev libdeflate-dev libbrotli-dev $optional_packages"

# --- packages of the system ---------------------------------------------------------------------------------------------------

compiles() {    # does a C file with this include compile?
    # shellcheck disable=SC2086  # CC and CFLAGS may hold several words
    printf '#include <%s>\nint main(void) { return 0; }\n' "$1" | ${CC:-gcc} -x c -fsyntax-only ${CFLAGS:-} ${2:+"-I$2"} - 2>/dev/null
}

missing_packages() {    # the Debian packages that are needed and not there
    compiler=${CC:-gcc}
    command -v "${compiler%% *}" >/dev/null || echo gcc
    base=$(find_python)
    if [ -z "$base" ]; then
        echo python3 python3-venv python3-dev
    else
        "$base" -c 'import ensurepip, venv' 2>/dev/null || echo "$(basename "$base")-venv"
        compiles Python.h "$("$base" -c 'import sysconfig; print(sysconfig.get_path("include"))')" || echo "$(basename "$base")-dev"
    fi
    compiles openssl/evp.h || echo libssl-dev
    compiles stdio.h || echo libc6-dev
}

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_install() {
    say "apt-get install $*"
    apt-get update -q -o Acquire::Retries=5 >build/apt.log 2>&1 || return
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y -o Acquire::Retries=5 --no-install-recommends "$@" >>build/apt.log 2>&1
}

install_system_packages() {
    packages=$(missing_packages | tr '\n' ' ')
    [ -n "$packages" ] || return 0
    case $(uname) in Darwin) die "missing: $packages(Debian's names). Install them, for example: brew install python openssl@3" ;; esac
    can_install || die "missing: $packages(Debian and Ubuntu names). Install them, for example: sudo apt-get install $packages"
    # shellcheck disable=SC2086  # a list of names
    apt_install $packages || { cat build/apt.log >&2; die "apt-get failed"; }
    packages=$(missing_packages | tr '\n' ' ')
    [ -z "$packages" ] || die "still missing after installation: $packages(python >= 3.11 is needed)"
}

there() {   # is an optional package of the system there?
    case $1 in
    libzstd-dev) compiles zstd.h ;;
    liblz4-dev) compiles lz4frame.h ;;
    libdeflate-dev) compiles libdeflate.h ;;
    libbrotli-dev) compiles brotli/encode.h ;;
    liblzo2-dev) compiles lzo/lzo1.h ;;
    softhsm2) command -v softhsm2-util >/dev/null ;;
    fonts-dejavu-core) [ -n "$(find /usr/share/fonts -name '*.[to]tf' -print -quit 2>/dev/null)" ] ;;
    default-jdk-headless) command -v javac >/dev/null ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

needed_for() {
    case $1 in
    libzstd-dev | liblz4-dev | libdeflate-dev | libbrotli-dev) echo "pages of the codec decompressed without the GIL" ;;
    liblzo2-dev) echo "the codec LZO" ;;
    softhsm2) echo "the tests of PKCS#11" ;;
    chromium) echo "the tests of pictures in a browser" ;;
    fonts-dejavu-core) echo "text in pictures as PNG" ;;
    default-jdk-headless) echo "the tests of Spark and parquet-java" ;;
    mmdebstrap) echo "tools/fresh" ;;
    esac
}

tried_today() { [ -n "$(find ".venv/stamps/without-$1" -mtime -1 2>/dev/null)" ]; }

install_optional_packages() {
    for package in $optional_packages; do
        if there "$package" || tried_today "$package" || { [ -e ".venv/stamps/without-$package" ] && ! can_install; }; then continue; fi
        if ! can_install || ! apt_install "$package" || ! there "$package"; then
            say "without $package: $(needed_for "$package")"
            : >".venv/stamps/without-$package"
        fi
    done
}

# --- Python packages and fastpq -----------------------------------------------------------------------------------------------

checksum() { cat "$@" | cksum; }

# unchanged NAME CHECKSUM: is this the checksum with which NAME was stamped last?
unchanged() { [ "$(cat ".venv/stamps/$1" 2>/dev/null)" = "$2" ]; }

stamp() { printf '%s\n' "$2" >".venv/stamps/$1"; }

make_venv() {
    if ! usable_python "$python" || ! "$python" -m pip --version >/dev/null 2>&1; then
        base=$(find_python)
        say "virtual environment .venv with $("$base" --version)"
        "$base" -m venv --clear .venv
    fi
    mkdir -p .venv/stamps
}

pip_install() { "$python" -m pip install -qq --no-compile --prefer-binary "$@"; }

required() { "$python" tools/requirements.py "$@"; }

install_optional() {    # all at once, or else one after the other without those that fail
    # shellcheck disable=SC2086  # names of extras
    required $optional_extras >build/optional.txt
    pip_install -r build/optional.txt 2>build/optional.log && return
    while read -r requirement; do
        pip_install "$requirement" 2>>build/optional.log && continue
        say "without $requirement: it cannot be installed (build/optional.log); tools/test tries again a day later"
        : >.venv/stamps/without-extras
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

sources() { find fastpq -name '*.pyx' -o -name '*.pxd' -o -name '*.h' | LC_ALL=C sort; }

# how everything is compiled: a change of it concerns files that look up to date
way_of_compiling() {
    echo "debug=${FASTPQ_DEBUG:-} no-clones=${FASTPQ_NO_CLONES:-} codecs=${FASTPQ_CODECS:-} setup.py=$(checksum setup.py)"
    for package in libzstd-dev liblz4-dev libdeflate-dev libbrotli-dev; do if there "$package"; then echo "$package"; fi; done
}

# shellcheck disable=SC2046  # paths without spaces
sources_checksum() { echo "$(checksum $(sources)) $(way_of_compiling)"; }

remove_extensions() {       # the C that Cython made, and what was compiled from it
    find fastpq -name '*.so' -delete
    find fastpq -name '*.c' -delete
}

count() { find fastpq -name "*$1" ! -name "*_library*" | wc -l; }

are_all_there() { [ "$(count .so)" -gt "$(count .pyx)" ]; }    # one is Cython's own; those of missing libraries may be absent

start_compiling() {     # in the background
    compiled=$(sources_checksum)
    if [ -e .venv/stamps/compiling ] || ! unchanged way "$(way_of_compiling)"; then
        remove_extensions       # of an interrupted set-up half-written files look up to date, too
    fi
    : >.venv/stamps/compiling
    stamp way "$(way_of_compiling)"
    # a process group of its own, to be stopped with its workers, which do not hold the lock
    "$python" -c 'import os, sys; os.setpgid(0, 0); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])' \
        setup.py -q build_ext --inplace >build/compile.log 2>&1 9>&- &
    compiling=$!
}

finish_compiling() {
    if ! wait "$compiling"; then
        cat build/compile.log >&2
        die "fastpq does not compile"
    fi
    compiling=""
    stamp sources "$compiled"
    rm .venv/stamps/compiling
}

stop_compiling() {      # when set-up ends before its time: a process in the background would go on
    [ -z "$compiling" ] || kill -s TERM -- "-$compiling" 2>/dev/null || true
}

install_project() {
    wanted=$(checksum pyproject.toml)
    if ! unchanged build "$wanted"; then
        say "packages: build"
        required build >build/build.txt
        pip_install -r build/build.txt
        stamp build "$wanted"
    fi
    if [ -e .venv/stamps/compiling ] || ! unchanged sources "$(sources_checksum)" || ! are_all_there; then
        say "compiling what changed, the first time everything"
        start_compiling
    fi
    if ! unchanged "$layer" "$wanted" || { [ -e .venv/stamps/without-extras ] && ! tried_today extras; }; then
        rm -f .venv/stamps/without-extras
        install_requirements
        [ -z "$compiling" ] || finish_compiling
        # everything is compiled: this adds fastpq to the environment; the jar for Spark comes last, where Java is
        FASTPQ_NO_JAR=1 pip_install --no-deps --no-build-isolation -e .
        stamp "$layer" "$wanted"
    fi
    [ -z "$compiling" ] || finish_compiling
}

# --- one set-up at a time -----------------------------------------------------------------------------------------------------

mkdir -p build
exec 9>build/setup.lock
if command -v flock >/dev/null && ! flock -n 9; then
    say "waiting for another set-up of this tree"
    flock 9
fi
compiling=""
trap stop_compiling EXIT
trap 'exit 130' INT TERM HUP
started=$(date +%s)
install_system_packages
make_venv
install_optional_packages
install_project
case $layer in
spark | test | full) "$python" fastpq/spark/jvm/jar.py || say "without the jar for Spark: fastpq.spark reads and writes through Python" ;;
esac
say "ready after $(($(date +%s) - started)) s"
unset started
trap - EXIT INT TERM HUP
exec 9>&-
