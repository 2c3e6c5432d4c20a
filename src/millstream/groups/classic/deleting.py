"""DeleteGroups: a group without members goes, with everything that it committed."""
