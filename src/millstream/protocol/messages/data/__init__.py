"""Messages that are part of no API: control records, files, and what travels inside of opaque bytes."""
