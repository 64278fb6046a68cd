"""Runs in a process of its own: loads a library and prints what one of its functions answers, as one JSON line.

    python -I load_check.py /path/libcudnn.so cudnnGetVersion

{"number": 8907} or {"error": "what the loader says"}
"""

import ctypes
import json
import sys


def main() -> None:
    try:
        function = getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])
    except (OSError, AttributeError) as error:
        print(json.dumps({"error": str(error)}))
        return
    function.restype = ctypes.c_size_t if sys.argv[2] == "cudnnGetVersion" else ctypes.c_int
    print(json.dumps({"number": int(function())}))


if __name__ == "__main__":
    main()
