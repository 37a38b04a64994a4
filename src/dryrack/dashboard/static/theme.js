// Dark or light: as the system has it, until somebody says otherwise.

const KEPT = "dryrack-theme";
const ORDER = ["system", "light", "dark"];
const SIGNS = { system: "◐", light: "☀", dark: "☾" };

/** @param {HTMLElement} button @param {() => void} changed */
export function themeSwitch(button, changed) {
  let theme = kept();
  const show = () => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = SIGNS[/** @type {keyof typeof SIGNS} */ (theme)];
    button.setAttribute("aria-label", `Theme: ${theme}`);
    button.title = `Theme: ${theme}`;
    changed();
  };
  button.addEventListener("click", () => {
    theme = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length];
    keep(theme);
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}

function kept() {
  try {
    const found = localStorage.getItem(KEPT) ?? "";
    return ORDER.includes(found) ? found : "system";
  } catch {
    // Storage may be switched off.
    return "system";
  }
}

/** @param {string} theme */
function keep(theme) {
  try {
    localStorage.setItem(KEPT, theme);
  } catch {
    // It is for this visit only, then.
  }
}
