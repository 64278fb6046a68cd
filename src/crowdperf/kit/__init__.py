"""Files, locks, tables, pages and redaction. It knows nothing of MLPerf and, without PyYAML, does all but read YAML."""
