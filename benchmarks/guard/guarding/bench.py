"""What every part is given: its programs, its time, and where its rows go."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sharing.campaign import Lengths

from .programs import Programs
from .runs import Runner


@dataclass
class Bench:
    folder: Path
    """For what is compiled, said and reported on the way."""
    record: Any
    programs: Programs
    ebb: str
    seconds: float
    """For the whole part; what has not begun by then is not begun."""
    say: Any
    fake: bool = False

    def lengths(self, **more):
        """Made-up tenants need no time to settle, and serve as well in a moment."""
        return Lengths(**more | ({"settle": 0.02, "phase": 0.05} if self.fake else {}))

    def runner(self):
        return Runner(self.folder, self.ebb, self.seconds)

    def remark(self, text):
        self.say(text)
        self.record.remark(text)
