"""The records of the metadata log, one module per type. (The API of that name is in `metadata_api`.)"""
