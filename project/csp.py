"""The demo's pages may only load what this server serves: no inline script, no style attribute, no other host."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"


class ContentSecurityPolicy:
    """A middleware; from Django 6.0 on its own does the same."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Add the header."""
        response = self._get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response
