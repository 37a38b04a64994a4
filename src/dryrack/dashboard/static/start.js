// Loads the page, and tries again where a part of it does not come: a network that changes at that
// moment makes browsers give up what they were loading.

const AGAIN_MS = 1000;

import("./page.js").catch((/** @type {unknown} */ error) => {
  const main = document.getElementById("main");
  if (main) main.textContent = `A part of the page did not load; trying again … (${error})`;
  setTimeout(() => location.reload(), AGAIN_MS);
});
