"""`make bench`: Millstream beside Apache Kafka on this machine, in turn, as ratios.

Absolute figures move by a factor of two between runs of the same machine; ratios of runs in turn move much less. So
every row measures both contenders several times, alternating who goes first, and compares the medians. Both are kept
running and warm throughout, except where a row is about starting.

    python -m bench                      all rows
    python -m bench --only produce-100   some rows (repeatable)
    python -m bench --quick              small amounts, one round: does it run at all?
    python -m bench --scale 0.1          a tenth of the amounts; --rounds 1 for one round of each row
    python -m bench --cite <results>     let docs/performance.md cite this run: bench/cited.json and the tables
    python -m bench --check-docs         whether its tables say what bench/cited.json does
    python -m bench --feature-costs      what features on the hot path cost, Millstream alone
"""
