"""Claims about Millstream. The folders mirror `src/millstream`."""
