"""What users import of telemetry is at package level, and costs nothing until used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from workstealing import telemetry


@pytest.mark.parametrize("name", telemetry.__all__)
def test_the_package_offers_what_it_says(name: str) -> None:
    assert getattr(telemetry, name) is not None
    assert name in dir(telemetry)


def test_what_it_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = telemetry.Nothing


def test_a_host_that_only_enlists_imports_no_package_of_an_exporter() -> None:
    code = (
        "import sys, workstealing;"
        "print({'prometheus_client', 'statsd', 'opentelemetry'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "set()"
