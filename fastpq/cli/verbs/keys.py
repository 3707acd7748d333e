"""Make and test keys, and tell which keys open a file.

Section: Keys
"""

from __future__ import annotations

import os
from typing import Any, TypedDict

import click

from fastpq.cli.amounts import count_text, seconds_text
from fastpq.cli.encryption_report import show_encryption, show_protections
from fastpq.cli.failures import BROKEN, USAGE, CommandFailure
from fastpq.cli.file_facts import EncryptionFacts, encryption_facts
from fastpq.cli.key_sources import NEW_PASSPHRASE_VARIABLE, PASSPHRASE_OPTIONS, SERVICE_OPTIONS, new_passphrase
from fastpq.cli.places import name_of_place, source_of
from fastpq.cli.terminal import Styled
from fastpq.cli.verb import Session, VerbGroup, verb


class KeyringFacts(TypedDict):
    """The master keys of a keyring.

    Attributes:
        keyring: the file.
        master_key_ids: identifiers.
    """

    keyring: str
    master_key_ids: list[str]


class RotationFacts(TypedDict):
    """Result of ``keys rotate``.

    Attributes:
        keyring: the keyring, or null for a key service.
        master_key_id: the master key that got a new version, or null if only files were wrapped again.
        version: number of the new version, or null if there is none.
        files: files whose keys were wrapped again.
    """

    keyring: str | None
    master_key_id: str | None
    version: int | None
    files: list[str]


class VersionState(TypedDict):
    """A version of a master key.

    Attributes:
        number: 1 for the first version.
        state: ``enabled``, ``disabled`` or ``destroyed``.
    """

    number: int
    state: str


class VersionFacts(TypedDict):
    """The versions of a master key.

    Attributes:
        keyring: the file.
        master_key_id: the master key.
        versions: all versions. The last one wraps new keys.
    """

    keyring: str | None
    master_key_id: str
    versions: list[VersionState]


class ServiceTestFacts(TypedDict):
    """A test of a key service.

    Attributes:
        master_key_id: the master key that wrapped and unwrapped a random key.
        wrapped_bytes: size of the wrapped key.
        wrap_seconds: duration of wrapping.
        unwrap_seconds: duration of unwrapping.
    """

    master_key_id: str
    wrapped_bytes: int
    wrap_seconds: float
    unwrap_seconds: float


@verb(
    examples=[
        ("fastpq keys inspect secret.parquet", "Who can open a file. No key is needed."),
        ("fastpq keys inspect folder --json", "The same for each file in a folder."),
    ],
    facts=EncryptionFacts,
    has_keys=False,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def _inspect(session: Session, files: tuple[str, ...]) -> None:
    """Tell how files are encrypted: algorithm, footer, AAD prefix, master keys, who wraps them, and which columns they open.

    No key is needed or used. What is told is not authenticated. An encrypted footer hides the columns: fastpq inspect shows them
    with keys. For a folder with several files a table shows one file in a row.
    """
    from fastpq.api.encryption_inspection import inspect_encryption
    from fastpq.datasets.discovery import NO_DATA

    number = 0
    for place in files:
        sources: list[Any] = [source_of(name) for name in session.files([place])] if not os.path.isdir(place) else [place]
        for source in sources:
            inspection = inspect_encryption(source, **session.reader_options)
            protections = [encryption_facts(file) for file in inspection.files]
            if isinstance(source, bytes):
                protections[0]["file"] = name_of_place(place)
            _show_protections(session, protections, number)
            number += len(protections)
            for path, problem in inspection.problems:
                session.note(Styled("! ", "warning"), f"{path}: {problem}")
                if not path.lower().endswith(NO_DATA):      # other files do not make a folder broken
                    session.exit_code = BROKEN


def _show_protections(session: Session, files: list[EncryptionFacts], number: int) -> None:
    """Print the facts about one file, or about the files in a folder. ``number`` counts the files before them."""
    if session.as_json:
        for facts in files:
            session.screen.json(facts)
    elif len(files) > 1:
        show_protections(session.screen, files)
    else:
        for facts in files:
            session.headline(facts["file"], number)
            show_encryption(session.screen, facts)


@verb(
    examples=[
        ("fastpq keys create new-keyring.json", "An empty keyring, whose passphrase is in FASTPQ_PASSPHRASE."),
        ("fastpq keys create keyring.json sales", "A master key in a keyring."),
    ],
    facts=KeyringFacts,
    key_option_names=PASSPHRASE_OPTIONS,
    reads_files=False,
)
@click.argument("keyring_file", metavar="KEYRING")
@click.argument("identifiers", nargs=-1, metavar="[ID]...")
@click.option(
    "--bits", type=click.Choice(["128", "192", "256"]), default="256", show_default=True, help="Length of the master keys."
)
def _create(session: Session, keyring_file: str, identifiers: tuple[str, ...], bits: str) -> None:
    """Make a keyring that only its owner can read, or add master keys to one. The passphrase comes as for --keyring."""
    from fastpq.encryption.keys.keyring import Keyring

    if os.path.exists(keyring_file):
        if not identifiers:
            raise FileExistsError(17, os.strerror(17), keyring_file)
        keyring = Keyring(keyring_file, session.keys.passphrase())
    else:
        keyring = Keyring.create(keyring_file, session.keys.passphrase(is_new=True))
    for identifier in identifiers:
        keyring.create_key(identifier, int(bits))
    _show_keyring(session, keyring_file, keyring.key_ids)


@verb(
    examples=[("fastpq keys list keyring.json", "The master keys in a keyring. No key is shown.")],
    facts=KeyringFacts,
    key_option_names=PASSPHRASE_OPTIONS,
    reads_files=False,
)
@click.argument("keyring_file", metavar="KEYRING")
def _list(session: Session, keyring_file: str) -> None:
    """List the identifiers of the master keys in a keyring."""
    from fastpq.encryption.keys.keyring import Keyring

    _show_keyring(session, keyring_file, Keyring(keyring_file, session.keys.passphrase()).key_ids)


def _show_keyring(session: Session, path: str, identifiers: list[str]) -> None:
    facts = KeyringFacts(keyring=path, master_key_ids=identifiers)
    session.emit(facts, lambda: session.screen.lines(identifiers) if identifiers else session.note("no master keys"))


@verb(
    examples=[("fastpq keys passphrase keyring.json", "Type the old and the new passphrase, or take them from the environment.")],
    facts=KeyringFacts,
    key_option_names=PASSPHRASE_OPTIONS,
    reads_files=False,
)
@click.argument("keyring_file", metavar="KEYRING")
@click.option(
    "--new-passphrase-fd",
    type=int,
    metavar="N",
    help=f"Read the new passphrase from a file descriptor [or {NEW_PASSPHRASE_VARIABLE}].",
)
def _passphrase(session: Session, keyring_file: str, new_passphrase_fd: int | None) -> None:
    """Protect a keyring with another passphrase. Programs that have the keyring open have to open it again.

    Copies of the old file still open with the old passphrase: destroy them, or rotate the master keys too.
    """
    from fastpq.encryption.keys.keyring import Keyring

    keyring = Keyring(keyring_file, session.keys.passphrase())
    keyring.change_passphrase(new_passphrase(new_passphrase_fd))
    facts = KeyringFacts(keyring=keyring_file, master_key_ids=keyring.key_ids)
    session.emit(facts, lambda: session.screen.line(f"{keyring_file} has the new passphrase"))


@verb(
    examples=[
        ("fastpq keys rotate kf --keyring keyring.json", "A new version of a master key. Old files stay readable."),
        ("fastpq keys rotate --files external --keyring keyring.json", "Wrap the keys of files again, with the newest versions."),
    ],
    facts=RotationFacts,
    key_option_names=SERVICE_OPTIONS,
    reads_files=False,
)
@click.argument("identifier", required=False, metavar="[ID]")
@click.option("--files", metavar="PATH", help="A file or folder with external keys, which are wrapped again.")
def _rotate(session: Session, identifier: str | None, files: str | None) -> None:
    """Add a version to a master key of a keyring, and wrap the keys of files again with the newest versions.

    The files themselves stay as they are: their keys must be external (encrypt --external-keys). Other files need fastpq rotate.
    """
    if identifier is None and files is None:
        raise CommandFailure("there is nothing to rotate", USAGE, "name a master key, or --files PATH")
    facts = RotationFacts(keyring=session.keys.keyring_path, master_key_id=identifier, version=None, files=[])
    if files is not None:       # before the keyring is changed
        from fastpq.encryption.keys.factory import files_with_material
        from fastpq.encryption.keys.store import MaterialPath

        files_with_material(MaterialPath(files))
    if identifier is not None:
        facts["version"] = session.keys.open_keyring().rotate_key(identifier)
    if files is not None:
        facts["files"] = session.keys.factory().rotate_master_keys(session.keys.connection(), files)
    session.emit(facts, lambda: _show_rotation(session, facts))


def _show_rotation(session: Session, facts: RotationFacts) -> None:
    if facts["version"] is not None:
        session.screen.line(f"{facts['master_key_id']}: version {facts['version']}")
    if facts["files"]:
        session.screen.line(f"{count_text(len(facts['files']), 'file')} under the newest versions")


@verb(
    examples=[
        ("fastpq keys versions kf --keyring keyring.json", "Which versions a master key has, and their state."),
        ("fastpq keys versions kf --enable 1 --keyring keyring.json", "Allow a version again that was disabled."),
    ],
    facts=VersionFacts,
    key_option_names=("keyring", *PASSPHRASE_OPTIONS),
    reads_files=False,
)
@click.argument("identifier", metavar="ID")
@click.option("--disable", type=click.IntRange(1), metavar="N", help="Refuse version N. Programs with a cached key still use it.")
@click.option("--enable", type=click.IntRange(1), metavar="N", help="Allow version N again.")
@click.option(
    "--destroy", type=click.IntRange(1), metavar="N", help="Remove version N, which is disabled and not the newest, for ever."
)
def _versions(session: Session, identifier: str, disable: int | None, enable: int | None, destroy: int | None) -> None:
    """List the versions of a master key of a keyring, or disable, enable or destroy one.

    A keyring does not know which files need a version. Disable it, and read all files, before you destroy it.
    """
    if sum(number is not None for number in (disable, enable, destroy)) > 1:
        raise CommandFailure("several changes at once", USAGE, "give one of --disable, --enable and --destroy")
    keyring = session.keys.open_keyring()
    if disable is not None:
        keyring.disable_version(identifier, disable)
    elif enable is not None:
        keyring.enable_version(identifier, enable)
    elif destroy is not None:
        keyring.destroy_version(identifier, destroy)
    versions = [VersionState(number=number, state=state) for number, state in keyring.versions(identifier).items()]
    facts = VersionFacts(keyring=session.keys.keyring_path, master_key_id=identifier, versions=versions)
    session.emit(facts, lambda: session.screen.lines([f"{each['number']} {each['state']}" for each in versions]))


@verb(
    examples=[
        ("fastpq keys test kf --keyring keyring.json", "Does a key service wrap and unwrap, and how long does it take?"),
    ],
    facts=ServiceTestFacts,
    key_option_names=SERVICE_OPTIONS,
    reads_files=False,
)
@click.argument("identifier", metavar="ID")
def _test(session: Session, identifier: str) -> None:
    """Wrap a random key with a master key, unwrap it, and compare. Works with a keyring and with a key service."""
    from secrets import token_bytes
    from time import perf_counter

    client = session.keys.client_maker()(session.keys.connection()) if session.keys.has_service else None
    if client is None:
        raise CommandFailure("no key service is named", USAGE, "--keyring FILE or --kms NAME")
    calls, key, what = session.keys.service_calls(), token_bytes(16), f"a key with the master key {identifier!r}"
    start = perf_counter()
    wrapped_key = calls.call(identifier, lambda: client.wrap_key(key, identifier), f"wrap {what}")
    middle = perf_counter()
    is_same = calls.call(identifier, lambda: bytes(client.unwrap_key(wrapped_key, identifier)), f"unwrap {what}") == key
    end = perf_counter()
    if not is_same:
        raise CommandFailure(f"the service unwraps another key than it wrapped with {identifier!r}", BROKEN)
    facts = ServiceTestFacts(
        master_key_id=identifier, wrapped_bytes=len(wrapped_key), wrap_seconds=middle - start, unwrap_seconds=end - middle
    )
    times = f"wraps in {seconds_text(facts['wrap_seconds'])}, unwraps in {seconds_text(facts['unwrap_seconds'])}"
    session.emit(facts, lambda: session.screen.line(Styled("ok", "good"), f"  {identifier} {times}"))


command = VerbGroup(
    "Make and test keys, and tell which keys open a file.",
    ("inspect", _inspect),
    ("create", _create),
    ("list", _list),
    ("passphrase", _passphrase),
    ("rotate", _rotate),
    ("versions", _versions),
    ("test", _test),
)
