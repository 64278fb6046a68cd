"""What MLPerf says: names, rounds, records of benchmarks and backends, compliance tests. It reads no results."""
