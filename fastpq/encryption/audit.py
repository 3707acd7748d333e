"""AuditLog: who opened which file and column, with which key. A record never holds a key."""

from __future__ import annotations

import functools
import os
import posixpath
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self
from urllib.parse import unquote, urlsplit

from fastpq.common.lazy import LazyModule
from fastpq.encryption.tracebacks import KeyHolder, hides_arguments
from fastpq.errors import CryptoError, KeyAccessError, ParquetError

Operation = Literal["wrap", "unwrap", "cached", "explicit", "retrieved", "footer key", "rotate"]
Access = Literal["read", "write"]
Outcome = Literal["ok", "denied", "unavailable", "failed"]

NO_HASH = "0" * 64      # stands before the first record of a chain
SMALLEST_HASH_KEY = 16  # in bytes
LONGEST_NAME = 200      # characters of a name or reason that a file or a client chose

# Every writer imports this module, but few write to an audit log.
if TYPE_CHECKING:
    import getpass
    import hashlib
    import hmac
    import json
    import logging
    import socket
else:
    getpass, hashlib, hmac, json, logging, socket = map(
        LazyModule, ("getpass", "hashlib", "hmac", "json", "logging", "socket"))


class KeyUse(NamedTuple):
    """How a key was found.

    Attributes:
        operation: as in AuditRecord.
        key_id: as in AuditRecord.
        client: as in AuditRecord.
    """

    operation: Operation
    key_id: str | None = None
    client: str | None = None


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One use of a key, for one file and column.

    Attributes:
        sequence: number of the record in its AuditLog. The first is 1.
        time: time of the use in UTC, in ISO 8601 with microseconds.
        operation: how the key was found. ``"wrap"``: made, and wrapped by a key service. ``"unwrap"``: unwrapped by a service.
            ``"cached"``: opened or wrapped with a key in the cache, without a call. ``"explicit"``: passed by the caller.
            ``"retrieved"``: returned by a key retriever. ``"footer key"``: the column has the footer's key. ``"rotate"``: wrapped
            by a newer version of its master key.
        access: ``"read"``: the key opens data that are there. ``"write"``: the key protects a new file, or is wrapped again.
        file: path or URL. None if the key was wrapped for a file whose path is not known yet.
        column: dotted path. None for the footer. A rotation names the entry in the material file.
        key_id: identifier of the master key. For keys without a key service, the key metadata in the file, or None. For a column
            with the footer's key it is that of the footer.
        client: class of the key service client, or name of the key retriever, or None.
        outcome: ``"ok"``; ``"denied"``: the reader does not have the key; ``"unavailable"``: the key service did not answer;
            ``"failed"``: another error.
        reason: class of the error and what it says, or None.
        host: name of the machine.
        process: number of the process.
        task: Spark's application, stage, partition and attempt on an executor, or None.
        user: name of the user.
        previous: hash of the record before this one, or None without a hash chain.
        hash: SHA-256 or HMAC-SHA-256 of all other members, as ``compute_hash`` returns it, or None without a hash chain.
    """

    sequence: int
    time: str
    operation: Operation
    access: Access
    file: str | None
    column: str | None
    key_id: str | None
    client: str | None
    outcome: Outcome
    reason: str | None
    host: str
    process: int
    task: str | None
    user: str | None
    previous: str | None = None
    hash: str | None = None

    def to_json(self) -> str:
        """Return the record as one line of JSON, in ASCII."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Return the record in a line that ``to_json`` returned.

        Args:
            line: the line. A line feed at its end is accepted.

        Raises:
            ValueError: the line is not a record.
        """
        try:
            record = cls(**json.loads(line))
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError("the text is not an audit record in JSON") from error
        if type(record.sequence) is not int:
            raise ValueError("the sequence of an audit record must be a whole number")
        return record

    @hides_arguments
    def compute_hash(self, hash_key: bytes | None = None) -> str:
        """Return the SHA-256 of all members but ``hash``, in hexadecimal digits.

        Args:
            hash_key: the key of the log. Then it is the HMAC-SHA-256.

        Raises:
            TypeError, ValueError: the key is not bytes, or has fewer than 16 bytes.
        """
        return _hash(self, _mac(hash_key))


class AuditLog(KeyHolder):
    """Records each use of a key: once for a file and column, each time that a file is opened or written.

    If a key could not be used and then can, there is a record for both.

    Pass it as ``audit`` to a CryptoFactory, to FileDecryptionProperties or to FileEncryptionProperties. Records come one at a
    time, also from several threads.

    Args:
        write: a function that takes an AuditRecord, or a logging.Logger, which gets the record as a line of JSON: at level INFO
            if the key could be used, else at level WARNING.
        mandatory: refuse the key if ``write`` raises an exception. If False, the exception is logged and the read goes on.
        hash_chain: give each record the hash of the one before. A chain belongs to one process: a forked process, or a second
            program, needs a log of its own. Without ``hash_key``, **whoever can write the log can also compute the chain anew**.
        hash_key: secret of 16 bytes or more. Then the hashes are HMACs, and nobody without the secret can alter a record so that
            ``verify`` accepts it. It implies ``hash_chain``.
        after: the last record of an earlier log that this one continues, as ``verify`` takes records, or None. If there is a
            chain, the earlier log has one too, with the same ``hash_key``.
        task: function that returns the present task of a distributed program as text, or None outside of a task.

    Raises:
        TypeError: ``write`` is neither a function nor a logger, or ``hash_key`` is not bytes.
        ValueError: ``mandatory`` with a logger. Loggers swallow the errors of their handlers. Or ``hash_key`` is too short, or
            ``after`` is not a record.
        CryptoError: the hash of ``after`` is not that of a chain with this ``hash_key``.
    """

    @hides_arguments
    def __init__(
        self,
        write: Callable[[AuditRecord], Any] | logging.Logger,
        *,
        mandatory: bool = False,
        hash_chain: bool = False,
        hash_key: bytes | None = None,
        after: AuditRecord | Mapping[str, Any] | str | None = None,
        task: Callable[[], str | None] | None = None,
    ) -> None:
        if isinstance(write, logging.Logger):
            if mandatory:
                raise ValueError("mandatory=True needs a function: a logger swallows the errors of its handlers")
            self._write: Callable[[AuditRecord], Any] = functools.partial(_log, write)
        elif callable(write):
            self._write = write
        else:
            raise TypeError(f"an audit log writes to a function or a logging.Logger, not to a {type(write).__name__}")
        self._mandatory, self._has_chain, self._task = mandatory, hash_chain or hash_key is not None, task
        self._mac = _mac(hash_key)
        last = None if after is None else _parsed(after)
        if last is not None and self._has_chain and last.hash != _hash(last, self._mac):
            raise CryptoError("after is not the last record of a chain with this hash_key, or was altered")
        self._sequence = 0 if last is None else last.sequence
        self._hash = NO_HASH if last is None or last.hash is None else last.hash
        self._lock = threading.RLock()

    def record(
        self, use: KeyUse, access: Access, file: str | None, column: str | None, error: BaseException | None = None
    ) -> None:
        """Write a record.

        Args:
            use: how the key was found.
            access, file, column: as in AuditRecord.
            error: why the key could not be used, or None.

        Raises:
            KeyAccessError: the record could not be written, and the log is mandatory.
        """
        with self._lock:
            record = AuditRecord(
                self._sequence + 1,
                datetime.now(UTC).isoformat(timespec="microseconds"),
                use.operation,
                access,
                _shortened(file),
                _shortened(column),
                _shortened(use.key_id),
                _shortened(use.client),
                _outcome(error),
                _reason(error),
                _host(),
                os.getpid(),
                None if self._task is None else self._task(),
                _user(),
                self._hash if self._has_chain else None,
            )
            if self._has_chain:
                record = replace(record, hash=_hash(record, self._mac))
            try:
                self._write(record)
            except Exception as failure:
                if self._mandatory:
                    words = _shortened(f"{type(failure).__name__}: {failure}".removesuffix(": "))
                    raise KeyAccessError(f"the audit log is mandatory, and failed: {words}") from failure
                logging.getLogger("fastpq.audit").warning("the audit log failed: %s", type(failure).__name__)
            self._sequence = record.sequence
            self._hash = record.hash or self._hash

    @staticmethod
    @hides_arguments
    def verify(
        records: Iterable[AuditRecord | Mapping[str, Any] | str],
        after: AuditRecord | Mapping[str, Any] | str | None = None,
        *,
        hash_key: bytes | None = None,
        last_hash: str | None = None,
        count: int | None = None,
    ) -> int:
        """Check that no record of a chained log was removed, added, moved or altered.

        Without ``hash_key`` and without ``last_hash``, this finds mistakes but no forgeries: whoever can write the log can
        compute all hashes anew. A chain shows no removal at its end, unless you pass ``last_hash`` or ``count``.

        Args:
            records: the records in order, as objects, as dicts or as lines of JSON.
            after: the record before the first, or None for the beginning of a log.
            hash_key: the key of the log, if it has one.
            last_hash: hash of the last record, which you have kept at another place.
            count: number of the records, which you have kept at another place.

        Returns:
            The number of records.

        Raises:
            CryptoError: a record does not follow the one before, or was altered. Or ``hash_key`` is not that of the log.
            TypeError, ValueError: ``hash_key`` is not bytes, or too short. Or ``after`` is not a record.
        """
        mac, last = _mac(hash_key), None if after is None else _parsed(after)
        sequence, previous = (0, NO_HASH) if last is None else (last.sequence, last.hash)
        length = 0
        for entry in records:
            try:
                record = _parsed(entry)
            except (TypeError, ValueError) as error:
                raise CryptoError(f"the audit log was altered: record {sequence + 1} is not a record") from error
            if record.sequence != sequence + 1 or record.previous != previous or record.hash != _hash(record, mac):
                raise CryptoError(
                    f"the audit log was altered: record {sequence + 1} is missing, or is another than was written"
                    " (or the log has another hash_key)"
                )
            sequence, previous, length = record.sequence, record.hash, length + 1
        if count not in (None, length):
            raise CryptoError(f"the audit log was altered: it has {length} records, and not {count}")
        if last_hash not in (None, previous):
            raise CryptoError("the audit log was altered: its last record does not have last_hash")
        return length

    def __repr__(self) -> str:
        return f"<AuditLog after {self._sequence} records>"


class FileAudit:
    """The records for one open file. Each column has at most one, and so has the footer.

    A column whose key could not be used has a second record if the key can be used later.

    Args:
        log: the log.
        access: as in AuditRecord.
        file: path or URL, or None if it is not known.
    """

    def __init__(self, log: AuditLog, access: Access, file: str | None) -> None:
        self._log, self._access, self._file = log, access, file
        self._has_success: dict[str | None, bool] = {}      # whether the key could be used, for each recorded column
        self._lock = threading.RLock()

    @classmethod
    def of(cls, log: AuditLog | None, access: Access, file: str | None) -> FileAudit | None:
        """Return the records for a file, or None without a log."""
        return None if log is None else cls(log, access, file)

    def record(self, use: KeyUse, column: str | None, error: BaseException | None = None) -> None:
        """Write a record, if the column has none. Arguments and errors are those of AuditLog.record.

        Other threads wait until the record is written, because a mandatory log refuses the key to them too if it fails.
        """
        with self._lock:
            has_success = self._has_success.get(column)
            if has_success or (has_success is False and error is not None):
                return
            self._log.record(use, self._access, self._file, column, error)
            self._has_success[column] = error is None


def is_same_file(one: str | None, other: str | None) -> bool:
    """Return whether two names certainly name the same file. A path may be relative, and a URL may lack its scheme.

    Args:
        one, other: paths or URLs. None is unknown.
    """
    if one is None or other is None:
        return False
    return one == other or _full_path(one) == _full_path(other)


def _full_path(name: str) -> str:
    if name.startswith("file://"):
        name = unquote(urlsplit(name).path)
    scheme, separator, path = name.partition("://")
    return f"{scheme}://{posixpath.normpath(path)}" if separator else os.path.realpath(name)


def check_audit(audit: object) -> None:
    """Refuse an object that is not an AuditLog. None is accepted."""
    if audit is not None and not isinstance(audit, AuditLog):
        raise TypeError(f"audit must be a fastpq.encryption.AuditLog, not a {type(audit).__name__}")


def name_of_key(key_metadata: bytes | None) -> str | None:
    """Return the name of a key that does not come from a key service: its key metadata as text, or as hexadecimal digits."""
    if key_metadata is None:
        return None
    try:
        text = key_metadata.decode()
    except UnicodeDecodeError:
        return key_metadata.hex()
    return text if text.isprintable() else key_metadata.hex()


def _log(logger: logging.Logger, record: AuditRecord) -> None:
    logger.log(logging.INFO if record.outcome == "ok" else logging.WARNING, "%s", record.to_json())


def _outcome(error: BaseException | None) -> Outcome:
    if error is None:
        return "ok"
    if isinstance(error, KeyAccessError) and error.is_denied:
        return "denied"
    return "unavailable" if isinstance(error, KeyAccessError) and error.is_unavailable else "failed"


def _reason(error: BaseException | None) -> str | None:
    """Return the class of an error. fastpq's own errors also say what happened, without keys. Others might show one."""
    if error is None:
        return None
    return _shortened(f"{type(error).__name__}: {error.message}" if isinstance(error, ParquetError) else type(error).__name__)


def _shortened(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}..."


def _parsed(entry: AuditRecord | Mapping[str, Any] | str) -> AuditRecord:
    """Return a record that is there as an object, as a dict or as a line of JSON."""
    if isinstance(entry, AuditRecord):
        return entry
    return AuditRecord.from_json(entry if isinstance(entry, str) else json.dumps(dict(entry)))


@hides_arguments
def _mac(hash_key: bytes | None) -> hmac.HMAC | None:
    """Return the HMAC that hashes the records of a log begin with, or None without a key. It does not show the key."""
    if hash_key is None:
        return None
    if not isinstance(hash_key, bytes | bytearray):
        raise TypeError(f"hash_key must be bytes, not {type(hash_key).__name__}")
    if len(hash_key) < SMALLEST_HASH_KEY:
        raise ValueError(f"hash_key must have {SMALLEST_HASH_KEY} bytes or more, and has {len(hash_key)}")
    return hmac.new(hash_key, digestmod="sha256")


def _hash(record: AuditRecord, mac: hmac.HMAC | None) -> str:
    """Return the hash of a record in a chain."""
    members = {name: value for name, value in asdict(record).items() if name != "hash"}
    text = json.dumps(members, sort_keys=True, separators=(",", ":")).encode()
    if mac is None:
        return hashlib.sha256(text).hexdigest()
    mac = mac.copy()
    mac.update(text)
    return mac.hexdigest()


@functools.cache
def _host() -> str:
    return socket.gethostname()


@functools.cache
def _user() -> str | None:
    try:
        return os.environ.get("SPARK_USER") or getpass.getuser()
    except (KeyError, OSError):     # a user id without a name, as in some containers
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else None
