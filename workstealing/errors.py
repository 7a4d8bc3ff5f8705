"""Everything this library raises.

WorkStealingError
├── ConfigurationError      wrong arguments; fix the code
│   ├── InvalidRate         not a number, NaN, below 0.0 or above 1.0
│   ├── InvalidInterval     `every=` is not a positive number of seconds
│   ├── RateExceeded        installed rates add up to more than 1.0
│   ├── AmbiguousPace       both or none of `rate=` and `every=`
│   ├── DuplicateJob        the name is taken
│   ├── UnknownJob          no job of that name
│   ├── NotAJob             neither a callable nor an object with `recruited()`
│   ├── CoroutineJob        a coroutine job on a recruiter that cannot await it
│   ├── InvalidName         a name or an id with spaces, braces or control characters
│   ├── NotATask            the function cannot be a task; says why
│   ├── DuplicateTask       the name and version are taken
│   ├── UnknownWorker       no worker of that name
│   └── MissingExtra        names the extra to install
├── Conflict                another recruit does the same work; nothing is wrong
├── InvalidDuty             a job returned something that is not a Duty
├── HookFailed              a user's function raised inside a job; the cause is kept
├── NotPermitted            this principal may not call the task
├── PayloadInvalid          arguments that do not match the task; names the field
├── PayloadTooLarge         more bytes than the queue takes
├── ResultInvalid           a result that is not JSON, or not of the wanted type
├── BadEnvelope             not an envelope: broken JSON, a missing or wrong field
├── UnknownEnvelope         an envelope of another format version
├── BadSignature            not signed, changed, expired, or of another id or queue
├── BadOutcome              not an outcome: broken JSON, a missing or wrong field
├── UnknownTask             no task of that name and version is registered here
├── QueueFull               the queue is at its `max_length`
├── InputEnded              the input of the queue was ended; says how to reopen it
├── TaskNotFound            no task of that id, or its outcome has expired
├── TaskFailed              the task's own error, as its worker reported it
├── TaskDead                the task was given up; says why
├── TaskCancelled           the task was cancelled before it was done
├── ResultTimeout           the task did not end in time; also a TimeoutError
├── PoolBroken              processes of a pool die before they start to work
├── PoolFull                a pool's buffer is full, and stayed so
├── PoolStopped             a pool takes no more work; also a RuntimeError
├── WorkDiscarded           work was taken out of its pool, or interrupted
└── RedisError              a server refused, failed or was silent; the cause is kept
    ├── RedisUnavailable    not reached, or no reply; safe to try again
    ├── RedisReadOnly       a replica, or too few replicas to write
    ├── RedisOutOfMemory    `maxmemory` is reached and nothing may be evicted
    ├── WrongType           the key holds something else
    └── ServerTooOld        the server lacks a command that is needed

StopWork(BaseException)     asks a running task to stop; not an error

Errors cross threads and processes, so each can be pickled: what it carries are its
arguments, and its text is made from them.
"""

from __future__ import annotations

__all__ = (
    "AmbiguousPace",
    "BadEnvelope",
    "BadOutcome",
    "BadSignature",
    "ConfigurationError",
    "Conflict",
    "CoroutineJob",
    "DuplicateJob",
    "DuplicateTask",
    "HookFailed",
    "InputEnded",
    "InvalidDuty",
    "InvalidInterval",
    "InvalidName",
    "InvalidRate",
    "MissingExtra",
    "NotAJob",
    "NotATask",
    "NotPermitted",
    "PayloadInvalid",
    "PayloadTooLarge",
    "PoolBroken",
    "PoolFull",
    "PoolStopped",
    "QueueFull",
    "RateExceeded",
    "RedisError",
    "RedisOutOfMemory",
    "RedisReadOnly",
    "RedisUnavailable",
    "ResultInvalid",
    "ResultTimeout",
    "ServerTooOld",
    "StopWork",
    "TaskCancelled",
    "TaskDead",
    "TaskFailed",
    "TaskNotFound",
    "UnknownEnvelope",
    "UnknownJob",
    "UnknownTask",
    "UnknownWorker",
    "WorkDiscarded",
    "WorkStealingError",
    "WrongType",
)


class WorkStealingError(Exception):
    """The root of all errors of this library."""


class ConfigurationError(WorkStealingError):
    """Wrong arguments: the code that passed them must change."""


class InvalidRate(ConfigurationError):
    """A rate is not a number from 0.0 to 1.0."""


class InvalidInterval(ConfigurationError):
    """An interval is not a positive, finite number of seconds."""


class RateExceeded(ConfigurationError):
    """The installed rates add up to more than 1.0."""


class AmbiguousPace(ConfigurationError):
    """A job needs exactly one of `rate=` and `every=`."""


class DuplicateJob(ConfigurationError):
    """The recruiter has a job of that name already."""


class UnknownJob(ConfigurationError):
    """The recruiter has no job of that name."""


class NotAJob(ConfigurationError):
    """The object is neither callable nor has a `recruited()` method."""


class CoroutineJob(ConfigurationError):
    """A coroutine job was given to a recruiter that cannot await it."""


class InvalidName(ConfigurationError):
    """A name or an id is empty, too long, or has characters that are not allowed."""


class NotATask(ConfigurationError):
    """The function cannot be a task, or its parameters cannot be a payload."""


class DuplicateTask(ConfigurationError):
    """A task of that name and version is registered already."""


class UnknownWorker(ConfigurationError):
    """There is no worker of that name, or it has left."""


class MissingExtra(ConfigurationError):
    """A feature needs a package that is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, extra)
        self.package = package
        self.extra = extra

    def __str__(self) -> str:
        command = f"pip install 'workstealing[{self.extra}]'"
        return f"{self.package} is not installed: run  {command}"


class Conflict(WorkStealingError):
    """Raised by a job that finds another recruit doing the same work.

    The slice ends and is counted as a conflict, not as an error.
    """


class InvalidDuty(WorkStealingError):
    """A job returned something that is neither a `Duty` nor None."""


class HookFailed(WorkStealingError):
    """A function that the user gave to a job raised; `__cause__` is its error.

    It counts against the job, not against the server that the job works on.
    """


class NotPermitted(WorkStealingError):
    """None of the roles of a request has the permission that the task needs.

    `roles` is a text, with commas between them.
    """

    def __init__(self, task: str, principal: str, roles: str, permission: str) -> None:
        super().__init__(task, principal, roles, permission)
        self.task = task
        self.principal = principal
        self.roles = roles
        self.permission = permission

    def __str__(self) -> str:
        who = f"'{self.principal}'" if self.principal else "an unnamed caller"
        if not self.permission:
            return (
                f"task '{self.task}': {who} may not call it, since it names no"
                " permission: give it permission=, or PUBLIC if everybody may call it"
            )
        roles = f"the roles {self.roles}" if self.roles else "no roles"
        return (
            f"task '{self.task}': {who} may not call it: it needs the permission"
            f" '{self.permission}', and the request has {roles}"
        )


class PayloadInvalid(WorkStealingError):
    """The arguments do not match the signature of the task.

    `field` is the path of what is wrong: `width`, `user.name`, `sizes[2]`; it is
    empty when the payload as a whole is wrong.
    """

    def __init__(self, task: str, field: str, problem: str) -> None:
        super().__init__(task, field, problem)
        self.task = task
        self.field = field
        self.problem = problem

    def __str__(self) -> str:
        where = f"argument '{self.field}'" if self.field else "the payload"
        return f"task '{self.task}': {where}: {self.problem}"


class PayloadTooLarge(WorkStealingError):
    """The payload has more bytes than the queue takes."""

    def __init__(self, task: str, size: int, limit: int) -> None:
        super().__init__(task, size, limit)
        self.task = task
        self.size = size
        self.limit = limit

    def __str__(self) -> str:
        return (
            f"task '{self.task}': the payload has {self.size:,} bytes and the limit is"
            f" {self.limit:,}: store the data elsewhere and pass where it is"
        )


class ResultInvalid(WorkStealingError):
    """A result has no form in JSON, or is not of the type that is wanted."""


class BadEnvelope(WorkStealingError):
    """These bytes are not an envelope: broken JSON, or a missing or wrong field."""


class UnknownEnvelope(WorkStealingError):
    """The envelope has a format version that this release cannot read."""


class BadSignature(WorkStealingError):
    """A queue that wants signatures was given an envelope without a valid one."""

    def __init__(self, task_id: str, problem: str) -> None:
        super().__init__(task_id, problem)
        self.task_id = task_id
        self.problem = problem

    def __str__(self) -> str:
        return f"task {self.task_id} is refused: {self.problem}"


class BadOutcome(WorkStealingError):
    """These bytes are not an outcome: broken JSON, or a missing or wrong field."""


class UnknownTask(WorkStealingError):
    """No task of that name and version is registered in this process."""


class QueueFull(WorkStealingError):
    """The queue is at its `max_length`: try again when workers have caught up."""


class InputEnded(WorkStealingError):
    """The input of the queue was ended: no process can submit tasks to it.

    `queue` is its name and run, with a slash between them.
    """

    def __init__(self, queue: str) -> None:
        super().__init__(queue)
        self.queue = queue

    def __str__(self) -> str:
        return (
            f"the input of queue '{self.queue}' was ended, so the task was not"
            " submitted: queue.reopen_input(), or `workstealing queue reopen`, accepts"
            " tasks again"
        )


class TaskNotFound(WorkStealingError):
    """There is no task of that id, or its outcome has expired."""


class TaskFailed(WorkStealingError):
    """The task raised and is not tried again; it is kept as a dead letter."""

    def __init__(
        self, task_id: str, error: str, message: str, traceback: str = ""
    ) -> None:
        super().__init__(task_id, error, message, traceback)
        self.task_id = task_id
        self.error = error
        self.message = message
        self.traceback = traceback

    def __str__(self) -> str:
        error = f"{self.error}: {self.message}" if self.message else self.error
        return f"task {self.task_id} failed with {error} (see .traceback)"


class TaskDead(WorkStealingError):
    """The task was given up, not for an error of its own; it is a dead letter."""

    def __init__(self, task_id: str, reason: str, traceback: str = "") -> None:
        super().__init__(task_id, reason, traceback)
        self.task_id = task_id
        self.reason = reason
        self.traceback = traceback

    def __str__(self) -> str:
        return (
            f"task {self.task_id} was given up: {self.reason};"
            " it is kept as a dead letter, to be replayed or dropped"
        )


class TaskCancelled(WorkStealingError):
    """The task was cancelled before it was done."""

    def __init__(self, task_id: str, reason: str = "") -> None:
        super().__init__(task_id, reason)
        self.task_id = task_id
        self.reason = reason

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"task {self.task_id} was cancelled{why}"


class ResultTimeout(WorkStealingError, TimeoutError):
    """The task did not end within the time that the caller was willing to wait."""


class PoolBroken(WorkStealingError):
    """The processes of a pool die one after the other before they start to work."""


class PoolFull(WorkStealingError):
    """A pool's buffer is full: try again later, wait longer, or raise `buffer`."""

    submitted: tuple[object, ...] = ()
    """What `execute_many` had submitted by then."""


class PoolStopped(WorkStealingError, RuntimeError):
    """A pool was stopped and takes no more work."""


class WorkDiscarded(WorkStealingError):
    """Work was removed from its pool before it was begun, or was interrupted."""


class RedisError(WorkStealingError):
    """A Redis server refused or failed; `__cause__` is the client's error."""


class RedisUnavailable(RedisError):
    """The server was not reached or did not answer in time."""


class RedisReadOnly(RedisError):
    """The server takes no writes: a replica, or too few replicas are in reach."""


class RedisOutOfMemory(RedisError):
    """The server reached `maxmemory` and may not evict anything."""


class WrongType(RedisError):
    """A key holds another type than the one that is needed."""


class ServerTooOld(RedisError):
    """The server lacks a command that is needed."""


class StopWork(BaseException):
    """Asks a running task to stop: it was cancelled, or its lease was lost.

    No `Exception`, so that a task's own `except Exception` does not swallow it.
    """
