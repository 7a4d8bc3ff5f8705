"""What the driver must be able to do with a library, besides starting its worker."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any

__all__ = ("BaseProducer",)


class BaseProducer(ABC):
    """Submits tasks and waits for results, by means of one library."""

    def connect(self) -> Any:
        """Do what must be done before the first task."""
        return None

    @abstractmethod
    def submit(self, task: str, number: int) -> Any:
        """Submit one task; return what `result` needs."""

    def submit_many(self, task: str, numbers: range) -> Any:
        """Submit many tasks the quickest way that there is."""
        raise NotImplementedError

    @abstractmethod
    def result(self, submitted: Any) -> Any:
        """Wait for the result of a task that was submitted."""

    def pause(self, seconds: float) -> Any:
        """Wait without work."""
        time.sleep(seconds)
