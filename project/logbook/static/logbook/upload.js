// Keeps the figures of an upload's page fresh until nothing more will happen; silent while the page is hidden.
"use strict";

(() => {
  const PAUSE = 500; // milliseconds between two looks
  const section = document.getElementById("standing");
  const bar = document.getElementById("bar");

  const show = (now) => {
    for (const name of ["state", "read", "lines", "entered", "legs", "failed", "refused"]) {
      const place = document.getElementById(name);
      if (place.textContent !== String(now[name])) place.textContent = now[name];
    }
    bar.value = now.percent;
    document.getElementById("rate").textContent = now.rate === null ? "–" : Math.round(now.rate);
    document.getElementById("eta").textContent = now.eta === null ? "" : `${Math.ceil(now.eta)} s left`;
  };

  const look = async () => {
    if (!document.hidden) {
      try {
        const answer = await fetch(section.dataset.url, { cache: "no-store" });
        if (answer.ok) {
          const now = await answer.json();
          show(now);
          if (now.over) return location.reload();
        }
      } catch {
        // The server is away for a moment: look again.
      }
    }
    setTimeout(look, PAUSE);
  };

  look();
})();
