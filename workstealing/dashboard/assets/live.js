"use strict";

// Fetches the page every few seconds and changes what is different, in place: what a
// reader has scrolled, selected, focused, ticked or opened stays as it is.
// `p` pauses and goes on, `/` goes to the search.

const live = document.getElementById("live");
const pill = document.getElementById("liveness");
const banner = document.getElementById("banner");
// 0: the page answers a form, so its address has nothing to fetch.
const every = Number(live ? live.dataset.every : 0);
let isAsking = false;
let isPaused = false;
let lastSeen = new Date();

function say(kind, words) {
  if (!pill) return;
  pill.className = `pill ${kind}`;
  if (pill.textContent !== words) pill.textContent = words;
}

function at(moment) {
  return moment.toLocaleTimeString([], { hour12: false });
}

function complain(words) {
  banner.hidden = !words;
  if (banner.textContent !== words) banner.textContent = words;
  document.body.classList.toggle("stale", Boolean(words));
}

async function refresh() {
  if (!every || isAsking || isPaused || document.hidden) return;
  isAsking = true;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (answer.redirected) {
      location.reload();
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("live");
    if (isPaused || !fresh) return;
    if (!answer.ok && live.dataset.status === "200") {
      const why = fresh.querySelector("h1");
      complain(`${why ? why.textContent : "No answer"}. The numbers are those of ${at(lastSeen)}.`);
      say("gone", `last seen ${at(lastSeen)}`);
      return;
    }
    morph(live, fresh);
    lastSeen = new Date();
    complain("");
    say("live", "● live");
  } catch {
    complain(`The dashboard does not answer. The numbers are those of ${at(lastSeen)}.`);
    say("gone", `last seen ${at(lastSeen)}`);
  } finally {
    isAsking = false;
  }
}

// What is selected is not changed under the reader's eyes.
function isSelected(node) {
  const selection = getSelection();
  if (!selection || selection.isCollapsed || !selection.rangeCount) return false;
  return selection.getRangeAt(0).intersectsNode(node);
}

// Not `node.id`: of a form that is its field of this name.
function keyOf(node) {
  return node.nodeType === 1 ? node.getAttribute("data-key") || node.getAttribute("id") || "" : "";
}

function isSame(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && keyOf(one) === keyOf(other);
}

function morph(old, fresh) {
  if (old.nodeType !== 1) {
    if (old.nodeValue !== fresh.nodeValue && !isSelected(old)) old.nodeValue = fresh.nodeValue;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const keyed = new Map();
  for (const child of old.childNodes) {
    if (keyOf(child)) keyed.set(keyOf(child), child);
  }
  let here = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const key = keyOf(wanted);
    let match = key ? keyed.get(key) : null;
    if (match && !isSame(match, wanted)) match = null;
    if (!key && here && isSame(here, wanted)) match = here;
    if (!match) {
      old.insertBefore(document.importNode(wanted, true), here);
      continue;
    }
    if (match === here) here = here.nextSibling;
    else old.insertBefore(match, here);
    morph(match, wanted);
  }
  while (here) {
    const gone = here;
    here = here.nextSibling;
    const isHeld = isSelected(gone) || gone.contains(document.activeElement);
    if (!isHeld) gone.remove();
  }
}

addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.nodeName);
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "p" && every) {
    isPaused = !isPaused;
    say(isPaused ? "held" : "live", isPaused ? `paused at ${at(lastSeen)}` : "● live");
    if (!isPaused) refresh();
  }
  const search = document.querySelector("input[type=search]");
  if (event.key === "/" && search) {
    event.preventDefault();
    search.focus();
  }
});

// A log that the reader has scrolled to its end follows.
for (const log of document.querySelectorAll(".log")) {
  log.scrollTop = log.scrollHeight;
  new MutationObserver(() => {
    if (log.dataset.follows !== "no") log.scrollTop = log.scrollHeight;
  }).observe(log, { childList: true, subtree: true });
  log.addEventListener("scroll", () => {
    log.dataset.follows = log.scrollTop + log.clientHeight >= log.scrollHeight - 8 ? "yes" : "no";
  });
}

if (every) {
  say("live", "● live");
  setInterval(refresh, every);
}
