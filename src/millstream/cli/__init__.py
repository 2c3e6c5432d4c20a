"""The command line: `millstream topic create orders`, and the names that people know from Kafka's own tools.

    main.py       which command is meant; what ends quietly, what ends with a sentence
    declare.py    how a command and its options are declared         output.py   the one place that prints
    connect.py    options that every command with a broker has       kafka/      kafka-topics and its relatives

A command is a function that takes a client and returns data. It starts in well under half a second against any Kafka:
only the modules of the one command that was asked for are imported, and no parser or table library is (docs/adr).
"""
