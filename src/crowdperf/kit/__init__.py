"""Files, locks, tables, pages and redaction. It does not depend on MLPerf and, without PyYAML, does all but read YAML."""
