"""Files, locks, tables, pages, redaction. It does not depend on MLPerf and, without PyYAML, does all but read YAML."""
