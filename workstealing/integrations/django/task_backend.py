"""A backend for `django.tasks`, which Django has since 6.0.

`"BACKEND": "workstealing.integrations.django.TaskBackend"` in `TASKS`. Each queue name
of Django is a queue of `WORKSTEALING["QUEUES"]`, and `workstealing_worker` runs its
tasks. Django's default, for a plain `@task`, is the queue `"default"`. Without `QUEUES`
in `TASKS`, all queues of `WORKSTEALING` are valid. With an empty list, any name is: a
queue that `WORKSTEALING` does not list has the default options, and its results are
found by processes in which one of their tasks has named it.

A task is stored in Redis with the path of its function, and only tasks whose modules
are imported are run or returned: nothing is imported because Redis names it.

- Priorities from -100 to 100 become three: above 0 is urgent, below 0 is low.
- A result is kept as long as its queue keeps outcomes, an hour by default. Then it does
  not exist; nor does that of a cancelled task, which Django has no status for.
- Django's tasks have no retries. A task whose worker dies runs again, and is FAILED
  once it was given up. Only the last attempt, and its worker, are known.
- `OPTIONS` are refused: the options of a queue are in `WORKSTEALING["QUEUES"]`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from traceback import format_exception
from typing import Any

from django.tasks.backends.base import BaseTaskBackend
from django.tasks.base import (
    Task,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
)
from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist
from django.tasks.signals import task_enqueued, task_finished, task_started
from django.utils.json import normalize_json
from django.utils.timezone import now

from workstealing._checks import checked_id
from workstealing.client.queue_internals import internals_of
from workstealing.client.task import Task as QueueTask
from workstealing.errors import ConfigurationError, DuplicateTask, InvalidName, StopWork
from workstealing.integrations.django.site import (
    get_queue,
    get_settings,
    unlisted_registry,
)
from workstealing.integrations.django.task_record import (
    CallRecord,
    EnqueuedCall,
    from_milliseconds,
    read_record,
    to_milliseconds,
    with_time_zone,
)
from workstealing.queue.inspection_calls import Located, locate
from workstealing.tasks.context import ExecutionContext
from workstealing.tasks.definition import define
from workstealing.tasks.outcome import State, TaskOutcome

__all__ = ("TaskBackend",)

_VERSION = 1
_PLACES = {
    State.RUNNING: TaskResultStatus.RUNNING,
    State.DONE: TaskResultStatus.SUCCESSFUL,
    State.FAILED: TaskResultStatus.FAILED,
    State.DEAD: TaskResultStatus.FAILED,
}

_known: dict[str, Task] = {}


class TaskBackend(BaseTaskBackend):
    """Puts the tasks of Django into the queues of `WORKSTEALING`."""

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        if self.options:
            raise ConfigurationError(
                f'remove TASKS["{alias}"]["OPTIONS"]: the options of a queue belong in'
                ' WORKSTEALING["QUEUES"]'
            )
        listed = get_settings().queues
        if "QUEUES" not in params:
            # Django would allow "default" only.
            self.queues = set(listed)
        self._takes_any_queue = "QUEUES" in params and not self.queues
        names = sorted(listed if self._takes_any_queue else self.queues)
        self._queues = {name: get_queue(name) for name in names}

    def validate_task(self, task: Task) -> None:
        """Check a task, and register it for the workers of this process."""
        if task.queue_name not in self._queues and self._takes_any_queue:
            try:
                self._queues[task.queue_name] = get_queue(task.queue_name)
            except ConfigurationError as error:
                raise InvalidTask(f"{task.module_path}: {error}") from error
        if task.queue_name not in self._queues:
            name, known = task.queue_name, ", ".join(map(repr, self._queues))
            raise InvalidTask(
                f"Queue {name!r} is not valid for backend. {task.module_path} uses it,"
                f" but {self.alias!r} has {known or 'no queue'}: add {name!r} to"
                ' WORKSTEALING["QUEUES"] (and to QUEUES in TASKS, if you have that), or'
                " name another queue, such as"
                f" @task(queue_name={next(iter(self._queues), 'thumbnails')!r})"
            )
        super().validate_task(task)
        path = task.module_path
        _known.setdefault(path, task)
        registries = [queue.registry for queue in tuple(self._queues.values())]
        if self._takes_any_queue:
            # Workers of such a queue may be told of it by nobody else.
            registries.append(unlisted_registry())
        for registry in registries:
            if f"{path}@{_VERSION}" not in registry.abilities():
                # Another thread may have been quicker.
                with suppress(DuplicateTask):
                    registry.add(define(self._runner(path), path, _VERSION))

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Put a task into its queue."""
        self.validate_task(task)
        due_at = task.run_after
        call = EnqueuedCall(
            args=normalize_json(args),
            kwargs=normalize_json(kwargs),
            enqueued=to_milliseconds(now()),
            # Django takes any whole number, such as 3.0.
            priority=int(task.priority),
            run_after=None if due_at is None else to_milliseconds(due_at),
        )
        queue = self._queues[task.queue_name]
        definition = queue.registry.find(task.module_path, _VERSION)
        given: QueueTask[..., Any] = QueueTask(queue, definition)
        handle = given.options(
            priority=1 - (task.priority > 0) + (task.priority < 0),
            at=None if due_at is None else with_time_zone(due_at),
        ).submit(call)
        result = self._result(task, handle.id, call, TaskResultStatus.READY)
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult:
        """Return the state and result of a task, from any process."""
        with suppress(InvalidName):
            checked_id(result_id)
            for queue in tuple(self._queues.values()):
                parts = internals_of(queue)
                keys = parts.driver.run(parts.keys_of(result_id))
                found = parts.driver.run(locate(keys, result_id))
                if found.place is not State.UNKNOWN:
                    return self._found(result_id, found, queue.name)
        raise TaskResultDoesNotExist(result_id)

    def _runner(self, path: str) -> Callable[..., Any]:
        def run(call: EnqueuedCall, attempt: ExecutionContext) -> CallRecord:
            return self._run(path, call, attempt)

        return run

    def _run(
        self, path: str, call: EnqueuedCall, attempt: ExecutionContext
    ) -> CallRecord:
        task = self._as_enqueued(path, call, attempt.queue)
        result = self._result(task, attempt.id, call, TaskResultStatus.RUNNING)
        _begin(result, now(), attempt.worker, attempt.attempt)
        task_started.send(type(self), task_result=result)
        context = [TaskContext(task_result=result)] if task.takes_context else []
        try:
            value = normalize_json(task.call(*context, *call.args, **call.kwargs))
        except (KeyboardInterrupt, StopWork):
            # It may go back to its queue, so it has not finished.
            raise
        except BaseException as error:
            kind = type(error)
            failure = TaskError(
                exception_class_path=f"{kind.__module__}.{kind.__qualname__}",
                traceback="".join(format_exception(error)),
            )
            _set(result, status=TaskResultStatus.FAILED, errors=[failure])
            _set(result, finished_at=now())
            task_finished.send(type(self), task_result=result)
            raise
        _set(result, status=TaskResultStatus.SUCCESSFUL, _return_value=value)
        _set(result, finished_at=now())
        task_finished.send(type(self), task_result=result)
        return CallRecord(path, call, value)

    def _found(self, result_id: str, found: Located, queue_name: str) -> TaskResult:
        trace, place = found.trace, found.place
        outcome = TaskOutcome.read(trace.outcome) if trace.outcome else None
        try:
            record = read_record(trace)
        except LookupError as error:
            raise TaskResultDoesNotExist(f"{result_id}: {error}") from error
        if outcome is not None:
            place = State(outcome.state)
        status = TaskResultStatus.READY
        if place is not None:
            status = _PLACES.get(place, status)
        task = self._as_enqueued(record.task, record.call, queue_name)
        result = self._result(task, result_id, record.call, status)
        if outcome is not None:
            began_at, ended_at = (
                from_milliseconds(outcome.began),
                from_milliseconds(outcome.ended),
            )
            _begin(result, began_at, outcome.worker, outcome.attempt)
            _set(result, finished_at=ended_at, _return_value=record.value)
        elif found.begun_at_ms is not None:
            began_at = from_milliseconds(found.begun_at_ms)
            _begin(result, began_at, trace.worker, trace.attempts + 1)
        if status == TaskResultStatus.FAILED:
            _set(result, errors=[_error(outcome)])
        return result

    def _as_enqueued(self, path: str, call: EnqueuedCall, queue_name: str) -> Task:
        """Return a task as it was enqueued."""
        if path not in _known:
            raise TaskResultDoesNotExist(
                f"no task {path} is registered here: import the module that defines it"
            )
        run_after = (
            None if call.run_after is None else from_milliseconds(call.run_after)
        )
        # Not `using`, which would keep what the first variant says where we say None.
        return replace(
            _known[path],
            priority=call.priority,
            queue_name=queue_name,
            run_after=run_after,
            backend=self.alias,
        )

    def _result(
        self, task: Task, result_id: str, call: EnqueuedCall, status: TaskResultStatus
    ) -> TaskResult:
        return TaskResult(
            task=task,
            id=result_id,
            status=status,
            enqueued_at=from_milliseconds(call.enqueued),
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=call.args,
            kwargs=call.kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )


def _begin(result: TaskResult, began_at: Any, worker: str, attempt: int) -> None:
    earlier = ["unknown"] * (attempt - 1)
    _set(result, started_at=began_at, last_attempted_at=began_at)
    _set(result, worker_ids=[*earlier, worker])


def _error(outcome: TaskOutcome | None) -> TaskError:
    if outcome is None or outcome.error is None:
        reason = outcome.reason if outcome is not None else "its outcome has expired"
        path = "workstealing.errors.TaskDead"
        return TaskError(exception_class_path=path, traceback=reason)
    kind = outcome.error.type
    path = kind if "." in kind else f"builtins.{kind}"
    return TaskError(exception_class_path=path, traceback=outcome.error.traceback)


def _set(result: TaskResult, **values: Any) -> None:
    # Frozen for its readers; we are still making it.
    for name, value in values.items():
        object.__setattr__(result, name, value)
