"""The changes that options make to a scenario before it runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.base.errors import ContentError
from dryrack.cli.files import UsageError, parse_release, read_sources
from dryrack.cli.output import say, shown
from dryrack.kinds.documents import read
from dryrack.kinds.paths import get
from dryrack.scenario import load_scenario, with_fleet, with_objects, without_place

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.releases import Release
    from dryrack.scenario import LoadedScenario
    from dryrack.scheduler import SchedulerSettings


@dataclass(frozen=True, slots=True)
class Changes:
    """The values of the options."""

    replace: tuple[str, ...] = ()
    fleet: str = ""
    scheduler_config: str = ""
    release: str = ""

    @property
    def followed_release(self) -> Release | None:
        """The release of the option; None for that of the scenario."""
        return parse_release(self.release) if self.release else None

    def apply(self, loaded: LoadedScenario) -> LoadedScenario:
        """Return the scenario with the replaced objects and nodes."""
        if self.replace:
            objects = self._objects()
            for each in without_place(loaded, objects):
                what = f"{each.get('kind')} {get(each, 'metadata.name')}"
                say(shown(f"--replace: added {what}: the scenario has no object of this name"))
            loaded = with_objects(loaded, objects)
        if self.fleet:
            if not Path(self.fleet).is_file():
                raise UsageError(f"--fleet {self.fleet}: no such file; name a scenario file")
            loaded = with_fleet(loaded, load_scenario(Path(self.fleet)).scenario.fleet)
        return loaded

    def scheduler_settings(self) -> SchedulerSettings | None:
        """Return the settings of the scheduler; None for the defaults."""
        if not self.scheduler_config:
            return None
        from dryrack.cli.scheduler_config import read_config, settings_of_plane

        return settings_of_plane(read_config(self.scheduler_config))

    def __bool__(self) -> bool:
        return bool(self.replace or self.fleet or self.scheduler_config or self.release)

    def _objects(self) -> list[Raw]:
        readings = [read(each.content, each.name) for each in read_sources(self.replace)]
        problems = [str(problem) for reading in readings for problem in reading.problems]
        if problems:
            raise ContentError("\n".join(problems))
        return [document.raw for reading in readings for document in reading.documents]
