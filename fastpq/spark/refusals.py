"""Refuse secrets in data source options, because Spark writes options into plans, event logs and pickles."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping

from fastpq.spark.core import SchemaError

TOKEN_VARIABLE = "FASTPQ_KEY_ACCESS_TOKEN"
KEY_SIZES = (16, 24, 32)    # bytes
FEWEST_LETTERS = 6          # a key has more distinct letters in base64 than this, unless it is a pattern
LARGEST_WORDY_PART = 0.8    # share of letters in words that names reach, but only 1 in 1,000 random keys

_PREFIXES = ("parquet.encryption.", "kms.conf.")
_WHOLE_NAMES = frozenset(
    {"footer_key", "column_keys", "footerkey", "columnkeys", "encryption_properties", "decryption_properties", "key", "keys"}
)
# Searched for in a name without its separators.
_WORDS = (
    "secret", "password", "passwd", "passphrase", "credential", "accesstoken", "keylist", "apikey", "privatekey", "accesskey",
    "accountkey", "sharedkey", "sessionkey", "signingkey", "storagekey", "bearer", "authorization",
)
_ENDS = ("token", "pin", "pwd")     # Spark folds userPin to userpin
_PARTS = frozenset({"token", "tokens", "pin", "pins", "pwd", "pass", "jwt", "sas", "psk", "otp", "auth"})
# Last name parts of options that hold a secret's place or kind, not the secret.
_POINTERS = frozenset(
    {
        "file", "path", "label", "name", "id", "arn", "alias", "url", "uri", "variable", "env", "lifetime", "seconds", "type",
        "length", "bits", "profile", "provider", "class", "source", "role",
    }
)
_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_IN_URL = re.compile(
    r"://[^/\s@\"',:]*:[^/\s@\"',]+@"
    r"|\bs3[an]?://[^/\s@\"',:]+:[^\s@\"',]+@"      # AWS secret keys contain slashes
    r"|://\S*[?&;](sig|signature|x-amz-\w[\w-]*|x-goog-\w[\w-]*|[\w-]*token|[\w-]*secret|pass\w*|pwd|api_?key|key)=",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY|\bhv[sbr]\.[\w-]{20}|\beyJ[\w-]+\.eyJ[\w-]+\.")    # PEM, Vault, JWT
_WORD = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}|[0-9]{4,}")
_SEPARATED_HEX = re.compile(r"[0-9a-fA-F]{2}([: ][0-9a-fA-F]{2})+")


def is_secret_option(name: str) -> bool:
    """Whether an option with this name would carry a secret, judged by words in the name."""
    lower_name = name.lower()
    own = next((name[len(prefix) :] for prefix in _PREFIXES if lower_name.startswith(prefix)), name)
    parts = [part.lower() for part in _NAME_PART.findall(own)]
    if not parts or parts[-1] in _POINTERS or lower_name.endswith("file"):      # a secret's place, not the secret
        return False
    if lower_name in _WHOLE_NAMES or (lower_name.startswith("kms.conf.") and own.lower() in _WHOLE_NAMES):
        return True
    letters = "".join(parts)
    return not _PARTS.isdisjoint(parts) or letters.endswith(_ENDS) or any(word in letters for word in _WORDS)


def refuse_secrets(options: Mapping[str, str], keyless: Iterable[str] = ()) -> None:
    """Refuse options whose names or values look like secrets.

    Args:
        options: texts by name.
        keyless: options whose values may look like keys, such as paths and names. Their own names are in lower case and without
            underscores.

    Raises:
        SchemaError: an option would carry a secret. The message hides the value.
    """
    for name, value in options.items():
        if is_secret_option(name):
            _refuse(f"the option {name!r} would carry a secret")
        if _IN_URL.search(value) or _TOKEN.search(value):
            _refuse(f"the value of the option {name!r} holds a secret: a password or token")
        plain_name = name.lower().replace("_", "")
        if plain_name not in keyless and not plain_name.endswith("file") and looks_like_key(value):
            _refuse(f"the value of the option {name!r} looks like a key")


def refuse_key(identifier: str) -> None:
    """Refuse a key in place of a master key's identifier, which is hex or base64 text with a key's length.

    Raises:
        SchemaError: the identifier is a key. The message hides the key.
    """
    if looks_like_key(identifier):
        raise SchemaError(
            "an identifier of a master key was expected, and what was given looks like a key itself. Keys must not be in "
            "options, which Spark writes into plans and logs: keep the key in a key service and give its name there"
        )


def looks_like_key(text: str) -> bool:
    """Whether text is a 16, 24 or 32 byte key in hex or base64. A name made from words is not, even if it is valid base64."""
    text = text.strip()
    return _is_hex_key(text) or _is_base64_key(text)


def _is_hex_key(text: str) -> bool:
    digits = text[2:] if text[:2] in ("0x", "0X") else text
    if _SEPARATED_HEX.fullmatch(digits):
        digits = digits.replace(":", "").replace(" ", "")
    return len(digits) in {2 * size for size in KEY_SIZES} and all(letter in "0123456789abcdefABCDEF" for letter in digits)


def _is_base64_key(text: str) -> bool:
    bare = text.rstrip("=")
    standard = bare.replace("-", "+").replace("_", "/")
    try:
        key = base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    if len(key) not in KEY_SIZES or base64.b64encode(key).decode().rstrip("=") != standard:
        return False
    if len(text) > len(bare) or len(set(bare)) <= FEWEST_LETTERS:
        return True
    wordy = sum(len(word) for word in _WORD.findall(bare)) / len(bare)
    return bare != bare.lower() and bare != bare.upper() and wordy < LARGEST_WORDY_PART


def _refuse(problem: str) -> None:
    raise SchemaError(
        f"{problem}, and Spark writes options into plans, event logs and pickles. Name master keys by their identifiers "
        "(parquet.encryption.footer.key, parquet.encryption.column.keys) and a client (kms.client); its credentials belong in "
        f"the executors' environment ({TOKEN_VARIABLE}) or in a file"
    )
