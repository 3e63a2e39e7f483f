/* What a page must be for everybody, as `tests.faults()`: names of controls, heads of tables, contrast, and
   that nothing sticks out at the side. `tests.focused()` tells about the element that has the focus. */
"use strict";
window.tests = (() => {
  const LARGE = 24, BOLD = 18.66; // pixels from which 3:1 is enough contrast

  const visible = (element) =>
    element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) &&
    element.getBoundingClientRect().width > 1 && element.getBoundingClientRect().height > 1;

  const text = (ids) => ids.split(/\s+/).map((id) => document.getElementById(id)?.textContent ?? "").join(" ");

  const name = (element) => {
    const parts = [
      element.getAttribute("aria-label"), text(element.getAttribute("aria-labelledby") ?? ""),
      ...[...(element.labels ?? [])].map((label) => label.textContent.trim() || label.querySelector("img")?.alt),
      element.matches("input, select, textarea") ? "" : element.textContent,
      element.getAttribute("title"), element.getAttribute("alt"),
      element.matches("input[type=submit], input[type=button]") ? element.value : "",
    ];
    return parts.map((part) => (part ?? "").trim().replace(/\s+/g, " ")).find(Boolean) ?? "";
  };

  const shown = (element) => `<${element.tagName.toLowerCase()} ${element.id || element.className || element.name || ""}> ${
    element.textContent.trim().slice(0, 40)}`;

  const colour = (value) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    canvas.fillStyle = value;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };

  const over = (front, back) => front.slice(0, 3).map((part, i) => part * front[3] + back[i] * (1 - front[3])).concat(1);

  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const layer = colour(getComputedStyle(at).backgroundColor);
      layers.push(layer);
      if (layer[3] === 1) break;
    }
    const dark = getComputedStyle(document.documentElement).colorScheme.includes("dark") &&
      matchMedia("(prefers-color-scheme: dark)").matches;
    return layers.reverse().reduce((back, front) => over(front, back), dark ? [18, 18, 18, 1] : [255, 255, 255, 1]);
  };

  const light = (rgb) => {
    const [red, green, blue] = rgb.map((part) => part / 255).map((part) =>
      part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };

  const contrast = (element) => {
    const back = ground(element);
    const pair = [light(over(colour(getComputedStyle(element).color), back)), light(back)];
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  };

  const pale = function* () {
    for (const element of document.querySelectorAll("main *, body > header *, .gj *")) {
      const words = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
      if (!words || !visible(element) || element.closest("option, noscript, :disabled")) continue;
      const style = getComputedStyle(element);
      const size = parseFloat(style.fontSize);
      const least = size >= LARGE || (size >= BOLD && style.fontWeight >= 700) ? 3 : 4.5;
      const found = contrast(element);
      if (found < least) yield `contrast ${found.toFixed(2)}: ${shown(element)}`;
    }
  };

  const nameless = function* () {
    for (const element of document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, svg[role=img]")) {
      if (visible(element) && !name(element)) yield `no name: ${shown(element)}`;
    }
  };

  const headless = function* () {
    for (const table of document.querySelectorAll("table")) {
      if (!visible(table)) continue;
      const ours = table.matches("main:not(#content-start) table, .gj table");
      if (!table.querySelector("th")) yield `no head: ${shown(table)}`;
      if (ours && !table.caption && !table.ariaLabel) yield `no caption: ${shown(table)}`;
      if (ours && [...table.querySelectorAll("th")].some((head) => !head.scope)) yield `heads of what: ${shown(table)}`;
    }
  };

  const wide = function* () {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return;
    for (const element of document.querySelectorAll("body *")) {
      if (visible(element) && element.getBoundingClientRect().right > width + 1) {
        yield `sticks out to ${Math.round(element.getBoundingClientRect().right)}: ${shown(element)}`;
      }
    }
    yield `as wide as ${document.documentElement.scrollWidth}`;
  };

  const untitled = function* () {
    if (!document.title.trim()) yield "no title";
    if (!document.documentElement.lang) yield "no language";
    if (![...document.querySelectorAll("h1")].some(visible)) yield "no heading";
  };

  const unsaid = function* () {
    for (const badge of document.querySelectorAll(".gj-head .gj-badge")) {
      if (!badge.closest("[role=status]")) yield `changes unsaid: ${shown(badge)}`;
    }
  };

  /* Colours fade into each other when the scheme changes. */
  const settle = () => document.getAnimations().forEach((animation) => animation.finish());

  const faults = () => [untitled, nameless, headless, pale, wide, unsaid].flatMap((check) => [...check()].slice(0, 6));

  const focused = () => {
    const element = document.activeElement;
    const style = getComputedStyle(element);
    const seen = element.matches(":focus-visible") && (
      (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none" ||
      element.matches("input, select, textarea") || style.textDecorationLine !== "none" || element.matches(".skip-to-content-link"));
    return { name: name(element) || element.getAttribute("placeholder") || "", seen };
  };

  return { faults, focused, settle };
})();
