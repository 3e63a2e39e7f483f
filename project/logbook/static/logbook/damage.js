// Keeps the story of what was broken and how it healed fresh; silent while the page is hidden.
"use strict";

(() => {
  const PAUSE = 500; // milliseconds between two looks
  const place = document.getElementById("story");
  let shown = "";

  const look = async () => {
    if (!document.hidden) {
      try {
        const answer = await fetch(place.dataset.url, { cache: "no-store" });
        const text = await answer.text();
        if (answer.ok && text !== shown) {
          shown = text;
          place.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
        }
      } catch {
        // The server is away for a moment: look again.
      }
    }
    setTimeout(look, PAUSE);
  };

  look();
})();
