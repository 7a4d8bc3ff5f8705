"""The signature of a function as the type of its payload.

A payload is one JSON object, argument name to value. It is checked when a task is
submitted and again when a worker reads it, so a program in another language, or an
older release of this one, cannot call a function with what it does not expect.

- Parameters without an annotation take any JSON value.
- Arguments that are not given are not written. The default of the function that runs
  fills them in, so a changed default also holds for tasks that wait.
- A parameter annotated `ExecutionContext`, or `Annotated[…, Resource]`, is filled in by
  the worker.
- `*args`, `**kwargs` and positional-only parameters are refused: a payload names its
  arguments, and nothing could check those.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, get_type_hints

import msgspec
from msgspec.inspect import (
    CustomType,
    DataclassType,
    StructType,
    TypedDictType,
    type_info,
)

from workstealing.errors import NotATask, PayloadInvalid, ResultInvalid
from workstealing.tasks.context import ExecutionContext
from workstealing.tasks.json_values import (
    NOT_JSON,
    Decode,
    Hook,
    Json,
    decode_hook_for,
    decoder_for,
    encode_value,
    with_article,
)
from workstealing.tasks.resource import requested_resource

__all__ = ("Signature", "decode_result")


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """What a function takes and returns, ready to be written and read as JSON."""

    task: str
    """The name that errors give to the task."""
    parameters: tuple[str, ...]
    """The arguments that a payload may have."""
    positional: tuple[str, ...]
    """Those of them that may be given without their name, in order."""
    context_parameter: str | None
    """The parameter that takes the `ExecutionContext`, if there is one."""
    result_type: Any
    """What the function is annotated to return; `Any` if it does not say."""
    whole: str | None
    """The one parameter that takes the payload as a whole, if it has a type."""
    _payload: Any = field(repr=False)
    _hook: Hook = field(repr=False)
    _decode: Decode = field(repr=False)
    resources: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that take resources of the worker, and their types."""
    _is_flat: bool = field(default=False, repr=False)
    """All parameters are numbers and strings: what was checked once is right."""

    @classmethod
    def of(cls, function: Callable[..., Any], task: str | None = None) -> Signature:
        """Read the parameters and the type hints of a function."""
        task = task or str(getattr(function, "__qualname__", function))
        hints, parameters = _read(function, task)
        contexts = [name for name in parameters if _is_context(hints.get(name))]
        if len(contexts) > 1:
            raise NotATask(
                f"task '{task}' has {len(contexts)} ExecutionContext parameters"
            )
        resources = {
            name: kind
            for name in parameters
            if (kind := requested_resource(hints.get(name))) is not None
        }
        for name in (*contexts, *resources):
            del parameters[name]
        for parameter in parameters.values():
            _refuse_unnamed(parameter, task)
        result_type = hints.get("return", Any)
        _refuse_result(result_type, task)
        payload, hook = _payload_type(parameters, hints, task)
        return cls(
            task=task,
            parameters=tuple(parameters),
            positional=tuple(
                name
                for name, parameter in parameters.items()
                if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            ),
            context_parameter=contexts[0] if contexts else None,
            result_type=result_type,
            whole=None,
            _payload=payload,
            _hook=hook,
            _decode=msgspec.json.Decoder(payload, dec_hook=hook).decode,
            resources=resources,
            _is_flat=all(hints.get(name) in (bool, int, str) for name in parameters),
        )

    @classmethod
    def of_type(cls, payload: Any, result_type: Any, task: str) -> Signature:
        """Take a class with fields as the type of the payload."""
        _refuse_result(result_type, task)
        fields = _fields(payload, task)
        hook = decode_hook_for(payload)
        return cls(
            task=task,
            parameters=fields,
            positional=(),
            context_parameter=None,
            result_type=result_type,
            whole="payload",
            _payload=payload,
            _hook=hook,
            _decode=_exactly(fields, payload, hook),
        )

    def has_all(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Return whether these are all arguments that it needs, right or wrong."""
        given = {*self.positional[: len(args)], *kwargs}
        fields = msgspec.structs.fields(self._payload)
        return all(one.name in given for one in fields if one.required)

    def type_of(self, parameter: str) -> Any:
        """Return the type of an argument."""
        fields = msgspec.structs.fields(self._payload)
        return next(one.type for one in fields if one.name == parameter)

    def without_first(self) -> Signature:
        """Return what is left of it, if the first argument is to come later."""
        return _without_first(self)

    def _left(self) -> Signature:
        first, *positional = self.positional
        fields = [
            (one.name, one.type, _same_default(one))
            for one in msgspec.structs.fields(self._payload)
            if one.name != first
        ]
        payload = msgspec.defstruct(
            "Payload", fields, kw_only=True, forbid_unknown_fields=True
        )
        hook = decode_hook_for(payload)
        return replace(
            self,
            parameters=tuple(name for name in self.parameters if name != first),
            positional=tuple(positional),
            _payload=payload,
            _hook=hook,
            _decode=msgspec.json.Decoder(payload, dec_hook=hook).decode,
        )

    def encode_payload(self, payload: Any) -> bytes:
        """Write a payload: argument name to value, or an object of its type."""
        if self.whole is None or isinstance(payload, Mapping):
            if not isinstance(payload, Mapping):
                raise PayloadInvalid(
                    self.task,
                    "",
                    f"give a dict, argument name to value, not {type(payload)!r}",
                )
            return self.encode((), payload)
        try:
            encoded = encode_value(payload)
            self._decode(encoded)
        except NOT_JSON as error:
            raise self._invalid(error, {}) from error
        return encoded

    def encode(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
        """Write arguments as a payload that a worker will accept."""
        names = self.positional
        if len(args) > len(names):
            noun = "argument" if len(names) == 1 else "arguments"
            raise PayloadInvalid(
                self.task,
                "",
                f"takes {len(names)} positional {noun}, not {len(args)}",
            )
        # No strict=: a keyword costs 200 ns, and this is done for each task of a batch.
        values = dict(zip(names, args))  # noqa: B905
        if kwargs:
            for name in values.keys() & kwargs.keys():
                raise PayloadInvalid(self.task, name, "is given twice")
            values.update(kwargs)
        try:
            # Against Python types first: as JSON, bytes would pass for a string and
            # the key 1 for "1". Then as the worker reads it: an object of the right
            # class may have fields of the wrong type.
            if self._hook is None:
                msgspec.convert(values, self._payload)
            else:
                msgspec.convert(values, self._payload, dec_hook=self._hook)
            payload = encode_value(values)
            if not self._is_flat:
                self._decode(payload)
        except NOT_JSON as error:
            raise self._invalid(error, values) from error
        return payload

    def decode(self, payload: Json) -> dict[str, Any]:
        """Read a payload as keyword arguments, defaults filled in."""
        try:
            read = self._decode(payload)
        except NOT_JSON as error:
            raise self._invalid(error, {}) from error
        return (
            msgspec.structs.asdict(read) if self.whole is None else {self.whole: read}
        )

    def encode_result(self, value: Any) -> bytes:
        """Write what the function returned."""
        try:
            return b"null" if value is None else encode_value(value)
        except NOT_JSON as error:
            kind = with_article(type(value).__qualname__)
            raise ResultInvalid(
                f"task '{self.task}' returned {kind} that has no form in JSON:"
                f" {error}; return plain values, or nothing"
            ) from error

    def _invalid(self, error: Exception, values: Mapping[str, Any]) -> PayloadInvalid:
        if not isinstance(error, msgspec.DecodeError):
            # An encoder does not say where it failed.
            for name, value in values.items():
                try:
                    encode_value(value)
                except NOT_JSON as its_error:
                    return PayloadInvalid(self.task, str(name), str(its_error))
        where, what = _where_and_what(str(error))
        if what == _MISSING and where in self.parameters:
            # Most likely it is there, under a name that was mistyped.
            others = [f"'{name}'" for name in values if name not in self.parameters]
            if others:
                verb = "is" if len(others) == 1 else "are"
                what = f"{what}, and {', '.join(others)} {verb} not known"
        if what == _UNKNOWN and "." not in where:
            what = f"{what}; it takes {', '.join(self.parameters) or 'none'}"
        return PayloadInvalid(self.task, where, what)


def decode_result(result: Json, wanted: Any = Any) -> Any:
    """Read a result as a type; `ResultInvalid` if it is something else."""
    try:
        return decoder_for(wanted)(result)
    except NOT_JSON as error:
        name = str(getattr(wanted, "__name__", wanted))
        raise ResultInvalid(
            f"the result is not {with_article(name)}, which the task promises: {error}"
        ) from error


def _read(
    function: Callable[..., Any], task: str
) -> tuple[dict[str, Any], dict[str, inspect.Parameter]]:
    try:
        hints = get_type_hints(function, include_extras=True)
        return hints, dict(inspect.signature(function).parameters)
    except (NameError, TypeError, ValueError) as error:
        raise NotATask(
            f"the parameters of task '{task}' cannot be read: {error}; types must be"
            " importable at run time, from the top of their module"
        ) from error


def _is_context(kind: Any) -> bool:
    return bool(kind == ExecutionContext or kind == ExecutionContext | None)


def _refuse_unnamed(parameter: inspect.Parameter, task: str) -> None:
    if parameter.kind in _INSTEAD:
        raise NotATask(
            f"task '{task}' has the parameter '{parameter}', but a payload names its"
            f" arguments: {_INSTEAD[parameter.kind]}"
        )
    if parameter.name.startswith("__"):
        raise NotATask(f"task '{task}': rename '{parameter.name}', without the '__'")
    if parameter.name == "self":
        raise NotATask(
            f"task '{task}' has the parameter 'self', but a task is a function of its"
            " own: for its id, log and progress, take `context: ExecutionContext`"
        )


_INSTEAD: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "take a list",
    inspect.Parameter.VAR_KEYWORD: "take a dict",
    inspect.Parameter.POSITIONAL_ONLY: "remove the '/'",
}


def _refuse_result(kind: Any, task: str) -> None:
    try:
        decoder_for(kind)
    except TypeError as error:
        raise NotATask(f"task '{task}': its result: {error}") from error


def _payload_type(
    parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any], task: str
) -> tuple[Any, Hook]:
    fields = []
    for name, parameter in parameters.items():
        kind = hints.get(name, Any)
        try:
            msgspec.json.Decoder(kind, dec_hook=decode_hook_for(kind))
        except TypeError as error:
            raise NotATask(f"task '{task}': parameter '{name}': {error}") from error
        fields.append((name, kind, _default(parameter)))
    payload = msgspec.defstruct(
        "Payload", fields, kw_only=True, forbid_unknown_fields=True
    )
    return payload, decode_hook_for(payload)


def _fields(payload: Any, task: str) -> tuple[str, ...]:
    """Return the names that a payload of a type may have; none if it decides itself."""
    try:
        decode_hook_for(payload)
        known = type_info(payload)
    except TypeError as error:
        raise NotATask(f"task '{task}': its payload: {error}") from error
    if isinstance(known, CustomType):
        return ()
    if isinstance(known, (DataclassType, StructType, TypedDictType)) and not getattr(
        known, "array_like", False
    ):
        return tuple(one.encode_name for one in known.fields)
    raise NotATask(
        f"task '{task}': a payload is an object with named fields, so its type is a"
        f" dataclass, a msgspec struct, a TypedDict or a Pydantic model, not {payload}"
    )


def _exactly(fields: tuple[str, ...], payload: Any, hook: Hook) -> Decode:
    """Read a type and no more: not every class refuses fields that it does not know."""
    decode: Decode = msgspec.json.Decoder(payload, dec_hook=hook).decode
    if not fields:
        return decode
    known = frozenset(fields)

    def decode_exactly(encoded: Json) -> Any:
        for name in _NAMES(encoded):
            if name not in known:
                raise msgspec.ValidationError(f"Object contains unknown field `{name}`")
        return decode(encoded)

    return decode_exactly


def _default(parameter: inspect.Parameter) -> Any:
    if parameter.default is parameter.empty:
        return msgspec.field()
    # As in Python, the very object: msgspec would copy some, and refuse others.
    return msgspec.field(default_factory=partial(_same, parameter.default))


def _same_default(one: msgspec.structs.FieldInfo) -> Any:
    if one.required:
        return msgspec.field()
    return msgspec.field(default_factory=one.default_factory)


@lru_cache(maxsize=1024)
def _without_first(signature: Signature) -> Signature:
    return signature._left()  # noqa: SLF001 - the same file


def _same(value: Any) -> Any:
    return value


_MISSING = "is missing"
_UNKNOWN = "is not known"
_NAMES = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_PATH = re.compile(r" - at `(?:key` in `)?\$\.?(.*)`$")
_FIELD = re.compile(r"^Object (missing required|contains unknown) field `(.*?)`")


def _where_and_what(message: str) -> tuple[str, str]:
    path = _PATH.search(message)
    where = path.group(1) if path else ""
    what = message[: path.start()] if path else message
    named = _FIELD.match(what)
    if not named:
        return where, what[:1].lower() + what[1:]
    where = f"{where}.{named.group(2)}" if where else named.group(2)
    missing = named.group(1).startswith("missing")
    return where, _MISSING if missing else _UNKNOWN
