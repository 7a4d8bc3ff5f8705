"""The parameters of a function are the type of its payload."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

import msgspec
import pytest

from workstealing.errors import NotATask, PayloadInvalid, ResultInvalid
from workstealing.tasks.context import ExecutionContext
from workstealing.tasks.signature import Signature, decode_result

if TYPE_CHECKING:
    from fractions import Fraction


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Owner:
    name: str
    age: int = 0


class Box(msgspec.Struct):
    left: int
    right: int


class Point(NamedTuple):
    x: int
    y: int


class Label(TypedDict):
    text: str


class Opaque:
    pass


def resize(path: str, width: int, height: int = 50, *, fast: bool = False) -> str:
    return f"{path} {width}x{height} {fast}"


def _call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    signature = Signature.of(function)
    return function(**signature.decode(signature.encode(args, kwargs)))


def test_promise_10_a_payload_is_one_json_object_of_what_was_given() -> None:
    payload = Signature.of(resize).encode(("cat.png",), {"width": 120})

    assert payload == b'{"path":"cat.png","width":120}'


def test_a_payload_calls_the_function_with_what_was_given() -> None:
    assert _call(resize, "a", 1) == "a 1x50 False"
    assert _call(resize, "a", 1, 2, fast=True) == "a 1x2 True"
    assert _call(resize, width=3, path="b") == "b 3x50 False"


def test_a_default_is_the_very_object_of_the_function() -> None:
    def remember(item: int, seen: list[int] = [0]) -> list[int]:  # noqa: B006
        return seen

    assert _call(remember, 1) is remember(1)


def test_a_default_need_not_match_the_annotation() -> None:
    def lenient(size: int = "all") -> Any:  # type: ignore[assignment]
        return size

    assert _call(lenient) == "all"


def test_a_payload_may_come_as_raw_json() -> None:
    signature = Signature.of(resize)

    arguments = signature.decode(msgspec.Raw(b'{"path":"a","width":1}'))

    assert arguments == {"path": "a", "width": 1, "height": 50, "fast": False}


def test_a_function_without_parameters_has_an_empty_payload() -> None:
    signature = Signature.of(lambda: None)

    assert signature.encode((), {}) == b"{}"
    assert signature.decode(b" {} ") == {}


def test_parameters_without_annotation_take_any_json() -> None:
    def anything(value, other=1):  # type: ignore[no-untyped-def]
        return value

    for value in (1, "x", None, [1, {"a": 2.5}], True):
        assert _call(anything, value) == value
    assert _call(anything, (1, 2)) == [1, 2]


@pytest.mark.parametrize(
    ("args", "kwargs", "field", "problem"),
    [
        (("a", "wide"), {}, "width", "expected `int`, got `str`"),
        (("a", True), {}, "width", "expected `int`, got `bool`"),
        ((b"a", 1), {}, "path", "expected `str`, got `bytes`"),
        (("a",), {}, "width", "is missing"),
        (("a", 1), {"depth": 2}, "depth", "is not known"),
        (("a", 1), {"path": "b"}, "path", "is given twice"),
        (("a", 1, 2, True), {}, "", "takes 3 positional arguments, not 4"),
        (("a", Opaque()), {}, "width", "expected `int`, got `Opaque`"),
        (("\ud800", 1), {}, "path", "surrogates not allowed"),
    ],
)
def test_promise_10_a_wrong_argument_is_refused_by_task_and_field(
    args: tuple[Any, ...], kwargs: dict[str, Any], field: str, problem: str
) -> None:
    signature = Signature.of(resize, "images.resize")

    with pytest.raises(PayloadInvalid) as caught:
        signature.encode(args, kwargs)

    assert (caught.value.task, caught.value.field) == ("images.resize", field)
    assert problem in caught.value.problem
    assert "images.resize" in str(caught.value)
    assert field in str(caught.value)


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ({"nmae": "Ann"}, "is missing, and 'nmae' is not known"),
        ({"a": 1, "age": 2, "b": 3}, "is missing, and 'a', 'b' are not known"),
        ({"age": 2}, "is missing"),
    ],
)
def test_a_mistyped_field_of_a_payload_type_is_named_beside_the_missing_one(
    payload: dict[str, Any], problem: str
) -> None:
    with pytest.raises(PayloadInvalid) as caught:
        Signature.of_type(Owner, None, "greet").encode_payload(payload)

    assert (caught.value.field, caught.value.problem) == ("name", problem)


@pytest.mark.parametrize(
    ("wanted", "words"), [(int, "not an int"), (str, "not a str"), (Box, "not a Box")]
)
def test_a_wrong_result_is_told_with_the_right_article(wanted: Any, words: str) -> None:
    with pytest.raises(ResultInvalid, match=words):
        decode_result(b"[1]", wanted)


def test_a_value_that_has_no_form_in_json_is_told_with_the_right_article() -> None:
    with pytest.raises(ResultInvalid, match=r"an object that .* an object has no form"):
        Signature.of(resize, "images.resize").encode_result(object())


@pytest.mark.parametrize(
    ("payload", "field", "problem"),
    [
        (b'{"path":"a","width":"1"}', "width", "expected `int`, got `str`"),
        (b'{"path":"a"}', "width", "is missing"),
        (b'{"path":"a","width":1,"depth":1}', "depth", "is not known"),
        (b"[1]", "", "expected `object`, got `array`"),
        (b'{"path":"a",', "", "truncated"),
        (b'{"path":"\xff","width":1}', "", "utf-8"),
        (b"", "", "truncated"),
    ],
)
def test_promise_10_a_foreign_payload_is_refused_by_task_and_field(
    payload: bytes, field: str, problem: str
) -> None:
    with pytest.raises(PayloadInvalid) as caught:
        Signature.of(resize, "images.resize").decode(payload)

    assert caught.value.field == field
    assert problem in caught.value.problem


def test_rich_types_arrive_as_themselves() -> None:
    def rich(
        owner: Owner,
        box: Box,
        point: Point,
        label: Label,
        colour: Colour,
        mode: Literal[1, 2],
        sizes: dict[int, set[str]],
        maybe: Owner | None = None,
    ) -> Any:
        return owner, box, point, label, colour, mode, sizes, maybe

    given = (
        Owner("ann", 3),
        Box(1, 2),
        Point(3, 4),
        {"text": "x"},
        Colour.BLUE,
        1,
        {7: {"a", "b"}},
        Owner("bob"),
    )

    assert _call(rich, *given) == given


def test_plain_values_are_taken_for_rich_types() -> None:
    def rich(owner: Owner, colour: Colour) -> Any:
        return owner, colour

    assert _call(rich, {"name": "ann"}, "red") == (Owner("ann"), Colour.RED)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (Owner(5), "owner.name"),  # type: ignore[arg-type]
        ({"age": 1}, "owner.name"),
        ({"name": "ann", "age": "old"}, "owner.age"),
        (Owner(None, 1), "owner.name"),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_inside_of_an_argument_is_named(given: Any, field: str) -> None:
    def keep(owner: Owner) -> None:
        pass

    with pytest.raises(PayloadInvalid) as caught:
        Signature.of(keep).encode((given,), {})

    assert caught.value.field == field


def test_keys_are_checked_before_json_makes_strings_of_them() -> None:
    def count(words: dict[str, int]) -> None:
        pass

    with pytest.raises(PayloadInvalid, match="expected `str`, got `int`") as caught:
        Signature.of(count).encode(({1: 1},), {})

    assert caught.value.field == "words"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [1, {"a": x}], Box])
def test_numbers_that_json_has_not_are_refused_and_not_made_null(
    number: float, wrap: Any
) -> None:
    def weigh(value: Any, other: Any = None) -> None:
        pass

    given = Box(1, number) if wrap is Box else wrap(number)  # type: ignore[arg-type]

    with pytest.raises(PayloadInvalid, match="JSON has no") as caught:
        Signature.of(weigh).encode((), {"other": "null", "value": given})

    assert caught.value.field == "value"


def test_a_null_that_was_meant_is_not_refused() -> None:
    def weigh(value: float | None, text: str) -> Any:
        return value, text

    assert _call(weigh, None, "null") == (None, "null")
    assert _call(weigh, 1.5, "null") == (1.5, "null")


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**200), 10**300])
def test_large_integers_keep_all_their_digits(number: int) -> None:
    def count(n: int, anything: Any) -> Any:
        return n, anything

    assert _call(count, number, number) == (number, number)


def _endless() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


@pytest.mark.parametrize(
    "value",
    [Opaque(), {(1, 2): 3}, 1j, 10**5000, _endless(), (x for x in "ab")],
    ids=["object", "tuple as key", "complex", "5000 digits", "endless", "generator"],
)
def test_promise_10_what_has_no_json_is_refused_by_field(value: Any) -> None:
    def take(first: Any, second: Any) -> None:
        pass

    with pytest.raises(PayloadInvalid) as caught:
        Signature.of(take).encode((1, value), {})

    assert caught.value.field == "second"


def test_names_that_are_no_strings_are_refused() -> None:
    with pytest.raises(PayloadInvalid):
        Signature.of(resize).encode(("a", 1), {1: 2})  # type: ignore[dict-item]


def test_the_context_is_no_part_of_the_payload() -> None:
    def work(ctx: ExecutionContext, path: str, width: int = 1) -> Any:
        return path

    signature = Signature.of(work)

    assert signature.context_parameter == "ctx"
    assert signature.parameters == ("path", "width")
    assert signature.encode(("a",), {}) == b'{"path":"a"}'
    assert signature.decode(b'{"path":"a"}') == {"path": "a", "width": 1}
    with pytest.raises(PayloadInvalid, match="is not known"):
        signature.decode(b'{"path":"a","ctx":1}')


def test_the_context_may_be_optional_and_absent() -> None:
    def work(path: str, ctx: ExecutionContext | None = None) -> None:
        pass

    assert Signature.of(work).context_parameter == "ctx"
    assert Signature.of(resize).context_parameter is None


def _star(*paths: str) -> None: ...
def _stars(**sizes: int) -> None: ...
def _slash(path: str, /) -> None: ...
def _dunder(__path: str) -> None: ...
def _opaque(thing: Opaque) -> None: ...
def _opaque_inside(things: dict[str, list[Opaque | None]]) -> None: ...
def _opaque_result() -> Opaque: ...
def _callback(then: Callable[[], None]) -> None: ...
def _two_objects(one: Owner | Box) -> None: ...
def _type_checking(number: Fraction) -> None: ...
def _two_contexts(one: ExecutionContext, other: ExecutionContext) -> None: ...


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_star, r"\*paths.*take a list"),
        (_stars, r"\*\*sizes.*take a dict"),
        (_slash, "path.*remove the '/'"),
        (_dunder, "__path"),
        (_opaque, "parameter 'thing': Opaque has no form in JSON"),
        (_opaque_inside, "parameter 'things': Opaque has no form"),
        (_opaque_result, "result: Opaque has no form"),
        (_callback, "parameter 'then'"),
        (_two_objects, "parameter 'one'.*more than one dict-like"),
        (_type_checking, "'Fraction' is not defined.*importable at run time"),
        (_two_contexts, "2 ExecutionContext"),
    ],
)
def test_what_cannot_be_a_payload_is_refused_when_it_is_defined(
    function: Callable[..., Any], message: str
) -> None:
    with pytest.raises(NotATask, match=message):
        Signature.of(function)


class Tree(msgspec.Struct):
    children: list[Tree] = []


def test_a_type_may_contain_itself() -> None:
    def climb(tree: Tree) -> Tree:
        return tree

    tree = Tree([Tree(), Tree([Tree()])])

    assert _call(climb, tree) == tree


def test_the_hints_of_a_decorated_function_are_its_own() -> None:
    @functools.wraps(resize)
    def wrapped(*args: Any, **kwargs: Any) -> str:
        return resize(*args, **kwargs)

    assert Signature.of(wrapped).parameters == ("path", "width", "height", "fast")


def test_a_result_comes_back_as_what_the_function_says() -> None:
    def find() -> Owner | None: ...

    signature = Signature.of(find)
    wanted = signature.result_type

    assert signature.encode_result(None) == b"null"
    assert decode_result(b"null", wanted) is None
    assert decode_result(signature.encode_result(Owner("a")), wanted) == Owner("a")


def test_a_result_is_plain_json_where_nothing_is_said() -> None:
    def find():  # type: ignore[no-untyped-def]
        pass

    signature = Signature.of(find)

    assert json.loads(signature.encode_result(Owner("a"))) == {"name": "a", "age": 0}
    assert decode_result(b'{"a":[1]}', signature.result_type) == {"a": [1]}


@pytest.mark.parametrize("value", [Opaque(), float("nan"), "\ud800", {(1,): 2}])
def test_a_result_that_is_no_json_is_refused_with_the_name_of_its_task(
    value: Any,
) -> None:
    with pytest.raises(ResultInvalid, match=r"images\.resize"):
        Signature.of(resize, "images.resize").encode_result(value)


@pytest.mark.parametrize(
    ("result", "wanted"), [(b'"x"', int), (b"{", str), (b"{}", Owner), (b"1", Opaque)]
)
def test_a_result_of_another_type_is_refused(result: bytes, wanted: Any) -> None:
    with pytest.raises(ResultInvalid, match=wanted.__name__):
        decode_result(result, wanted)
