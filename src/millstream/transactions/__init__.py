"""The transaction coordinator's rules. PURE: no clock, no files, no tasks; time and ids are arguments."""
