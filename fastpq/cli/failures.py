"""Exit codes of the command, and errors as it reports them: one line and a hint."""

from __future__ import annotations

import errno
import re
from typing import NamedTuple

from fastpq.errors import (
    CryptoError,
    FormatError,
    KeyAccessError,
    LimitError,
    ParquetError,
    RemoteError,
    SchemaError,
    TagVerificationError,
    UnsupportedError,
)

DIFFERENT, USAGE, BROKEN, KEYS, UNSUPPORTED, SYSTEM, DEFECT, INTERRUPTED = 1, 2, 3, 4, 5, 6, 70, 130

# Each exit code and what it means. Help, the documentation and the man pages show the table.
EXIT_CODES = {
    0: "success",
    DIFFERENT: "the answer is no: files differ, a contract is broken, rows were lost",
    USAGE: "the command line or a column name is wrong",
    BROKEN: "a file breaks the Parquet format, or goes beyond a limit",
    KEYS: "a key is missing or wrong, or an encrypted file was altered",
    UNSUPPORTED: "the file or the request needs a feature or a package that is not there",
    SYSTEM: "the system or a server failed: no file, no permission, no space, no network",
    DEFECT: "a defect of fastpq",
    INTERRUPTED: "Ctrl-C",
}


# Words of ``--allow``, and the options of FileDecryptionProperties that errors name.
POLICY_OPTIONS = {
    "plaintext-files": "allow_plaintext_files",
    "duckdb": "allow_duckdb_dialect",
    "weaker-columns": "allow_weaker_columns",
    "missing-columns": "allow_missing_columns",
}


# Words of Python in messages of the library, and what the command says instead.
PYTHON_WORDS = (
    ("reading needs decryption_properties", "reading needs its key"),
    ("its new version needs decryption_properties", "a new version of it needs its keys"),
    ("there are decryption_properties", "there are keys"),
    (", as rotate_dataset does", ""),
    ("an interrupted encrypt_dataset has left", "an interrupted fastpq encrypt has left"),
    ("call encrypt_dataset again before this", "call it again before this"),
    ("is not among trusted_master_keys", "is not among --trusted-keys"),
    ("list the right ones in DecryptionConfiguration(trusted_master_keys=...)", "--trusted-keys has to list the right ones"),
    (
        "the keys come from no key service: make decryption_properties by CryptoFactory.dataset_decryption_properties, or give "
        "rotate_dataset encryption_properties",
        "the keys come from no key service: --keyring or --kms names one, or rotate needs new keys (--new-keys-fd N)",
    ),
    ('unlisted="raise"', "--unlisted raise"),
    ('unlisted="footer_key"', "--unlisted footer-key"),
    ('unlisted="plaintext"', "--unlisted plaintext"),
    ("Give them a key in column_keys", "Give them a key with --column-key"),
    ("plaintext_columns", "--plaintext-column"),
    (' (see on_missing_key="null" and readable_columns())', ""),
    ("verify_footer_signature=False reads", "--allow unsigned-footers reads"),
    ("needs kms_instance_url", "needs FASTPQ_KMS_URL"),
    ("the address of Vault is kms_instance_url", "FASTPQ_KMS_URL has the address of Vault"),
    ("kms_instance_id is", "FASTPQ_KMS_INSTANCE is"),
    ("root=... binds files to their paths", "--table-root or --new-table-root binds files to their paths"),
    ("which allowed_algorithms does not list", "which is not permitted"),
    ("aad_prefix must be supplied", "--aad-prefix must supply it"),
    ("bloom_filter names unknown", "--bloom-filter names unknown"),
    ("If schema or sibling is given, its pages", "With --sibling FILE, its pages"),
    (", or read what is left with recover_table", ""),
    (': chunk_order="path" or "position" decides', ""),
    (': coerce_int96_timestamp_unit="stored" keeps their bytes', ": fastpq delete, sort, rechunk and compact keep their bytes"),
)
NO_COLUMN_KEY = "the column is encrypted, and there is no key for it"
# Beginnings of messages about plaintext files in a folder.
FOLDER_REFUSALS = ("plaintext and encrypted files", "all files are plaintext", "an interrupted encrypt_dataset")
_POLICY = re.compile(rf" \((?:{'|'.join(POLICY_OPTIONS.values())})=True [^()]*\)")  # the hint names the option of the command
_OTHER_FORMAT = re.compile(r"it looks like (CSV|JSON|an Arrow IPC|a NumPy archive)[^,]*(, which .* reads.*?)(?: \[path |$)")
_FORMATS_BY_LOOKS = {"CSV": "csv", "JSON": "jsonl", "an Arrow IPC": "arrow", "a NumPy archive": "npz"}
# What ``convert`` reads, by a name's ending.
CONVERTIBLE_ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npz": "npz",
}


class CommandFailure(Exception):
    """An error that the command line detects, not the library.

    Args:
        message: what is wrong.
        code: exit code.
        hint: what the user can do, or "".
    """

    def __init__(self, message: str, code: int = USAGE, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.code, self.hint = message, code, hint


class Failure(NamedTuple):
    """An error as the command reports it: the exit code, one sentence, and what the user can do, or ""."""

    code: int
    message: str
    hint: str = ""


def failure_of(error: BaseException) -> Failure:
    """Return how the command reports an exception, with the notes that were added to it."""
    failure = _failure_of(error)
    return failure._replace(message="; ".join([failure.message, *getattr(error, "__notes__", ())]))


def _failure_of(error: BaseException) -> Failure:
    if isinstance(error, CommandFailure):
        return Failure(error.code, error.message, error.hint)
    if isinstance(error, ParquetError):
        return Failure(_code_of(error), command_words(str(error)), _hint(error))
    if isinstance(error, OSError):
        return _system_failure(error)
    if isinstance(error, MemoryError):
        return Failure(SYSTEM, "there is not enough memory", "choose columns or rows: --columns, --where, head")
    if isinstance(error, ModuleNotFoundError):
        return Failure(UNSUPPORTED, f"the package {error.name} is not installed", f"pip install {error.name}")
    if isinstance(error, ValueError | TypeError) and str(error):
        return Failure(USAGE, str(error))
    if type(error).__module__.startswith("botocore."):      # s3fs lets them pass
        return Failure(SYSTEM, str(error), "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, give credentials")
    return Failure(DEFECT, f"{type(error).__name__}: {error}", "this is a defect of fastpq: please report it with --debug")


def _code_of(error: ParquetError) -> int:
    for kind, code in (
        (CryptoError, KEYS),
        (FormatError, BROKEN),
        (LimitError, BROKEN),
        (UnsupportedError, UNSUPPORTED),
        (SchemaError, USAGE),
        (RemoteError, SYSTEM),
    ):
        if isinstance(error, kind):
            return code
    return DEFECT


def command_words(message: str) -> str:
    """Return a message of the library with the command's options in the place of Python's."""
    for python, command in PYTHON_WORDS:
        message = message.replace(python, command)
    message = _POLICY.sub("", message)
    other_format = _OTHER_FORMAT.search(message)
    return message if other_format is None else message.replace(other_format[2], "")


def _hint(error: ParquetError) -> str:
    path = error.context.get("path")
    file = "-" if path == "bytes" else f"'{path}'" if path and " " in str(path) else path or "FILE"
    if isinstance(error, KeyAccessError):
        return _key_hint(error.message, file)
    if isinstance(error, TagVerificationError):
        return "the key or --aad-prefix is wrong, or somebody altered the file"
    if "and may have been put in the place" in error.message or error.message.startswith(FOLDER_REFUSALS):
        return "--allow plaintext-files goes on anyway"
    if word := next((word for word, option in POLICY_OPTIONS.items() if f"{option}=" in error.message), None):
        return f"--allow {word} reads it anyway"
    if isinstance(error, CryptoError) and "allowed_algorithms" in error.message:
        return "--allow ctr reads it anyway"
    if isinstance(error, FormatError):
        return _format_hint(error.message, str(file))
    if error.message.startswith("no key material file"):
        return f"fastpq rotate {file} writes the files of a folder again"
    if isinstance(error, SchemaError) and "column" in error.message and "did you mean" not in error.message:
        if _format_by_ending(str(path)):
            return f"the columns are those in {file}"
        return f"fastpq schema {file} lists the columns"
    return ""


def _key_hint(message: str, file: object) -> str:
    if message.startswith("the keyring does not open"):
        return f"FASTPQ_PASSPHRASE or --passphrase-fd N gives the passphrase; fastpq keys list {file} tries it"
    which_keys = f"fastpq keys inspect {file} shows what the file says about its keys"
    if message.startswith("the keyring has no master key"):
        names = "fastpq keys list KEYRING names its master keys"
        return names if file == "FILE" else f"{which_keys}; {names}"
    nulls = "; --on-missing-key null of head, tail, cat and sample reads nulls, skip of doctor leaves columns out"
    return f"{which_keys}; --keyring, --kms or FASTPQ_KEYS give them{nulls if message.startswith(NO_COLUMN_KEY) else ''}"


def _format_hint(message: str, file: str) -> str:
    if "not a Parquet file" in message:
        looks = _OTHER_FORMAT.search(message)
        by_ending = _format_by_ending(file.strip("'"))
        name = _FORMATS_BY_LOOKS[looks[1]] if looks else by_ending
        source = f"{file} --from {name}" if name != by_ending else file
        condition = " if each line is an object" if name == "jsonl" else ""
        return f"fastpq convert {source} -o OUT.parquet makes Parquet of it{condition}" if name else ""
    if "chunk_order=" in message:
        return "--chunk-order path takes the path in each chunk, --chunk-order position its place, as most readers do"
    return f"fastpq recover {file} -o OUT reads what is left of a damaged file"


def _format_by_ending(path: str) -> str:
    """Return the format that ``convert`` reads by a name's ending, or ""."""
    return CONVERTIBLE_ENDINGS.get(path[path.rfind(".") :].lower(), "")


def _system_failure(error: OSError) -> Failure:
    where = f": {error.filename}" if error.filename else ""
    if isinstance(error, FileNotFoundError):
        # an error of the library names the file in its text
        return Failure(SYSTEM, f"there is no such file{where}" if where or not str(error) else str(error))
    if isinstance(error, FileExistsError):
        return Failure(SYSTEM, f"the file exists already{where}")
    if isinstance(error, IsADirectoryError):
        return Failure(SYSTEM, f"this is a folder{where}", "this verb takes one file: name one in the folder")
    if isinstance(error, PermissionError):
        return Failure(SYSTEM, f"no permission{where}")
    if error.errno == errno.ENOSPC:
        return Failure(SYSTEM, f"there is no space left{where}")
    return Failure(SYSTEM, f"{error.strerror or str(error) or type(error).__name__}{where}")
