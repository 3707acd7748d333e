"""Put a folder under new versions of its master keys or new keys.

Section: Keys
"""

from __future__ import annotations

from typing import Any

import click

from fastpq.cli.folder_keys import (
    KeyChangeFacts,
    check_folder,
    folder_options,
    show_key_changes,
    split_names,
    trusted_keys_option,
)
from fastpq.cli.verb import Session, verb
from fastpq.cli.writing_options import dry_run_option, encryption_options, new_dataset_encryption


@verb(
    examples=[
        (
            "fastpq rotate sealed --keyring keyring.json --trusted-keys kf,kc,kn --table-id items",
            "Under the newest versions of the master keys that each file has.",
        ),
        (
            "fastpq rotate sealed --keyring keyring.json --table-id items --footer-key kn --new-table-id items --dry-run",
            "What another master key for all files would change.",
        ),
    ],
    facts=KeyChangeFacts,
)
@click.argument("folder", metavar="FOLDER")
@trusted_keys_option
@click.option("--new-data-keys", is_flag=True, help="Encrypt files again too whose wrapped keys lie beside them.")
@dry_run_option
@encryption_options
def command(
    session: Session, folder: str, trusted_keys: str | None, new_data_keys: bool, dry_run: bool, **values: Any
) -> None:
    """Encrypt the files of a folder under new data keys, page by page. Keys that lie beside files are wrapped again instead.

    Without a key for the new files (--footer-key or --new-keys-fd), each file keeps its master keys, and --trusted-keys has to
    list them: under a name that somebody else wrote into a file, the new keys would be theirs. Each file is replaced in one step.
    If the call is interrupted, the same call does the rest.
    """
    from fastpq.datasets.key_changes import rotate_dataset

    check_folder(folder)
    encryption = new_dataset_encryption(values, session.keys)
    keys = session.keys.dataset_decryption(split_names(trusted_keys))
    with session.progress("rotating", "files") as bar:
        report = rotate_dataset(
            folder, keys, encryption, new_data_keys=new_data_keys, **folder_options(session, dry_run=dry_run, bar=bar))
    show_key_changes(session, folder, report, dry_run=dry_run)
