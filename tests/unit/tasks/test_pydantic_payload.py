"""Pydantic models as parameters and results, with the real package."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel, ConfigDict, Field, computed_field

from workstealing.errors import PayloadInvalid, ResultInvalid
from workstealing.tasks.signature import Signature, decode_result


class Item(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    id: UUID
    price: float = Field(gt=0, alias="Price")
    bought: date

    @computed_field
    @property
    def gross(self) -> float:
        return self.price * 1.2


class Order(BaseModel):
    items: list[Item]
    note: str | None = None


def buy(order: Order, more: list[Item | None] = [], count: int = 1) -> Order:  # noqa: B006
    return order


SIGNATURE = Signature.of(buy, "shop.buy")


def _item() -> Item:
    return Item(id=uuid4(), Price=1.5, bought=date(2026, 1, 2))


def test_a_model_arrives_as_an_equal_model() -> None:
    order, item = Order(items=[_item(), _item()]), _item()

    arguments = SIGNATURE.decode(SIGNATURE.encode((order, [item, None]), {}))

    assert arguments == {"order": order, "more": [item, None], "count": 1}


def test_plain_values_are_taken_for_a_model() -> None:
    arguments = SIGNATURE.decode(SIGNATURE.encode(({"items": []},), {}))

    assert arguments["order"] == Order(items=[])


def test_a_model_is_a_result() -> None:
    order = Order(items=[_item()])

    assert decode_result(SIGNATURE.encode_result(order), SIGNATURE.result_type) == order
    with pytest.raises(ResultInvalid, match="items: Field required"):
        decode_result(b"{}", SIGNATURE.result_type)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "items: Field required"),
        ({"items": [{"id": 1}]}, r"items\.0\.id: "),
        (5, "should be an object"),
        (Order.model_construct(items="none"), "items: "),
    ],
)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_wrong_model_is_refused_by_field(given: Any, problem: str) -> None:
    with pytest.raises(PayloadInvalid, match=problem) as caught:
        SIGNATURE.encode((given,), {})

    assert caught.value.field == "order"
    assert "errors.pydantic.dev" not in str(caught.value)


def test_a_foreign_payload_is_checked_by_the_model() -> None:
    with pytest.raises(PayloadInvalid, match="items: Field required") as caught:
        SIGNATURE.decode(b'{"order":{}}')

    assert caught.value.field == "order"


def test_a_model_where_anything_goes_is_written_as_json() -> None:
    def keep(value: Any) -> None:
        pass

    signature = Signature.of(keep)

    assert signature.decode(signature.encode((Order(items=[]),), {})) == {
        "value": {"items": [], "note": None}
    }


def test_pydantic_is_not_imported_for_those_who_do_not_use_it() -> None:
    program = (
        "import sys, workstealing.tasks.definition as t\n"
        "def f(a: int, b: dict) -> str: ...\n"
        "t.define(f).signature.encode((1, {}), {})\n"
        "sys.exit('pydantic' in sys.modules)"
    )

    subprocess.run([sys.executable, "-c", program], check=True, timeout=50)
