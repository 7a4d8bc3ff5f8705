"""What `WORKSTEALING` may say, and what is said of what it may not."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest

from workstealing import Adapt, Breaker, StoreGate, TaskQueue
from workstealing.errors import ConfigurationError
from workstealing.integrations import When
from workstealing.integrations.django.site_settings import read_settings


def test_nothing_needs_to_be_said() -> None:
    read = read_settings({})

    assert read.redis is None
    assert read.when == When.always()
    assert not read.recruiter
    assert not read.jobs
    assert not read.queues


def test_everything_can_be_said() -> None:
    read = read_settings(
        {
            "REDIS": "redis://localhost:6379/3",
            "RECRUITER": {
                "deadline": 0.02,
                "share": 0.005,
                "breaker": Breaker(first=2.0),
                "gate": StoreGate(),
                "adapt": Adapt(least=0.001, most=0.1),
                "observers": ["shop.telemetry.observer"],
            },
            "WHEN": When.quick(0.1),
            "JOBS": {"sweep": {"job": "shop.jobs.sweep", "every": 30}},
            "QUEUES": {"mails": {"retention": 60, "replicas": 1, "upkeep": 0.1}},
        }
    )

    assert read.jobs["sweep"].path == "shop.jobs.sweep"
    assert read.jobs["sweep"].options == {"every": 30}
    assert read.queues["mails"].options == {"retention": 60, "replicas": 1}
    assert read.queues["mails"].upkeep == 0.1


def test_a_queue_takes_what_a_task_queue_takes_except_what_the_site_decides() -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_settings({"QUEUES": {"mails": {"shrads": 8}}})

    known = set(str(refused.value).partition("It takes ")[2].split(", "))
    keywords = set(signature(TaskQueue).parameters) - {"name"}
    assert known == keywords - {"redis", "registry", "clock"} | {"upkeep"}
    assert "did you mean 'shards'?" in str(refused.value)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ([], "WORKSTEALING: write a dictionary, not a list"),
        ({"RECRUTER": {}}, "WORKSTEALING has no key 'RECRUTER': did you mean 'RECRUI"),
        ({"redis": None}, "WORKSTEALING has no key 'redis': did you mean 'REDIS'"),
        ({7: None}, "WORKSTEALING: keys must be strings, not 7"),
        ({"REDIS": 6379}, 'WORKSTEALING["REDIS"]: write a URL such as redis://'),
        ({"REDIS": "localhost"}, 'WORKSTEALING["REDIS"]: '),
        ({"RECRUITER": {"shares": 1}}, "no key 'shares': did you mean 'share'"),
        ({"RECRUITER": {"share": 2}}, 'WORKSTEALING["RECRUITER"]["share"]: '),
        ({"RECRUITER": {"deadline": 0}}, 'WORKSTEALING["RECRUITER"]["deadline"]: '),
        ({"RECRUITER": {"gate": 3}}, 'WORKSTEALING["RECRUITER"]["gate"]: '),
        ({"RECRUITER": {"adapt": 3}}, 'WORKSTEALING["RECRUITER"]["adapt"]: '),
        ({"RECRUITER": {"observers": "a.b"}}, '["observers"]: write a list'),
        ({"WHEN": "sometimes"}, "WORKSTEALING[\"WHEN\"]: write 'always', 'fine',"),
        ({"JOBS": ["a.b"]}, 'WORKSTEALING["JOBS"]: write a dictionary'),
        ({"JOBS": {"a": {}}}, 'WORKSTEALING["JOBS"]["a"]["job"]: write the dotted'),
        (
            {"JOBS": {"a": {"job": "b.c"}}},
            'WORKSTEALING["JOBS"]["a"]: a job needs a pace',
        ),
        ({"JOBS": {"a": {"job": "b.c", "rate": 2}}}, 'WORKSTEALING["JOBS"]["a"]: a '),
        (
            {"JOBS": {n: {"job": "b.c", "rate": 0.6} for n in "ab"}},
            'WORKSTEALING["JOBS"]["b"]: with \'b\' at 0.6 the rates add up to 1.2',
        ),
        ({"JOBS": {"a": {"jab": "b.c"}}}, "no key 'jab': did you mean 'job'"),
        ({"QUEUES": {"a b": {}}}, 'WORKSTEALING["QUEUES"]["a b"]: the name of a'),
        ({"QUEUES": {"a": {"lease": 0}}}, 'WORKSTEALING["QUEUES"]["a"]: lease'),
        ({"QUEUES": {"a": {"upkeep": 0}}}, 'WORKSTEALING["QUEUES"]["a"]["upkeep"]: '),
    ],
)
def test_an_error_names_the_key_and_says_what_to_write(wrong: Any, told: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_settings(wrong)

    assert told in str(refused.value)


def test_a_password_in_a_wrong_url_is_not_repeated() -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_settings({"REDIS": "http://user:hunter2@localhost"})

    assert "hunter2" not in str(refused.value)
