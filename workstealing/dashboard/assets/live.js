"use strict";

// Fetches the page every two seconds, and replaces its live part.
// What a reader has opened, or is about to press, is left alone.

const EVERY_MS = 2000;
let isAsking = false;

async function refresh() {
  const old = document.getElementById("live");
  if (!old || isAsking || document.hidden) return;
  if (old.querySelector("details[open]") || old.contains(document.activeElement)) return;
  isAsking = true;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (answer.redirected) {
      location.reload();
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("live");
    if (fresh) old.replaceWith(document.adoptNode(fresh));
    document.body.classList.remove("stale");
  } catch {
    document.body.classList.add("stale");
  } finally {
    isAsking = false;
  }
}

setInterval(refresh, EVERY_MS);
