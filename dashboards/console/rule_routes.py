"""What the console takes and answers about rules: which there are, what one would have done, what labels propose."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Request
from pydantic import BaseModel, ConfigDict, Field

from dashboards.console.actions import LONGEST_RULE
from dashboards.console.speaking import Speaking
from dashboards.console.standing import Remembered
from dashboards.console.trials import OneAtATime, Trials
from engine.clock import now_ms

LONGEST = 30
"""The most days of the past on which a rule is tried."""

Glob = Annotated[str, Field(min_length=1, max_length=512)]
Days = Annotated[int, Field(ge=1, le=LONGEST)]
Limit = Annotated[str, Field(min_length=1, max_length=40)] | None


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Named(_Body):
    name: Annotated[str, Field(min_length=1, max_length=256)]


class _Rule(_Named):
    entity: Glob = "*"
    metric: Glob = "*"
    times: Annotated[str, Field(max_length=512)] = ""
    timezone: Annotated[str, Field(max_length=100)] = "UTC"
    above: Limit = None
    below: Limit = None
    effect: Literal["skip_result", "report", "up", "down", "min_change", "min_change_share"]
    amount: Limit = None
    minutes: Annotated[int, Field(ge=1, le=LONGEST_RULE)] | None = None
    note: Annotated[str, Field(max_length=4_096)] = ""

    def said(self) -> dict[str, Any]:
        """The arguments of `Actions.rule`."""
        fields: dict[str, object] = {"id": self.name}
        fields |= {name: getattr(self, name) for name in ("entity", "metric", "times", "timezone", "note")}
        limits: dict[str, str | None] = {"above": self.above, "below": self.below}
        if self.effect in ("up", "down"):
            fields["only"] = self.effect
        elif self.effect in ("skip_result", "report"):
            fields[self.effect] = True
        else:
            limits[self.effect] = self.amount
        return {"fields": fields, "limits": limits, "minutes": self.minutes}


class _Tried(_Rule):
    days: Days = LONGEST


class _Asked(_Body):
    days: Days = LONGEST


def rule_routes(trials: Trials | None, speaking: Speaking, standing: Remembered) -> APIRouter:
    """The paths ``/api/rules``, ``/api/rule`` with ``/try``, ``/proposals`` and ``/withdrawal``.

    Args:
        trials: Says what rules would have done; ``None``: nothing here does.
        speaking: Knows who may say something here; who may not may try nothing either, since a trial is work.
        standing: Reads what was said before; it reads again after each message.
    """
    api = APIRouter(prefix="/api")
    one = OneAtATime(trials) if trials else None

    def asked(request: Request) -> OneAtATime:
        speaking.writer(request)
        if one is None:
            raise HTTPException(404, "this console tries no rules")
        return one

    @api.get("/rules")
    def listed() -> dict[str, Any]:
        rules, missing = standing.rules()
        return {"now": now_ms(), "rules": rules, "missing": missing}

    @api.post("/rule/try")
    def tried(body: _Tried, request: Request) -> dict[str, Any]:
        with asked(request).alone() as found:
            return found.tried(**body.said(), days=body.days)

    @api.post("/rule/proposals")
    def proposals(body: _Asked, request: Request) -> dict[str, Any]:
        with asked(request).alone() as found:
            return found.proposed(body.days)

    @api.post("/rule")
    def rule(body: _Rule, request: Request) -> dict[str, Any]:
        writer, _ = speaking.writer(request)
        begin = writer.rule(**body.said())
        standing.forget()
        return {"from": begin}

    @api.post("/rule/withdrawal")
    def withdrawal(body: _Named, request: Request) -> dict[str, Any]:
        writer, _ = speaking.writer(request)
        end = writer.withdraw(body.name)
        standing.forget()
        return {"until": end}

    return api
