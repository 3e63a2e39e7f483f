/* Keeps the regions marked data-gj-live up to date: the page itself is fetched again, every five seconds or
   as often as its data-gj-pause says, and the regions that changed are put in place. Nothing is fetched while
   the page is hidden or somebody stopped it, and a region that somebody works in is left alone. Without this
   script the pages work as they are. */
"use strict";
(() => {
  const SECONDS = Number(document.querySelector("[data-gj-pause]")?.dataset.gjPause ?? 5);
  const LONGEST = 60;
  const KEY = "groupjobs.live";
  let pause = SECONDS;
  let timer = 0;

  const stopped = () => window.localStorage.getItem(KEY) === "off";

  const busy = (region) =>
    region.contains(document.activeElement) ||
    region.querySelector("details[open], input:checked") !== null ||
    [...region.querySelectorAll("input")].some((input) => input.value !== input.defaultValue) ||
    region.contains(document.getSelection().anchorNode && !document.getSelection().isCollapsed
      ? document.getSelection().anchorNode : null);

  const put = (fresh) => {
    for (const region of document.querySelectorAll("[data-gj-live]")) {
      const key = CSS.escape(region.dataset.gjLive);
      const next = fresh.querySelector(`[data-gj-live="${key}"]`);
      if (next && next.innerHTML !== region.innerHTML && !busy(region)) {
        region.replaceChildren(...next.childNodes);
      }
    }
  };

  const look = async () => {
    try {
      const answer = await fetch(window.location.href, {credentials: "same-origin", cache: "no-store"});
      if (answer.redirected || answer.status === 403) {
        return;
      }
      if (!answer.ok) {
        throw new Error(String(answer.status));
      }
      put(new DOMParser().parseFromString(await answer.text(), "text/html"));
      pause = SECONDS;
    } catch {
      pause = Math.min(2 * pause, LONGEST);
    }
    plan();
  };

  const plan = () => {
    window.clearTimeout(timer);
    if (!document.hidden && !stopped()) {
      timer = window.setTimeout(look, 1000 * pause);
    }
  };

  const offer = (place) => {
    const button = document.createElement("button");
    const name = () => { button.textContent = stopped() ? place.dataset.go : place.dataset.stop; };
    button.type = "button";
    button.addEventListener("click", () => {
      window.localStorage.setItem(KEY, stopped() ? "on" : "off");
      name();
      plan();
    });
    name();
    place.append(button);
  };

  if (document.querySelector("[data-gj-live]")) {
    document.querySelectorAll("[data-gj-toggle]").forEach(offer);
    document.addEventListener("visibilitychange", plan);
    plan();
  }
})();
