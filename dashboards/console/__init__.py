"""The web console: the newest novelties, why each was reported, and how the pipeline is doing."""

from dashboards.console.access import Access
from dashboards.console.actions import Actions
from dashboards.console.app import create_app
from dashboards.console.belief import Beliefs
from dashboards.console.budget import Promises
from dashboards.console.store import Store
from dashboards.console.trials import Trials
from dashboards.console.versions import Versions

__all__ = ["Access", "Actions", "Beliefs", "Promises", "Store", "Trials", "Versions", "create_app"]
