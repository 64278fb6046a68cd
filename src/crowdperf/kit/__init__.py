"""Files, locks, tables, pages and redaction. Standard library only; knows nothing of MLPerf."""
