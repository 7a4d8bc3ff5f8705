"""How values become JSON and come back with their types.

msgspec does the work. On top of it: Pydantic models (recognised by their methods, so
Pydantic is never imported here), and a refusal of numbers that JSON does not have,
which msgspec would quietly write as null.

An untyped value (`Any`, a bare `dict`) comes back as plain JSON: tuples and sets as
lists, keys and dates as strings. Integers keep all their digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
from msgspec.inspect import CustomType, Field, Type, type_info

__all__ = (
    "NOT_JSON",
    "Decode",
    "Hook",
    "Json",
    "canonical_value",
    "decode_hook_for",
    "decoder_for",
    "encode_value",
    "with_article",
)

Json: TypeAlias = "bytes | msgspec.Raw"
Decode: TypeAlias = Callable[[Json], Any]
Hook: TypeAlias = "Callable[[Any, Any], Any] | None"

# The errors of msgspec are ValueErrors only since 0.21.
NOT_JSON = (
    msgspec.MsgspecError,
    TypeError,
    ValueError,
    OverflowError,
    RecursionError,
)
"""What encoding or decoding raises for a value that does not fit."""


def encode_value(value: Any) -> bytes:
    """Write a value as JSON; raise one of `NOT_JSON` if it cannot be done."""
    encoded = _ENCODER.encode(value)
    if b"null" in encoded:
        _refuse_numbers_that_became_null(value)
    return encoded


def canonical_value(value: Any) -> bytes:
    """Write a value as JSON that is the same for equal values: names are sorted."""
    return _CANONICAL_ENCODER.encode(value)


@lru_cache(maxsize=256)
def decoder_for(wanted: Any) -> Decode:
    """Return what reads JSON of a type; raise TypeError if there is no such thing."""
    return msgspec.json.Decoder(wanted, dec_hook=decode_hook_for(wanted)).decode


def decode_hook_for(wanted: Any) -> Hook:
    """Return the hook that a type needs: none, if msgspec knows all of it."""
    foreign = set(_foreign_classes(wanted))
    for kind in foreign:
        if not _is_pydantic(kind):
            raise TypeError(
                f"{getattr(kind, '__qualname__', kind)} has no form in JSON: use plain"
                " types, dataclasses, msgspec structs, TypedDicts or Pydantic models"
            )
    return _decode_hook if foreign else None


def with_article(name: str) -> str:
    """Return the name of a type as a sentence has it: `a str`, `an int`."""
    # Most that begin with a u sound like `a User`, `a UUID`.
    return f"an {name}" if name[:1].lower() in tuple("aeio") else f"a {name}"


def _decode_hook(kind: Any, value: Any) -> Any:
    # A model that was given as such is checked when its JSON is read back.
    if isinstance(value, kind):
        return value
    # From JSON, not from Python: a strict model takes a date as text only there.
    try:
        return kind.model_validate_json(_ENCODER.encode(value))
    except ValueError as error:
        raise ValueError(_first_problem(error)) from None


def _encode_hook(value: Any) -> Any:
    if _is_pydantic(type(value)):
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    raise TypeError(f"{with_article(type(value).__qualname__)} has no form in JSON")


_ENCODER = msgspec.json.Encoder(enc_hook=_encode_hook)
_CANONICAL_ENCODER = msgspec.json.Encoder(enc_hook=_encode_hook, order="sorted")


def _is_pydantic(kind: Any) -> bool:
    return hasattr(kind, "model_validate_json") and hasattr(kind, "model_dump")


def _first_problem(error: ValueError) -> str:
    problems: list[Any] = getattr(error, "errors", list)()
    if not problems:
        return str(error)
    path = ".".join(str(part) for part in problems[0]["loc"])
    return f"{path}: {problems[0]['msg']}" if path else str(problems[0]["msg"])


def _refuse_numbers_that_became_null(value: Any) -> None:
    rest = [msgspec.to_builtins(value, enc_hook=_encode_hook)]
    while rest:
        part = rest.pop()
        if isinstance(part, float) and not math.isfinite(part):
            raise ValueError(f"JSON has no {part}: use None, or text")
        if isinstance(part, dict):
            rest.extend(part.values())
        elif isinstance(part, (list, tuple, set, frozenset)):
            rest.extend(part)


def _foreign_classes(wanted: Any) -> Iterator[Any]:
    # The root keeps all parts alive, so that no two of them share an id.
    root = type_info(wanted)
    rest: list[Any] = [root]
    seen: set[int] = set()
    while rest:
        part = rest.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, CustomType):
            yield part.cls
        elif isinstance(part, Field):
            rest.append(part.type)
        elif isinstance(part, Type):
            rest.extend(getattr(part, name) for name in part.__struct_fields__)
        elif isinstance(part, (list, tuple)):
            rest.extend(part)
