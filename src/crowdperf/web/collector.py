"""What all endpoints of a server share."""

import asyncio
import shutil
from dataclasses import dataclass, field

from starlette.requests import Request

from crowdperf.web.access import AddressHash, Limit, Passes, Tokens
from crowdperf.web.bundle_checks import Checker, Reader
from crowdperf.web.database import VERIFIERS, Database
from crowdperf.web.links import Links
from crowdperf.web.settings import Settings


@dataclass(slots=True)
class Collector:
    """Settings, tokens, the database, and who has asked how often."""

    settings: Settings
    tokens: Tokens | None
    database: Database
    passes: Passes = field(default_factory=Passes)
    addresses: AddressHash = field(default_factory=AddressHash)
    guesses: Limit = field(default_factory=lambda: Limit(10, 60.0))
    checking: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(VERIFIERS))
    waiting: int = 0
    moderation_guesses: Limit = field(default_factory=lambda: Limit(10, 60.0))
    bundles: Limit = field(init=False)
    senders: Limit = field(init=False)
    reader: Reader = field(init=False)
    checker: Checker = field(init=False)

    def __post_init__(self) -> None:
        per_hour = self.settings.bundles_per_hour
        self.bundles, self.senders = Limit(per_hour, 3_600.0), Limit(10 * per_hour, 3_600.0)
        self.checker = Checker(self.settings.verification_timeout_s, self.bundles.wait_s, self.bundles.count)
        self.reader = self.checker

    def address_word(self, request: Request) -> str:
        """Who asks, as a word that counts and says nothing."""
        return self.addresses.word(request.client.host if request.client else "")

    @property
    def link(self) -> Links:
        """The addresses of its pages, and their name."""
        return Links(site_name=self.settings.name)

    @property
    def is_full(self) -> bool:
        """Whether the disk has less room than an upload may need."""
        return shutil.disk_usage(self.settings.database.parent).free < self.settings.min_free_bytes


def collector_of(request: Request) -> Collector:
    """The collector that a request is for."""
    found = request.app.state.collector
    assert isinstance(found, Collector)
    return found
