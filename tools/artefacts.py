"""Checks of release files: the contents of sdist and wheel, file by file, and the linking of extensions."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from email.parser import BytesParser
from pathlib import Path, PurePosixPath

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

SDIST_MADE = ("PKG-INFO", "setup.cfg")      # setuptools adds these and fastpq.egg-info
WHEEL_KEPT = (".py", ".pyi")                # suffixes of source files in an installed package
EXAMPLE_CLIENT = "fastpq/spark/example/FileKms.java"
SHARED_EXTENSION = "fastpq/_cython"         # SHARED_UTILITIES in setup.py
KERNEL_CALLS = "fastpq/_kernel_calls"       # KERNEL_CALLS in setup.py, made from a file in tests/
METADATA_FILES = (
    "METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "sboms/auditwheel.cdx.json", "top_level.txt",
)
SPARK_JAR = "fastpq/spark/fastpq-spark.jar"     # made by fastpq.spark.jvm.jar
LIBRARIES = "fastpq.libs/"                  # auditwheel's folder
# OpenSSL's library, and those of codecs
BUNDLED = {"libcrypto", "libzstd", "liblz4", "libdeflate", "libbrotlienc", "libbrotlidec", "libbrotlicommon"}
BUNDLED_NAME = re.compile(r"(lib\w+)-[0-9a-f]+\.so\.[\d.]+")
SYSTEM_LIBRARIES = ("libz.so.1", "libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")


class ContentError(Exception):
    """A file of a release has missing, surplus or wrong contents."""


@dataclass(frozen=True)
class WheelFacts:
    """Name, sizes and glibc versions of a wheel after successful checks."""

    name: str
    size: int
    extension_bytes: int
    library_bytes: int
    extension_glibc: str        # newest version of glibc among the symbols needed by the extensions
    library_glibc: str          # newest version of glibc among the symbols needed by the bundled libraries

    @property
    def tags(self) -> str:
        """Tags of interpreter, ABI and platform in the wheel's name."""
        return self.name.removesuffix(".whl").split("-", 2)[2]


def check_sdist(path: Path, files: Iterable[str], version: str) -> None:
    """Check an sdist: exactly the files of the tree, and setuptools' own files.

    Raises:
        ContentError: a missing or surplus file.
    """
    top = f"fastpq-{version}/"
    with tarfile.open(path) as archive:
        names = {member.name.removeprefix(top) for member in archive.getmembers() if member.isfile()}
    made = {name for name in names if name in SDIST_MADE or name.startswith("fastpq.egg-info/")}
    compare(path.name, names - made, set(files))


def check_wheel(path: Path, files: Sequence[str], version: str) -> WheelFacts:
    """Check a wheel: exactly Python files, stubs, stripped extensions, metadata, bundled libraries, and the jar for Spark.

    Raises:
        ContentError: a missing or surplus file, or an extension with wrong linking or metadata.
    """
    with zipfile.ZipFile(path) as archive:
        contents = {info.filename: archive.read(info) for info in archive.infolist() if not info.is_dir()}
    extensions = {name for name in contents if name.startswith("fastpq/") and name.endswith(".so")}
    libraries = {name.removeprefix(LIBRARIES): contents[name] for name in contents if name.startswith(LIBRARIES)}
    modules = {str(PurePosixPath(name).with_name(PurePosixPath(name).name.split(".")[0])) for name in extensions}
    metadata = f"fastpq-{version}.dist-info/"
    compare(path.name, modules, extension_modules(files))
    if len(extensions) != len(modules):
        raise ContentError(f"{path.name} holds extensions of several Pythons: {sorted(extensions)}")
    compare(
        path.name,
        {name for name in contents if name not in extensions and not name.startswith(LIBRARIES)},
        {name for name in files if is_installed(name)} | {metadata + name for name in METADATA_FILES} | {SPARK_JAR},
    )
    bundled = [match[1] if (match := BUNDLED_NAME.fullmatch(name)) else name for name in libraries]
    compare(f"{path.name}, {LIBRARIES}", set(bundled), BUNDLED)
    if len(bundled) != len(BUNDLED):
        raise ContentError(f"{path.name} holds a library twice: {sorted(libraries)}")
    for name in sorted(extensions):
        check_linking(f"{path.name}: {name}", contents[name], set(libraries))
    for name, data in libraries.items():
        check_linking(f"{path.name}: {name}", data, set(libraries))
    check_metadata(path.name, contents[f"{metadata}METADATA"], version)
    return WheelFacts(
        path.name,
        path.stat().st_size,
        sum(len(contents[name]) for name in extensions),
        sum(len(data) for data in libraries.values()),
        newest_glibc(contents[name] for name in extensions),
        newest_glibc(libraries.values()),
    )


def is_installed(name: str) -> bool:
    """Whether a file of the tree is part of an installed package."""
    return name in ("fastpq/py.typed", EXAMPLE_CLIENT) or (name.startswith("fastpq/") and name.endswith(WHEEL_KEPT))


def extension_modules(files: Iterable[str]) -> set[str]:
    """Paths of the extensions without suffixes: one of each .pyx in the package, the shared utilities, and the kernel calls."""
    sources = (name for name in files if name.startswith("fastpq/") and name.endswith(".pyx"))
    return {SHARED_EXTENSION, KERNEL_CALLS, *(name.removesuffix(".pyx") for name in sources)}


def compare(where: str, there: set[str], wanted: set[str]) -> None:
    if there != wanted:
        missing, extra = sorted(wanted - there), sorted(there - wanted)
        raise ContentError(f"{where}: missing {missing}, does not belong there {extra}")


def check_linking(where: str, data: bytes, allowed: set[str]) -> None:
    """Check a library: no symbol table, no needed libraries beyond the system's and the allowed ones, no absolute search path.

    Raises:
        ContentError: a check failed.
    """
    binary = ELFFile(io.BytesIO(data))
    if binary.get_section_by_name(".symtab") is not None or binary.get_section_by_name(".debug_info") is not None:
        raise ContentError(f"{where} is not stripped")
    if foreign := needed_libraries(data) - allowed - set(SYSTEM_LIBRARIES):
        raise ContentError(f"{where} needs {sorted(foreign)}")
    for path in dynamic_strings(binary, "DT_RPATH", "rpath") + dynamic_strings(binary, "DT_RUNPATH", "runpath"):
        if any(part.split("/")[0] != "$ORIGIN" for part in path.split(":")):
            raise ContentError(f"{where} looks for libraries in {path}")


def needed_libraries(data: bytes) -> set[str]:
    return set(dynamic_strings(ELFFile(io.BytesIO(data)), "DT_NEEDED", "needed"))


def dynamic_strings(binary: ELFFile, kind: str, attribute: str) -> list[str]:
    """Strings of one kind of entry in the dynamic section; pyelftools stores a string as an attribute of the entry.

    Raises:
        ContentError: the file has no dynamic section.
    """
    section = binary.get_section_by_name(".dynamic")
    if not isinstance(section, DynamicSection):
        raise ContentError("a shared library without dynamic section")
    return [getattr(tag, attribute) for tag in section.iter_tags() if tag.entry.d_tag == kind]


def newest_glibc(binaries: Iterable[bytes]) -> str:
    """The newest version of glibc bound to any symbol, as ``2.34``: the oldest glibc able to run the binaries."""
    newest = (0, 0)
    for data in binaries:
        needed = ELFFile(io.BytesIO(data)).get_section_by_name(".gnu.version_r")
        if isinstance(needed, GNUVerNeedSection):
            for _, versions in needed.iter_versions():
                found = [re.match(r"GLIBC_(\d+)\.(\d+)", version.name) for version in versions]
                newest = max([newest, *((int(match[1]), int(match[2])) for match in found if match)])
    return ".".join(map(str, newest))


def check_metadata(where: str, data: bytes, version: str) -> None:
    """Check name, version, licence and licence file in the metadata.

    Raises:
        ContentError: a wrong or missing field.
    """
    metadata = BytesParser().parsebytes(data)
    for field, wanted in (
        ("Name", "fastpq"),
        ("Version", version),
        ("License-Expression", "Apache-2.0"),
        ("License-File", "LICENSE"),
        ("Requires-Python", ">=3.11"),
    ):
        if metadata[field] != wanted:
            raise ContentError(f"{where}: {field} is {metadata[field]!r}, not {wanted!r}")
