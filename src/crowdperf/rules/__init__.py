"""What MLPerf says: names, rounds, records of benchmarks and backends, compliance tests. Data, no results."""
