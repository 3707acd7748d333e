"""Shows how a file is encrypted."""

from __future__ import annotations

from fastpq.cli.amounts import count_text, size_text
from fastpq.cli.file_facts import EncryptionFacts, KeyFacts, readable_bytes
from fastpq.cli.terminal import Part, Screen, Styled

_FOOTERS = {
    "plaintext": "not encrypted",
    "signed": "readable without a key, and signed",
    "encrypted": "encrypted",
}
MOST_COLUMNS = 40


def show_encryption(screen: Screen, facts: EncryptionFacts, *, is_brief: bool = False) -> None:
    """Print the facts, and below them a table of keys.

    Args:
        screen: where to print.
        facts: the facts.
        is_brief: whether to leave out the size of the footer.
    """
    rows: list[tuple[str, Part]] = [("encryption", facts["algorithm"] or "none")]
    size = "" if is_brief else f", {size_text(facts['footer_bytes'])}"
    rows.append(("footer", _FOOTERS[facts["footer"]] + size))
    if facts["algorithm"] is not None:
        rows.append(
            ("master keys", _master_keys(facts))
        )
        rows += _services(facts)
        if facts["needs_aad_prefix"]:
            rows.append(("AAD prefix", "not stored: the reader supplies it (--aad-prefix)"))
        elif facts["aad_prefix"] is not None:
            rows.append(("AAD prefix", f"stored: {readable_bytes(bytes.fromhex(facts['aad_prefix']))}"))
    if facts["material_file"] is not None:
        rows.append(("key material", facts["material_file"]))
    if facts["columns_hidden"]:
        rows.append(("columns", "hidden in the encrypted footer"))
    screen.facts(rows, indent=2)
    if len(facts["keys"]) > 1 and facts["algorithm"] is not None:
        screen.blank()
        _show_keys(screen, facts["keys"])


def show_protections(screen: Screen, files: list[EncryptionFacts]) -> None:
    """Print a table with a row for each of several files."""
    from fastpq.cli.text_table import TableColumn, number, path, print_facts, text

    print_facts(screen, files, [
        (path("file"), lambda each: each["file"]),
        (TableColumn("footer"), lambda each: each["footer"]),
        (TableColumn("algorithm", importance=4), lambda each: each["algorithm"] or ""),
        (text("master keys"), lambda each: ", ".join(each["master_key_ids"]) + (" and hidden ones" if _hides_keys(each) else "")),
        (number("in the clear", 5), _plaintext_columns),
    ])


def _plaintext_columns(facts: EncryptionFacts) -> str:
    """Return how many columns are not encrypted, as text."""
    if facts["columns_hidden"]:
        return "hidden"
    columns = [key for key in facts["keys"] if key["part"] == "column"]
    return f"{sum(key['key'] == 'none' for key in columns):,} of {len(columns):,}"


def _master_keys(facts: EncryptionFacts) -> str:
    """Return the master keys that a file needs, as text. An encrypted footer can hide those of the columns."""
    names = ", ".join(facts["master_key_ids"])
    if names and _hides_keys(facts):
        return f"{names}, and those of columns, if they have others: the encrypted footer hides them"
    return names or _without_master_keys(facts["keys"])


def _hides_keys(facts: EncryptionFacts) -> bool:
    """Return whether columns may have keys that are not among the facts."""
    has_all_keys = facts["material_file"] is not None and not any(key["problem"] for key in facts["keys"])
    return facts["columns_hidden"] and not has_all_keys


def _without_master_keys(keys: list[KeyFacts]) -> str:
    if any(key["key_name"] for key in keys):
        return "none: the writing application names its keys by the key metadata below"
    return "none named: the keys are explicit"


def _services(facts: EncryptionFacts) -> list[tuple[str, Part]]:
    names = {
        " at ".join(filter(None, (key["kms_instance_id"], key["kms_instance_url"])))
        for key in facts["keys"]
        if key["kms_instance_id"] or key["kms_instance_url"]
    } - {"DEFAULT at DEFAULT"}
    return [("key service", ", ".join(sorted(names)))] if names else []


def _show_keys(screen: Screen, keys: list[KeyFacts]) -> None:
    from fastpq.cli.text_table import TableColumn, path, print_table, text

    columns = [path("opens"), TableColumn("key"), text("master key"), TableColumn("wrapping", importance=4), text("problem", 3)]
    if any(key["key_name"] for key in keys):
        columns[2] = text("key metadata")
    rows: list[list[Part]] = []
    for key in keys[: MOST_COLUMNS + 1]:
        kind: Part = (
            Styled("in the clear", "warning")
            if key["key"] == "none"
            else {"footer": "footer key", "column": "own key"}[key["key"]]
        )
        place = " (external)" if key["external"] else ""
        wrapping = "" if key["wrapping"] is None else key["wrapping"] + place
        rows.append([key["column"], kind, key["master_key_id"] or key["key_name"] or "", wrapping, key["problem"] or ""])
    print_table(screen, columns, rows, indent=2)
    if len(keys) > MOST_COLUMNS + 1:
        screen.line("  ", Styled(f"and {count_text(len(keys) - MOST_COLUMNS - 1, 'more column')}: --json has all", "dim"))
