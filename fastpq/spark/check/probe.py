"""Describe the Python process that runs this code: versions, shared memory and the way to the key service.

The driver pickles this module by value. It imports nothing at the top but the standard library, because an executor may have no
fastpq, or another version.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import socket
import sys
import tempfile
from importlib import import_module
from importlib.util import find_spec
from typing import Any

PACKAGES = ("fastpq", "pyspark", "pyarrow", "numpy")
PROBE_KEY_SIZE = 16         # bytes in the key that the key service wraps and unwraps for the check
Description = dict[str, Any]


def describe(service: dict[str, Any] | None, master_key: str | None) -> Description:
    """Describe this process.

    Args:
        service: the fields of ServiceOptions, or None.
        master_key: identifier of a master key. The key service wraps and unwraps a random key with it. None leaves this out.

    Returns:
        Values that JSON can hold. ``key_service`` is "ok", or says what failed, or is None if nothing was asked.
    """
    return {
        "host": socket.gethostname(),
        "process": os.getpid(),
        "executor": executor_name(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "packages": {name: version_of(name) for name in PACKAGES},
        "jar": jar_digest(),
        "memory": memory_kind(),
        "free_shared_memory": free_bytes("/dev/shm"),
        "temporary_folder": tempfile.gettempdir(),
        "free_temporary": free_bytes(tempfile.gettempdir()),
        "key_service": None if service is None else ask_key_service(service, master_key),
    }


def executor_name() -> str:
    """Return a text that differs between the executors of an application: the host, and the executor's own local folders."""
    own = os.environ.get("SPARK_EXECUTOR_DIRS") or os.environ.get("SPARK_LOCAL_DIRS") or str(os.getppid())
    return f"{socket.gethostname()} {own}"


def version_of(package: str) -> str | None:
    """Return the version of a package that this process can import. Return None without it, or the error of its import."""
    if find_spec(package) is None:
        return None
    try:
        module = import_module(package)
    except Exception as error:      # of a broken installation
        return f"broken ({type(error).__name__}: {error})"
    return str(getattr(module, "__version__", "unknown"))


def jar_digest() -> str | None:
    """Return a digest of the jar in the installed fastpq. Return None without one."""
    package = find_spec("fastpq")
    if package is None or package.origin is None:
        return None
    path = os.path.join(os.path.dirname(package.origin), "spark", "fastpq-spark.jar")
    return file_digest(path) if os.path.exists(path) else None


def file_digest(path: str) -> str:
    """Return the first digits of a file's SHA-256."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def memory_kind() -> str:
    """Return how a worker shares memory with the JVM: in memory without a name, or in files."""
    folder = os.environ.get("FASTPQ_SEGMENT_FOLDER")
    if folder is not None:
        return f"files in {folder}"
    try:
        os.close(os.memfd_create("fastpq"))
    except (AttributeError, OSError):
        return f"files in {tempfile.gettempdir()}"
    return "anonymous memory"


def free_bytes(folder: str) -> int | None:
    """Return the free bytes of the file system that a folder is in. Return None without the folder."""
    return shutil.disk_usage(folder).free if os.path.isdir(folder) else None


def ask_key_service(service: dict[str, Any], master_key: str | None) -> str:
    """Return "ok" if this process can use the key service, else what failed. An error of a foreign client is only named."""
    try:
        errors, keys = import_module("fastpq.errors"), import_module("fastpq.spark.keyservice")
    except ImportError as error:
        return f"fastpq is missing ({error.name})"
    try:
        options = keys.ServiceOptions(**service)
        options.check()
        client = keys.load_client(options.client)(options.connection())
        if master_key is not None:
            key = os.urandom(PROBE_KEY_SIZE)
            wrapped_key = client.wrap_key(key, master_key)
            text = wrapped_key.decode() if isinstance(wrapped_key, bytes) else wrapped_key
            if bytes(client.unwrap_key(text, master_key)) != key:
                return f"the key service unwraps another key than it wrapped with {master_key!r}"
    except errors.ParquetError as error:
        return str(error)
    except Exception as error:      # its text could hold a secret
        return f"the client {service['client']!r} raised {type(error).__name__}"
    return "ok"
