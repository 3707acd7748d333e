"""Parses ``--where`` into filters: ``price < 2.5 and name in ('a', 'b')``. Nothing is evaluated as Python.

Grammar::

    condition  = alternative ("or" alternative)*
    alternative = part ("and" part)*
    part       = "not" part | "(" condition ")" | test
    test       = column ("==" | "=" | "!=" | "<>" | "<" | "<=" | ">" | ">=") value
               | column ["not"] "in" "(" value ("," value)* ")"
               | column "is" ["not"] "null"
               | column "between" value "and" value
               | column ("starts with" | "like") text
    column     = name | name "." name ... | "`any text`" | '"any text"'
    value      = number | 'text' | true | false | date '2024-01-31' | timestamp '2024-01-31 12:00:00'
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Any, NamedTuple, NoReturn

from fastpq.cli.failures import USAGE, CommandFailure

TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>'(?:[^']|'')*')
  | (?P<column>`[^`]+`|"[^"]+")
  | (?P<number>[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<sign>==|!=|<>|<=|>=|=|<|>|\(|\)|,)
  | (?P<word>[^\W\d][\w.\-]*)
    )""",
    re.VERBOSE,
)
MOST_NESTED = 100
LONGEST = 100_000  # characters
_COMPARISONS = {"==": "==", "=": "==", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_NEGATIONS = {
    "==": "!=",
    "!=": "==",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "in": "not in",
    "not in": "in",
    "is null": "is not null",
    "is not null": "is null",
}


class Token(NamedTuple):
    """One word of a condition: its kind (a group of ``TOKEN``), its text, and where it begins."""

    kind: str
    text: str
    start: int


def parse_where(text: str) -> Any:
    """Return the filters for a condition, as ``ParquetFile.read`` takes them.

    Raises:
        CommandFailure: the text is not a condition.
    """
    if len(text) > LONGEST:
        raise CommandFailure(f"--where has {len(text):,} characters, and at most {LONGEST:,} are allowed")
    return _Parser(text).parse()


class _Parser:
    """Parser for one condition. ``_next`` is the number of the next token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0
        self._depth = 0

    def parse(self) -> Any:
        filters = self._condition(False)
        if self._next < len(self._tokens):
            self._refuse("the condition goes on with")
        return filters

    def _split(self) -> list[Token]:
        tokens, position = [], 0
        text = self._text.rstrip()
        while position < len(text):
            match = TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                raise self._error("this is not understood", position)
            tokens.append(Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
            position = match.end()
        return tokens

    def _condition(self, is_negated: bool) -> Any:
        from fastpq.filters.combinations import And, Or

        parts = [self._conjunction(is_negated)]
        while self._take_word("or"):
            parts.append(self._conjunction(is_negated))
        return parts[0] if len(parts) == 1 else (And if is_negated else Or)(*parts)

    def _conjunction(self, is_negated: bool) -> Any:
        from fastpq.filters.combinations import And, Or

        parts = [self._part(is_negated)]
        while self._take_word("and"):
            parts.append(self._part(is_negated))
        return parts[0] if len(parts) == 1 else (Or if is_negated else And)(*parts)

    def _part(self, is_negated: bool) -> Any:
        self._depth += 1
        if self._depth > MOST_NESTED:
            self._refuse(f"the condition is nested more than {MOST_NESTED} deep at")
        try:
            if self._take_word("not"):
                return self._part(not is_negated)
            if self._take_sign("("):
                filters = self._condition(is_negated)
                self._expect_sign(")")
                return filters
            return self._test(is_negated)
        finally:
            self._depth -= 1

    def _test(self, is_negated: bool) -> Any:
        column = self._column()
        token = self._peek()
        if token.kind == "sign" and token.text in _COMPARISONS:
            self._next += 1
            return self._finished((column, _COMPARISONS[token.text], self._value()), is_negated)
        if self._take_word("is"):
            is_not = self._take_word("not")
            if not self._take_word("null"):
                self._refuse("null is expected instead of")
            return self._finished((column, "is not null" if is_not else "is null"), is_negated)
        if self._take_word("between"):
            low = self._value()
            if not self._take_word("and"):
                self._refuse("and is expected instead of")
            return self._range(column, low, self._value(), is_negated)
        if self._take_word("starts"):
            if not self._take_word("with"):
                self._refuse("with is expected instead of")
            return self._finished((column, "starts with", self._value()), is_negated)
        if self._take_word("like"):
            return self._finished(self._like(column), is_negated)
        is_not = self._take_word("not")
        if not self._take_word("in"):
            self._refuse("a comparison, in, is null, between, starts with or like is expected instead of")
        return self._finished((column, "not in" if is_not else "in", self._values()), is_negated)

    def _finished(self, test: tuple[Any, ...], is_negated: bool) -> tuple[Any, ...]:
        if not is_negated:
            return test
        if test[1] not in _NEGATIONS:
            raise CommandFailure(f"not cannot stand before {test[1]!r}")
        return (test[0], _NEGATIONS[test[1]], *test[2:])

    def _range(self, column: str, low: Any, high: Any, is_negated: bool) -> Any:
        from fastpq.filters.combinations import And, Or

        return Or((column, "<", low), (column, ">", high)) if is_negated else And((column, ">=", low), (column, "<=", high))

    def _like(self, column: str) -> tuple[Any, ...]:
        pattern = self._value()
        prefix = pattern[:-1] if isinstance(pattern, str) and pattern.endswith("%") else None
        if prefix is None or "%" in prefix or "_" in prefix:
            raise CommandFailure(f"like can only look for a beginning, such as 'abc%', and not for {pattern!r}")
        return (column, "starts with", prefix)

    def _column(self) -> str:
        token = self._peek()
        if token.kind not in ("word", "column"):
            self._refuse("a column is expected instead of")
        self._next += 1
        return token.text[1:-1] if token.kind == "column" else token.text

    def _values(self) -> list[Any]:
        self._expect_sign("(")
        values = [self._value()]
        while self._take_sign(","):
            values.append(self._value())
        self._expect_sign(")")
        return values

    def _value(self) -> Any:
        token = self._peek()
        self._next += 1
        if token.kind == "text":
            return token.text[1:-1].replace("''", "'")
        if token.kind == "number":
            return _number(token.text)
        word = token.text.lower()
        if token.kind == "word" and word in ("true", "false"):
            return word == "true"
        if token.kind == "word" and word in ("date", "timestamp", "decimal") and self._peek().kind == "text":
            return self._typed_value(word)
        self._next -= 1
        hint = " (text stands in single quotes, for example name == 'a')" if token.kind in ("word", "column") else ""
        return self._refuse("a value is expected instead of", hint)

    def _typed_value(self, kind: str) -> Any:
        token = self._peek()
        text = self._value()
        try:
            if kind == "decimal":
                return Decimal(text)
            return datetime.date.fromisoformat(text) if kind == "date" else datetime.datetime.fromisoformat(text)
        except (ValueError, ArithmeticError):
            raise self._error(f"{text!r} is not a {kind}", token.start) from None

    def _peek(self) -> Token:
        return self._tokens[self._next] if self._next < len(self._tokens) else Token("end", "", len(self._text))

    def _take_word(self, word: str) -> bool:
        token = self._peek()
        is_there = token.kind == "word" and token.text.lower() == word
        self._next += is_there
        return is_there

    def _take_sign(self, sign: str) -> bool:
        token = self._peek()
        is_there = token.kind == "sign" and token.text == sign
        self._next += is_there
        return is_there

    def _expect_sign(self, sign: str) -> None:
        if not self._take_sign(sign):
            self._refuse(f"{sign!r} is expected instead of")

    def _refuse(self, message: str, hint: str = "") -> NoReturn:
        token = self._peek()
        token_text = repr(token.text) if token.kind != "end" else "the end"
        raise self._error(f"{message} {token_text}{hint}", token.start)

    def _error(self, message: str, position: int) -> CommandFailure:
        near = self._text[max(0, position - 10) : position + 20]
        where = f", at {near!r}" if near.strip() else ""
        return CommandFailure(f"--where: {message}{where}", USAGE, "for example: --where \"price < 2.5 and name in ('a', 'b')\"")


def _number(text: str) -> int | float:
    plain = text.replace("_", "")
    return int(plain) if re.fullmatch(r"[+-]?\d+", plain) else float(plain)
