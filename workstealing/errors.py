"""Everything this library raises.

WorkStealingError
├── ConfigurationError      wrong arguments; fix the code; also a ValueError
│   ├── InvalidRate         not a number, NaN, below 0.0 or above 1.0
│   ├── InvalidInterval     `every=` is not a positive number of seconds
│   ├── RateExceeded        installed rates add up to more than 1.0
│   ├── AmbiguousPace       both or neither of `rate=` and `every=`
│   ├── DuplicateJob        the name is taken
│   ├── UnknownJob          no job of that name
│   ├── NotAJob             neither a callable nor an object with `recruited()`
│   ├── CoroutineJob        a coroutine job on a recruiter that cannot await it
│   ├── InvalidName         a name or an id with spaces, braces or control characters
│   ├── NotATask            the function cannot be a task, with the reason
│   ├── DuplicateTask       the name and version are taken
│   ├── DuplicateSchedule   the name of the schedule is taken
│   ├── UnknownWorker       no worker of that name
│   └── MissingExtra        names the extra to install
├── Conflict                another recruit does the same work; nothing is wrong
├── InvalidDuty             a job returned something other than a Duty or None
├── HookFailed              a user's function raised inside a job; the cause is kept
├── KeyFailed               the key of a task is not known; nothing was submitted
├── NotPermitted            this principal may not call the task
├── PayloadInvalid          arguments that do not match the task; names the field
├── PayloadTooLarge         more bytes than the queue accepts
├── ResultInvalid           a result that is not JSON, or not of the wanted type
├── BadEnvelope             not an envelope: broken JSON, a missing or wrong field
├── UnknownEnvelope         an envelope of another format version
├── BadSignature            not signed, changed, expired, or of another id or queue
├── BadOutcome              not an outcome: broken JSON, a missing or wrong field
├── UnknownTask             no task of that name and version is registered here
├── QueueFull               the queue is at its `max_length`
├── GroupIncomplete         a group was given up before all of it was submitted
├── InputEnded              the input of the queue was ended; it can be reopened
├── TaskNotFound            no task of that id, or its outcome has expired
├── ScheduleNotFound        no schedule of that name
├── TaskFailed              the task's own error, as its worker reported it
├── TaskDead                the task was given up, with the reason
├── TaskCancelled           the task was cancelled before it was done
├── NotUnique               a dead letter whose unique key another task has meanwhile
├── TaskExpired             the task was not begun in time, and is not any more
├── ResultTimeout           the task did not end in time; also a TimeoutError
├── ResourceFailed          a worker did not start: a resource cannot be opened
├── PoolBroken              a pool cannot go on: processes die, or nothing supervises
├── PoolFull                a pool's buffer is full, and stayed so
├── PoolStopped             a pool accepts no more work; also a RuntimeError
├── WorkDiscarded           work was taken out of its pool, or interrupted
└── RedisError              a server refused, failed or was silent; the cause is kept
    ├── RedisUnavailable    unreachable, or no reply in time; safe to try again
    │   └── RedisReadOnly   a replica, or too few replicas to write
    ├── RedisOutOfMemory    `maxmemory` is reached and nothing may be evicted
    ├── NotReplicated       too few replicas have a task in time; safe to try again
    ├── WrongType           the key holds something else
    └── ServerTooOld        the server lacks a command that is needed

StopWork(BaseException)     asks a running task to stop; not an error
SliceOverdue(BaseException) interrupts a slice of side work at its `hard_deadline`

What a task raises itself, to be tried again or given up, is in `tasks/retry.py`.
Errors cross threads and processes, so each can be pickled: its attributes are its
arguments, and its text is made from them. A text is one line without control
characters, whatever it quotes; attributes are as they came.
"""

from __future__ import annotations

from workstealing._printing import on_one_line

__all__ = (
    "AmbiguousPace",
    "BadEnvelope",
    "BadOutcome",
    "BadSignature",
    "ConfigurationError",
    "Conflict",
    "CoroutineJob",
    "DuplicateJob",
    "DuplicateSchedule",
    "DuplicateTask",
    "GroupIncomplete",
    "HookFailed",
    "InputEnded",
    "InvalidDuty",
    "InvalidInterval",
    "InvalidName",
    "InvalidRate",
    "KeyFailed",
    "MissingExtra",
    "NotAJob",
    "NotATask",
    "NotPermitted",
    "NotReplicated",
    "NotUnique",
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
    "ResourceFailed",
    "ResultInvalid",
    "ResultTimeout",
    "ScheduleNotFound",
    "ServerTooOld",
    "SliceOverdue",
    "StopWork",
    "TaskCancelled",
    "TaskDead",
    "TaskExpired",
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

    def __str__(self) -> str:
        return on_one_line(self._text())

    def _text(self) -> str:
        """Return what it says, with what it quotes as it came."""
        return super().__str__()


class ConfigurationError(WorkStealingError, ValueError):
    """The arguments are wrong: change the code that passes them.

    Also a `ValueError`, as the standard library raises for a wrong argument.
    """


class InvalidRate(ConfigurationError):
    """A rate is not a number from 0.0 to 1.0."""


class InvalidInterval(ConfigurationError):
    """An interval is not a positive, finite number of seconds."""


class RateExceeded(ConfigurationError):
    """The installed rates add up to more than 1.0."""


class AmbiguousPace(ConfigurationError):
    """A job needs exactly one of `rate=` and `every=`."""


class DuplicateJob(ConfigurationError):
    """The recruiter already has a job of that name."""


class UnknownJob(ConfigurationError):
    """The recruiter has no job of that name."""


class NotAJob(ConfigurationError):
    """The object is neither callable nor has a `recruited()` method."""


class CoroutineJob(ConfigurationError):
    """A recruiter that cannot await was given a coroutine job: use `AsyncRecruiter`."""


class InvalidName(ConfigurationError):
    """A name or an id is empty, too long, or has characters that are not allowed."""


class NotATask(ConfigurationError):
    """The function cannot be a task, or its parameters cannot be a payload."""


class DuplicateSchedule(ConfigurationError):
    """A schedule of that name exists already."""


class DuplicateTask(ConfigurationError):
    """A task of that name and version is already registered."""


class UnknownWorker(ConfigurationError):
    """There is no worker of that name, or it has left."""


class MissingExtra(ConfigurationError):
    """A feature needs a package that is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, extra)
        self.package, self.extra = package, extra

    def _text(self) -> str:
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


class KeyFailed(WorkStealingError):
    """The key of a limit, of fairness or of a unique task cannot be determined.

    Nothing was submitted. If a function of the user raised, `__cause__` is its error.
    """


class NotPermitted(WorkStealingError):
    """None of the roles of a request has the permission that the task needs.

    `roles` is a text, with commas between them.
    """

    def __init__(self, task: str, principal: str, roles: str, permission: str) -> None:
        super().__init__(task, principal, roles, permission)
        self.task, self.principal = task, principal
        self.roles, self.permission = roles, permission

    def _text(self) -> str:
        who = f"'{self.principal}'" if self.principal else "an unnamed caller"
        if not self.permission:
            return (
                f"task '{self.task}': {who} may not call it, because it names no"
                " permission: give it permission=, or PUBLIC if anyone may call it"
            )
        roles = f"the roles {self.roles}" if self.roles else "no roles"
        return (
            f"task '{self.task}': {who} may not call it: it requires the permission"
            f" '{self.permission}', but the request has {roles}"
        )


class PayloadInvalid(WorkStealingError):
    """The arguments do not match the signature of the task.

    `field` is the path of what is wrong: `width`, `user.name`, `sizes[2]`; it is
    empty when the payload as a whole is wrong.
    """

    def __init__(self, task: str, field: str, problem: str) -> None:
        super().__init__(task, field, problem)
        self.task, self.field, self.problem = task, field, problem

    def _text(self) -> str:
        where = f"argument '{self.field}'" if self.field else "the payload"
        # These go on with the sentence; what msgspec says is one of its own.
        joint = " " if self.problem.startswith(("is ", "takes ", "cannot ")) else ": "
        return f"task '{self.task}': {where}{joint}{self.problem}"


class PayloadTooLarge(WorkStealingError):
    """The payload has more bytes than the queue accepts."""

    def __init__(self, task: str, size: int, limit: int) -> None:
        super().__init__(task, size, limit)
        self.task, self.size, self.limit = task, size, limit

    def _text(self) -> str:
        return (
            f"task '{self.task}': the payload has {self.size:,} bytes, but the limit is"
            f" {self.limit:,}: store the data elsewhere and pass a reference to it"
        )


class ResultInvalid(WorkStealingError):
    """A result cannot be written as JSON, or is not of the expected type."""


class BadEnvelope(WorkStealingError):
    """These bytes are not an envelope: broken JSON, or a missing or wrong field."""


class UnknownEnvelope(WorkStealingError):
    """The envelope has a format version that this release cannot read."""


class BadSignature(WorkStealingError):
    """The queue requires signatures, and the envelope has no valid one."""

    def __init__(self, task_id: str, problem: str) -> None:
        super().__init__(task_id, problem)
        self.task_id, self.problem = task_id, problem

    def _text(self) -> str:
        return f"task {self.task_id} was refused: {self.problem}"


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

    def _text(self) -> str:
        return (
            f"the input of queue '{self.queue}' was ended, so the task was not"
            " submitted: call queue.reopen_input(), or run `workstealing queue reopen`"
        )


class TaskNotFound(WorkStealingError):
    """There is no task of that id, or its outcome has expired."""

    @classmethod
    def of(cls, task_id: str) -> TaskNotFound:
        """Return the error for a task of which nothing is known."""
        return cls(f"there is no task {task_id}, or its outcome has expired")


class ScheduleNotFound(WorkStealingError):
    """There is no schedule of that name in this run of the queue."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def _text(self) -> str:
        return (
            f"there is no schedule '{self.name}' in this run of the queue; one that is"
            " declared in code is stored when a worker or an upkeep job first runs"
        )


class TaskFailed(WorkStealingError):
    """The task raised and is not tried again; it is kept as a dead letter.

    `traceback` is the text of where it raised, on its worker.
    """

    def __init__(
        self, task_id: str, error: str, message: str, traceback: str = ""
    ) -> None:
        super().__init__(task_id, error, message, traceback)
        self.task_id, self.error = task_id, error
        self.message, self.traceback = message, traceback

    def _text(self) -> str:
        error = f"{self.error}: {self.message}" if self.message else self.error
        return f"task {self.task_id} failed with {error}"


class TaskDead(WorkStealingError):
    """The task was given up, not for an error of its own; it is a dead letter."""

    def __init__(self, task_id: str, reason: str, traceback: str = "") -> None:
        super().__init__(task_id, reason, traceback)
        self.task_id, self.reason, self.traceback = task_id, reason, traceback

    def _text(self) -> str:
        return (
            f"task {self.task_id} was given up: {self.reason};"
            " it is kept as a dead letter, to be replayed or dropped"
        )


class TaskCancelled(WorkStealingError):
    """The task was cancelled before it was done."""

    def __init__(self, task_id: str, reason: str = "") -> None:
        super().__init__(task_id, reason)
        self.task_id, self.reason = task_id, reason

    def _text(self) -> str:
        what = f"task {self.task_id} was cancelled"
        # A task that was stopped by its `context.check()` has just this to say.
        is_more = self.reason not in ("", what)
        return f"{what}: {self.reason}" if is_more else what


class NotUnique(WorkStealingError):
    """A dead letter is not replayed: another task has its unique key meanwhile."""

    def __init__(self, task_id: str, other: str) -> None:
        super().__init__(task_id, other)
        self.task_id, self.other = task_id, other

    def _text(self) -> str:
        return (
            f"task {self.task_id} was not replayed: task {self.other} has its unique"
            " key, and must end or be cancelled first"
        )


class TaskExpired(WorkStealingError):
    """The task was not begun before it expired, and is not begun any more."""

    def __init__(self, task_id: str, reason: str = "") -> None:
        super().__init__(task_id, reason)
        self.task_id, self.reason = task_id, reason

    def _text(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"task {self.task_id} expired{why}"


class GroupIncomplete(WorkStealingError):
    """A group was given up before all of its members were submitted."""

    def __init__(self, group: str, submitted: int, members: int) -> None:
        super().__init__(group, submitted, members)
        self.group, self.submitted, self.members = group, submitted, members

    def _text(self) -> str:
        return (
            f"group {self.group} was given up: a minute passed after {self.submitted}"
            f" of its {self.members} members were submitted; submit it again; if"
            " members must not run twice, pass an id of your own in their arguments"
        )


class ResultTimeout(WorkStealingError, TimeoutError):
    """The task did not end within the time that the caller waited for it."""


class ResourceFailed(WorkStealingError):
    """A resource could not be opened, so its worker takes no tasks."""

    def __init__(self, resource: str, problem: str) -> None:
        super().__init__(resource, problem)
        self.resource, self.problem = resource, problem

    def _text(self) -> str:
        return (
            f"the resource '{self.resource}' could not be opened, so the worker takes"
            f" no tasks: {self.problem}"
        )


class PoolBroken(WorkStealingError):
    """A pool of workers cannot go on.

    Its processes died one after the other before they started to work; or the
    supervisor of a worker does not answer, so that nothing would enforce its limits;
    or the system refuses it another thread; or another process works under its name;
    or its `initializer` raised.
    """


class PoolFull(WorkStealingError):
    """The pool's buffer is full: try again later, wait longer, or raise `buffer`."""

    submitted: tuple[object, ...] = ()
    """What `execute_many` had submitted by then."""


class PoolStopped(WorkStealingError, RuntimeError):
    """The pool was stopped and accepts no more work."""


class WorkDiscarded(WorkStealingError):
    """Work was removed from its pool before it started, or was interrupted."""


class RedisError(WorkStealingError):
    """A Redis server refused or failed; `__cause__` is the client's error."""


class RedisUnavailable(RedisError):
    """The server is unreachable, did not answer in time, or takes no writes.

    It may come back: calls that wait for a result go on waiting.
    """


class RedisReadOnly(RedisUnavailable):
    """The server accepts no writes: it is a replica, or has too few replicas.

    It has done nothing of what it was asked for.
    """


class RedisOutOfMemory(RedisError):
    """The server reached `maxmemory` and may not evict anything."""


class NotReplicated(RedisError):
    """The server took something that too few of its replicas had in time.

    It may be lost with the server, or be kept. Tasks can be submitted again under the
    same `ids`: those that are there are not submitted twice.
    """

    answer: object = None
    """What the server itself answered."""

    def __init__(self, ids: tuple[str, ...], confirmed: int, replicas: int) -> None:
        super().__init__(ids, confirmed, replicas)
        self.ids, self.confirmed, self.replicas = ids, confirmed, replicas

    def _text(self) -> str:
        what = f"task {self.ids[0]}" if len(self.ids) == 1 else f"{len(self.ids)} tasks"
        refusal = f"; the server refused to say: {self.__cause__}"
        return (
            f"{self.confirmed} of the {self.replicas} replicas that are asked for have"
            f" confirmed {what if self.ids else 'a write'} in time: the server has it,"
            " but may lose it in a failover; it is safe to submit again under the same"
            f" id{refusal if self.__cause__ else ''}"
        )


class WrongType(RedisError):
    """A key holds a value of another type than the operation needs."""


class ServerTooOld(RedisError):
    """The server does not have a command that is needed: upgrade it."""


class StopWork(BaseException):
    """Asks a running task to stop: it was cancelled, or its lease was lost.

    Not an `Exception`, so that a task's own `except Exception` does not swallow it.
    """


class SliceOverdue(BaseException):
    """Interrupts a slice that has run for longer than its `hard_deadline`.

    Not an `Exception`, so that a job's own `except Exception` does not swallow it.
    """

    def __str__(self) -> str:
        return "the slice ran for longer than the hard_deadline of its recruiter"
