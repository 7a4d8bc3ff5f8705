"""Contracts: what client and server share, and the registry that holds them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from pathlib import Path
from textwrap import dedent
from typing import Any, TypedDict

import msgspec
import pytest

import workstealing
from workstealing import Contract, Registry
from workstealing.errors import (
    ConfigurationError,
    DuplicateTask,
    InvalidName,
    NotATask,
    PayloadInvalid,
    UnknownTask,
)
from workstealing.tasks import registry as registry_module
from workstealing.tasks.context import ExecutionContext


@dataclass
class Resize:
    path: str
    width: int
    tags: list[str] = field(default_factory=list)


class Renamed(msgspec.Struct, rename="camel"):
    file_path: str


class Typed(TypedDict):
    path: str


def by_signature(path: str, width: int, height: int = 50) -> str: ...


RESIZE = Contract("images.resize", Resize, str)


def decoded(contract: Contract, payload: Any) -> Any:
    """What an implementation would get of a payload."""
    encoded = contract.signature.encode_payload(payload)
    (value,) = contract.signature.decode(encoded).values()
    return value


@pytest.mark.parametrize(
    "payload", [{"path": "a", "width": 1}, Resize("a", 1), {"width": 1, "path": "a"}]
)
def test_a_payload_is_a_dict_or_an_object_of_its_type(payload: Any) -> None:
    assert decoded(RESIZE, payload) == Resize("a", 1)


def test_structs_and_typed_dicts_are_payloads_too() -> None:
    assert decoded(Contract("a", Renamed), {"filePath": "x"}) == Renamed("x")
    assert decoded(Contract("a", Renamed), Renamed("x")) == Renamed("x")
    assert decoded(Contract("a", Typed), {"path": "x"}) == {"path": "x"}


@pytest.mark.parametrize(
    ("payload", "where"),
    [
        ({"path": "a"}, "width"),
        ({"path": "a", "width": "wide"}, "width"),
        ({"path": "a", "width": 1, "heigth": 2}, "heigth"),
        (Resize("a", "wide"), "width"),  # type: ignore[arg-type]
        (Resize("a", 1, ["x", 7]), "tags[1]"),  # type: ignore[list-item]
        (Typed(path="a"), "width"),
        ("a", ""),
        (None, ""),
        ([1, 2], ""),
    ],
)
def test_a_payload_that_does_not_match_is_refused_with_the_field(
    payload: Any, where: str
) -> None:
    with pytest.raises(PayloadInvalid) as refused:
        RESIZE.signature.encode_payload(payload)

    assert refused.value.field == where
    assert refused.value.task == "images.resize"


def test_what_another_program_wrote_is_judged_as_strictly() -> None:
    with pytest.raises(PayloadInvalid, match="'heigth' is not known"):
        RESIZE.signature.decode(b'{"path":"a","width":1,"heigth":2}')


@pytest.mark.parametrize("payload", [int, list[str], str, None, tuple[int, int], 7])
def test_a_payload_type_has_named_fields(payload: Any) -> None:
    with pytest.raises(NotATask, match="payload"):
        Contract("a", payload)


def test_a_contract_has_a_sound_name_and_version() -> None:
    with pytest.raises(InvalidName):
        Contract("a b", Resize)
    with pytest.raises(ConfigurationError):
        Contract("a", Resize, version=0)
    with pytest.raises(ConfigurationError):
        Contract("a", Resize, permission="a b")
    with pytest.raises(NotATask, match="result"):
        Contract("a", by_signature, int)


def test_a_function_can_be_the_type_of_a_payload() -> None:
    registry = Registry()
    contract = registry.contract("resize", by_signature)

    @registry.implements(contract)
    def resize(width: int, path: str, height: int) -> str:
        return f"{path} {width} x {height}"

    definition = registry.find("resize", 1)
    payload = contract.signature.encode_payload({"path": "a", "width": 1})
    assert definition.function(**definition.decode(1, payload)) == "a 1 x 50"
    assert contract.signature.result_type is str


def test_an_implementation_takes_the_payload_and_its_context() -> None:
    registry = Registry()

    @registry.implements(RESIZE, retries=3, timeout=5)
    def resize(request: Resize, ctx: ExecutionContext) -> str:
        return request.path

    definition = registry.find("images.resize", 1)
    arguments = definition.decode(1, b'{"path":"a","width":1}')
    assert arguments == {"request": Resize("a", 1)}
    assert definition.signature.context_parameter == "ctx"
    assert (definition.retry.retries, definition.timeout) == (3, 5)
    assert registry.abilities() == ("images.resize@1",)
    assert resize(Resize("a", 1), ExecutionContext("1", "x")) == "a"


def test_an_implementation_that_does_not_fit_is_refused() -> None:
    registry = Registry()
    with pytest.raises(NotATask, match="one parameter"):
        registry.implements(RESIZE)(lambda path, width: path)
    with pytest.raises(NotATask, match="takes path, width, height"):
        registry.implements(Contract("b", by_signature))(lambda path, width: path)


def test_a_contract_alone_can_be_called_but_not_run() -> None:
    registry = Registry()
    registry.add_contract(RESIZE)

    assert registry.interface("images.resize") is RESIZE
    assert registry.abilities() == ()
    with pytest.raises(UnknownTask):
        registry.find("images.resize", 1)


def test_the_newest_version_is_called_unless_one_is_named() -> None:
    registry = Registry()
    old = registry.contract("resize", Resize)
    new = registry.contract("resize", Typed, version=3)

    assert registry.interface("resize") is new
    assert registry.interface("resize", 1) is old
    with pytest.raises(UnknownTask, match="no version 2 here, only 1, 3"):
        registry.interface("resize", 2)
    with pytest.raises(UnknownTask, match="no task 'crop'"):
        registry.interface("crop")


def test_a_name_and_version_are_agreed_on_once() -> None:
    registry = Registry()
    registry.add_contract(RESIZE)
    registry.add_contract(RESIZE)

    with pytest.raises(DuplicateTask):
        registry.contract("images.resize", Typed)


def test_a_fake_stands_in_for_a_while() -> None:
    registry = Registry()
    registry.implements(RESIZE)(lambda request: "real")

    def called() -> Any:
        return registry.find("images.resize", 1).function(None)

    with registry.fake(RESIZE, lambda request: "fake"):
        assert called() == "fake"
    assert called() == "real"


def test_a_fake_needs_no_real_one_and_leaves_none_behind() -> None:
    registry = Registry()
    with suppress(ZeroDivisionError), registry.fake(RESIZE, lambda request: None):
        assert registry.abilities() == ("images.resize@1",)
        raise ZeroDivisionError

    assert registry.abilities() == ()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with contracts, implementations, and modules that offer nothing."""
    folder = tmp_path / "shop_of_tests"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "contracts.py").write_text(
        dedent(
            """
            from dataclasses import dataclass
            from workstealing import Contract

            @dataclass
            class Order:
                number: int

            SHIP = Contract("shop.ship", Order, str)
            """
        )
    )
    (folder / "tasks.py").write_text(
        dedent(
            """
            from shop_of_tests.contracts import SHIP, Order
            from workstealing import Registry

            tasks = Registry()

            @tasks.implements(SHIP)
            def ship(order: Order) -> str:
                return f"shipped {order.number}"
            """
        )
    )
    (folder / "empty.py").write_text("number = 7\n")
    (folder / "broken.py").write_text("import no_such_module_at_all\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("shop_of_tests")]:
        del sys.modules[name]


def test_a_module_is_loaded_by_its_name(shop: Path) -> None:
    client, server = Registry(), Registry()

    client.load("shop_of_tests.contracts")
    assert client.interface("shop.ship").permission is None
    assert client.abilities() == ()
    assert "shop_of_tests.tasks" not in sys.modules

    server.load("shop_of_tests.tasks")
    server.load("shop_of_tests.tasks")
    assert server.abilities() == ("shop.ship@1",)


def test_a_module_that_offers_nothing_or_is_not_there_is_told(shop: Path) -> None:
    with pytest.raises(ConfigurationError, match="no Registry and no Contract"):
        Registry().load("shop_of_tests.empty")
    with pytest.raises(ConfigurationError, match="no module"):
        Registry().load("shop_of_tests.nowhere")
    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        Registry().load("shop_of_tests.broken")


def test_installed_packages_offer_tasks_by_entry_points(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = [
        EntryPoint("shop", "shop_of_tests.tasks", registry_module.GROUP),
        EntryPoint("one", "shop_of_tests.tasks:tasks", registry_module.GROUP),
    ]

    def entry_points(group: str) -> list[EntryPoint]:
        assert group == "workstealing.tasks"
        return installed

    monkeypatch.setattr(registry_module, "entry_points", entry_points)
    registry = Registry()
    registry.load_entry_points()

    assert registry.abilities() == ("shop.ship@1",)


def test_contracts_need_neither_redis_nor_an_event_loop() -> None:
    program = (
        "import sys; from workstealing import Contract, Registry, ClientContext;"
        "print(*{'redis', 'asyncio'} & set(sys.modules))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(workstealing.__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )

    assert done.stdout.split() == []
