"""The settings of benchmarks by system, each with its origin.

registry = read_registry(custom_folder)
config = registry.effective("bert", Scenario.OFFLINE, "T4x20", "high_accuracy")
config.values["gpu_batch_size"]   # Value(256, "registry/bert/Offline.yaml:...")
config.inputs()                   # inputs of run-mlperf-inference
"""
