"""Benchmarks whose answers are texts made token by token: `engine` says what answers prompts, `model` what a benchmark
asks for."""
