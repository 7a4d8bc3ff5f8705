"""Random faults on a whole fleet, for minutes, and then the bill.

`make soak` (`MINUTES=10`, `SEED=…`, `SERVER=single|sentinel|cluster`) starts servers
behind proxies, producers, workers of all kinds and hosts that enlist; kills, freezes,
cuts and restarts what the plan says; lets everything calm down; and compares what Redis
has with a ledger that was kept in files. The seed gives the same plan again.

    plan        what is to happen when, from a seed
    stage       the servers and the proxies before them
    app         the queue, its tasks and its side work
    producer    what those do who submit
    member      one process of the fleet
    fleet       starts the processes, and again when they have died
    faults      does what the plan says
    ledger      what was accepted and what was done, outside of Redis
    bill        whether the promises were kept
    crowding    how many tasks with a limit ran at once
    memory      how much memory the processes of the fleet take
    leftovers   which keys are left, and how much memory
"""
