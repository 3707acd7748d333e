"""Extension modules; everything else about the package is in pyproject.toml.

Environment variables:
    FASTPQ_DEBUG=1      bounds checks and the address and undefined-behaviour sanitizers
    FASTPQ_NO_CLONES=1  one instruction set, no target_clones
    FASTPQ_CODECS=packages      codecs of packages alone, without the C libraries of LIBRARIES
    FASTPQ_NO_JAR=1     no jar for Spark: fastpq.spark then reads and writes through Python alone
"""

import multiprocessing
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

DEBUG = os.environ.get("FASTPQ_DEBUG") == "1"
CORES = os.cpu_count() or 1
NO_CLONES = os.environ.get("FASTPQ_NO_CLONES") == "1"
CODECS = os.environ.get("FASTPQ_CODECS")
NO_JAR = os.environ.get("FASTPQ_NO_JAR") == "1"
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
# a .pxd names headers as "c/NAME.h", also when another room's module includes it
C_FOLDERS = sorted(str(folder.parent) for folder in Path("fastpq").rglob("c") if folder.is_dir())
# the utility code of Cython's memoryviews, of which each extension would hold, compile and load a copy
SHARED_UTILITIES = "fastpq._cython"
# calls of kernels for tests and benchmarks, which are run on wheels too
KERNEL_CALLS = "fastpq._kernel_calls", "tests/kernel_calls.pyx"
# these call rather than loop over values: more than -O1 makes them larger, not faster
CALLING = (
    SHARED_UTILITIES,
    "fastpq.arrow.capsules",
    "fastpq.encryption.",
    "fastpq.format.",
    "fastpq.recovery.",
    "fastpq.variant.",
)
JAR_BUILDER, JAR = Path("fastpq/spark/jvm/jar.py"), Path("fastpq/spark/fastpq-spark.jar")
OPENSSL_MODULES = {"fastpq.encryption.evp", "fastpq.encryption.provider", "fastpq.encryption.keys.secret"}
# extensions left out without their library: the codecs are then those of packages
LIBRARIES = {
    "fastpq.codecs.brotli_library": (["brotlienc", "brotlidec"], "brotli/encode.h", "libbrotli-dev"),
    "fastpq.codecs.gzip_library": (["deflate"], "libdeflate.h", "libdeflate-dev"),
    "fastpq.codecs.lz4_library": (["lz4"], "lz4frame.h", "liblz4-dev"),
    "fastpq.codecs.zstd_library": (["zstd"], "zstd.h", "libzstd-dev"),
}
CHECKSUM = "fastpq.codecs.checksum"     # by libdeflate or the package isal
STRIPPED = ["-Wl,-s"] if sys.platform == "linux" else ["-Wl,-x"]


class BuildExt(build_ext):
    """Runs Cython and the C compiler, and says which package brings OpenSSL's headers when they are missing."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or CORES

    def run(self) -> None:
        # distutils' own: setuptools' compiles beside the tree and copies, so that an editable installation would compile anew
        super(build_ext, self).run()

    def build_extensions(self) -> None:
        if not self._has_openssl():
            if not self._compiles("empty", ""):
                sys.exit(f"fastpq: the C compiler does not work: {' '.join(self.compiler.compiler)}")
            sys.exit(
                "fastpq: the OpenSSL headers (openssl/evp.h, 3.0 or later) were not found. Install them with\n"
                "  Debian, Ubuntu:  apt-get install libssl-dev\n"
                "  Fedora, RHEL:    dnf install openssl-devel\n"
                "  Homebrew:        brew install openssl@3   (and set CFLAGS=-I$(brew --prefix openssl@3)/include\n"
                "                   LDFLAGS=-L$(brew --prefix openssl@3)/lib)"
            )
        self._choose_libraries()
        # here, so that commands that compile nothing (sdist, metadata) do not wait for Cython
        sources = c_sources(self.extensions)
        for extension in self.extensions:
            extension.sources = sources[extension.name]
            extension.depends = ["setup.py", *included_headers(Path(extension.sources[0]))]
            if not (DEBUG or self.inplace):     # profilers of a development tree show the names of kernels
                extension.extra_link_args += STRIPPED
        super().build_extensions()

    def _choose_libraries(self) -> None:
        """Leave out the codecs of libraries that are not there, or not wanted."""
        for name, (libraries, header, package) in LIBRARIES.items():
            extension = next(extension for extension in self.extensions if extension.name == name)
            if CODECS != "packages" and self._compiles(name, f"#include <{header}>\n"):
                extension.libraries += libraries
                if name == "fastpq.codecs.gzip_library":
                    checksum = next(extension for extension in self.extensions if extension.name == CHECKSUM)
                    checksum.libraries += libraries
                    checksum.define_macros.append(("FASTPQ_LIBDEFLATE", "1"))
            else:
                self.extensions.remove(extension)
                if self.inplace:
                    Path(self.get_ext_fullpath(name)).unlink(missing_ok=True)       # of a build with the library
                if CODECS != "packages":
                    print(f"fastpq: no {header} ({package} on Debian): the codec of a package instead", file=sys.stderr)

    def _has_openssl(self) -> bool:
        return self._compiles(
            "openssl", "#include <openssl/evp.h>\n#if OPENSSL_VERSION_NUMBER < 0x30000000L\n#error too old\n#endif\n"
        )

    def _compiles(self, name: str, text: str) -> bool:
        source = Path(self.build_temp) / f"{name}_probe.c"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
        try:
            self.compiler.compile([str(source)], output_dir=str(source.parent))
        except Exception:  # any failure of the compiler is an answer here
            return False
        return True


class BuildPy(build_py):
    """Compiles the jar for Spark first. A build that cannot have the jar ends, unless FASTPQ_NO_JAR=1 leaves the jar out."""

    def run(self) -> None:
        if not NO_JAR and subprocess.run([sys.executable, str(JAR_BUILDER)]).returncode:
            sys.exit(
                "fastpq: a package without its jar would be slow in Spark. Install what is missing, or set FASTPQ_NO_JAR=1 to\n"
                "build without the jar: all else works, and fastpq.spark reads and writes through Python alone"
            )
        super().run()

    def find_data_files(self, package: str, src_dir: str) -> list[str]:
        files = super().find_data_files(package, src_dir)
        return [file for file in files if not (NO_JAR and Path(file).name == JAR.name)]     # of an earlier build


def extension(name: str, *sources: str) -> Extension:
    compile_args = ["-std=c11", "-Wall", "-Wextra", "-Wno-unused-function", "-Wno-unused-parameter"]
    compile_args += ["-Wno-cast-function-type", "-Wno-missing-field-initializers", "-Wno-sign-compare"]
    macros = [("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"), ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION")]
    if NO_CLONES:
        macros.append(("FASTPQ_NO_CLONES", "1"))
    if DEBUG:
        # ifunc resolvers run before the sanitizer runtime is ready, so the debug build has no clones either
        macros += [("FASTPQ_NO_CLONES", "1"), ("FASTPQ_DEBUG", "1")]
        compile_args += ["-O1", "-g", "-fno-omit-frame-pointer", *SANITIZERS]
    else:
        compile_args += ["-O1" if name.startswith(CALLING) else "-O3", "-fno-strict-aliasing", "-g0"]
    return Extension(
        name,
        list(sources),
        include_dirs=[np.get_include(), *C_FOLDERS],
        define_macros=macros,
        extra_compile_args=compile_args,
        extra_link_args=SANITIZERS if DEBUG else [],
        libraries=["crypto"] if name in OPENSSL_MODULES else [],
    )


if sys.platform == "linux":
    multiprocessing.set_start_method("fork", force=True)       # a process of another kind would run this file again


def c_sources(extensions: list[Extension]) -> dict[str, list[str]]:
    """The C sources of each extension by its name; Cython makes those that are older than what they are made from."""
    made = cythonize(
        extensions,
        compiler_directives={
            "language_level": "3",
            "boundscheck": DEBUG,
            "wraparound": False,
            "initializedcheck": DEBUG,
            "cdivision": True,
            "embedsignature": True,
            "freethreading_compatible": True,
        },
        shared_utility_qualified_name=SHARED_UTILITIES,
        nthreads=CORES if sys.platform == "linux" else 0,
    )
    return {extension.name: extension.sources for extension in made}


def included_headers(source: Path) -> set[str]:
    """Return the headers of fastpq that a C file includes, directly or through others.

    Cython turns each ``cdef extern from`` of a module, and of the modules that it cimports, into an ``#include``.
    """
    headers: set[str] = set()
    folders = [str(source.parent), *C_FOLDERS]
    for name in re.findall(r'^ *#include "([^"]+)"', source.read_text(), re.MULTILINE):
        places = (Path(os.path.normpath(f"{folder}/{name}")) for folder in folders)
        header = next((place for place in places if place.exists()), None)
        if header is not None:      # headers of Python and NumPy lie outside
            headers |= {str(header), *included_headers(header)}
    return headers


setup(
    cmdclass={"build_ext": BuildExt, "build_py": BuildPy},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
    ext_modules=[
        extension(SHARED_UTILITIES),        # of which Cython makes the source, too
        extension(*KERNEL_CALLS),
        *(extension(".".join(path.with_suffix("").parts), str(path)) for path in sorted(Path("fastpq").rglob("*.pyx"))),
    ],
)
