"""Benchmarks, one folder each: record, model, network, page. They import no backend, and no list names them."""
