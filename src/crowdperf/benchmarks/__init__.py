"""Benchmarks, one folder each: record, model, network, page. They import no backend, and are in no list."""
