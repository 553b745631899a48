"""A real Prometheus scrapes the scores with a token, and takes those that are pushed; skipped where there is none."""

from __future__ import annotations

from pathlib import Path

import httpx

from pipelines.query.view.app import create_app
from pipelines.serving.server import serve
from tests.pipelines.query.stored_scores import STEP, T0, Labels, Stored, expected, history
from tests.pipelines.query.test_scores_pushed import pushed, sender
from tests.pipelines.query.view_topics import until
from tests.prometheus_server import prometheus

TOKEN = "a-token-of-24-characters"


def asked(url: str, at: float | None = None) -> dict[Labels, float]:
    """The value of each series of a machine, now or at a time (epoch seconds), without Prometheus' own labels."""
    query = {"query": '{__name__=~"newnormal_.*",machine!=""}'} | ({} if at is None else {"time": str(at)})
    answer = httpx.get(f"{url}/api/v1/query", params=query).raise_for_status().json()
    own = ("job", "instance")
    return {
        tuple(sorted((k, v) for k, v in each["metric"].items() if k not in own)): float(each["value"][1])
        for each in answer["data"]["result"]
    }


def test_prometheus_scrapes_what_the_view_knows(tmp_path: Path) -> None:
    beliefs, verdicts = history(12, 30, seed=8)
    view = Stored(tmp_path / "view")
    view.write(beliefs, verdicts, range(12))
    served = serve(create_app(view, token=TOKEN), port=0)
    (tmp_path / "token").write_text(TOKEN)
    target = served.url.removeprefix("http://")
    config = (
        "global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: newnormal-scores\n"
        f"    metrics_path: /scores/metrics\n    authorization: {{credentials_file: {tmp_path / 'token'}}}\n"
        f"    static_configs: [{{targets: ['{target}']}}]\n"
    )
    with prometheus(tmp_path / "prometheus", config=config) as url:
        wanted = expected(beliefs, verdicts, 11)
        until(lambda: asked(url) == wanted, 120)
    served.stop()
    view.database.close()


def test_prometheus_takes_what_is_pushed_at_the_time_of_each_window(tmp_path: Path) -> None:
    beliefs, verdicts = history(12, 30, seed=8)
    view = Stored(tmp_path / "view")
    view.write(beliefs, verdicts, range(4))
    with prometheus(tmp_path / "prometheus", None, "--web.enable-remote-write-receiver") as url:
        with sender(view, f"{url}/api/v1/write") as one:
            pushed(one, 3)
            view.write(beliefs, verdicts, range(4, 12))
            pushed(one, 11)
            assert (one.sent.refused, one.sent.failing_since) == (0, None)
        for window in range(3, 12):
            assert asked(url, (T0 + (window + 1) * STEP) / 1000) == expected(beliefs, verdicts, window)
    view.database.close()
