"""Pages by id, newest first, that cost the same on every page and never count the table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest

TOKEN: Final = re.compile(r"([on])(\d{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Page:
    """Rows, newest first, and the tokens of the neighbouring pages (None: there is none)."""

    rows: list[Any]
    newer: str | None
    older: str | None


def read(rows: QuerySet[Any], token: str, size: int) -> Page:
    """The page that a token names: "o5" are rows older than id 5, "n5" newer ones, else the newest."""
    found = TOKEN.fullmatch(token)
    if found is None:
        return _down(rows, size, first=True)
    way, pk = found[1], int(found[2])
    if way == "o":
        return _down(rows.filter(pk__lt=pk), size, first=False)
    return _up(rows, pk, size)


def _down(rows: QuerySet[Any], size: int, *, first: bool) -> Page:
    found = list(rows.order_by("-pk")[: size + 1])
    shown, more = found[:size], len(found) > size
    newer = None if first or not shown else f"n{shown[0].pk}"
    return Page(shown, newer, f"o{shown[-1].pk}" if more else None)


def _up(rows: QuerySet[Any], pk: int, size: int) -> Page:
    found = list(rows.filter(pk__gt=pk).order_by("pk")[: size + 1])
    if len(found) <= size:
        return _down(rows, size, first=True)
    shown = found[size - 1 :: -1]
    return Page(shown, f"n{shown[0].pk}", f"o{shown[-1].pk}")


class KeysetChangeList(ChangeList):
    """A list of the admin that pages by id. `result_count` counts what this page knows of, no more."""

    page: Page
    newer: str | None
    older: str | None

    def get_results(self, request: HttpRequest) -> None:
        """Read one page and the tokens around it."""
        self.page = read(self.queryset, request.GET.get(PAGE_VAR, ""), self.list_per_page)
        self.newer, self.older = self._link(self.page.newer), self._link(self.page.older)
        self.result_list = self.page.rows
        self.result_count = len(self.page.rows) + (self.page.older is not None or self.page.newer is not None)
        self.full_result_count = None
        self.show_full_result_count = False
        self.show_admin_actions = bool(self.page.rows)
        self.can_show_all = False
        self.multi_page = False
        self.paginator = None

    def _link(self, token: str | None) -> str | None:
        return None if token is None else self.get_query_string({PAGE_VAR: token})
