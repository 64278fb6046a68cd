"""The random seeds that a round asks for, as LoadGen's detail log repeats them.

Source: MODEL_CONFIG of the official checkers of mlcommons/inference: tag v4.0 up to v4.0, tag v4.1,
submission_checker/constants.py at b66003e1 (August 2026) since v5.0. The seeds are compiled into LoadGen, so a round
has wheels of its own: mlcommons-loadgen 6.0.16 and 6.0.17 hold those of v6.1.
"""

from collections.abc import Mapping

from crowdperf.logs.run_log import Seeds

SEEDS: Mapping[str, Seeds] = {
    "v0.7": Seeds(qsl=12786827339337101903, sample_index=12640797754436136668, schedule=3135815929913719677),
    "v1.0": Seeds(qsl=7322528924094909334, sample_index=1570999273408051088, schedule=3507442325620259414),
    "v1.1": Seeds(qsl=1624344308455410291, sample_index=517984244576520566, schedule=10051496985653635065),
    "v2.0": Seeds(qsl=6655344265603136530, sample_index=15863379492028895792, schedule=12662793979680847247),
    "v2.1": Seeds(qsl=14284205019438841327, sample_index=4163916728725999944, schedule=299063814864929621),
    "v3.0": Seeds(qsl=10003631887983097364, sample_index=17183018601990103738, schedule=12134888396634371638),
    "v3.1": Seeds(qsl=148687905518835231, sample_index=520418551913322573, schedule=811580660758947900),
    "v4.0": Seeds(qsl=13281865557512327830, sample_index=198141574272810017, schedule=7575108116881280410),
    "v4.1": Seeds(qsl=3066443479025735752, sample_index=10688027786191513374, schedule=14962580496156340209),
    "v5.0": Seeds(qsl=6023615788873153749, sample_index=15036839855038426416, schedule=9933818062894767841),
    "v5.1": Seeds(qsl=1780908523862526354, sample_index=14771362308971278857, schedule=18209322760996052031),
    "v6.0": Seeds(qsl=2465351861681999779, sample_index=14276810075590677512, schedule=3936089224930324775),
    "v6.1": Seeds(qsl=2085463073848966840, sample_index=2747215439041700203, schedule=16159082839903944936),
}
"""By round."""
