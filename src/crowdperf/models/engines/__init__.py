"""Builds engines, networks compiled for one library and machine, from an ONNX model.

`__main__.py` is the command line (`python3 -m crowdperf.models.engines --help`), `task.py` says what to build,
`with_<library>.py` turns one network into the bytes of a file, `build.py` writes the files and model.json.
"""
