// The token: taken from the address once and out of it at once, kept for this tab, asked for where there is none.

import { make, makeButton } from "./parts.js";
import { __ } from "./wording.js";

// Another server of the same origin, under another prefix, has another one.
const tokenKey = () => `attractor-nb token ${new URL(".", location.href).pathname}`;

export const keptToken = () => sessionStorage.getItem(tokenKey()) || "";
export const keepToken = (token) => sessionStorage.setItem(tokenKey(), token);
export const forgetToken = () => sessionStorage.removeItem(tokenKey());

// Whether the address had one. What else it says stays in it.
export function takeToken() {
  const address = new URL(location.href);
  const hash = new URLSearchParams(address.hash.slice(1));
  const token = hash.get("token") || address.searchParams.get("token");
  if (!token) return false;
  hash.delete("token");
  address.searchParams.delete("token");
  address.hash = hash.toString();
  history.replaceState(null, "", address.href.replace(/#$/, ""));
  keepToken(token);
  return true;
}

export function makeTokenField(el, words, onToken) {
  const box = make("section", "ap-token");
  const title = make("h1", "ap-title", __("The token of this server"));
  const field = make("input", "ap-field");
  field.type = "password";
  field.autocomplete = "off";
  field.spellcheck = false;
  field.setAttribute("aria-label", __("Token, or the whole address"));
  field.placeholder = __("token, or the whole address");
  const said = make("p", "ap-said", words);
  said.setAttribute("role", "alert");
  const give = () => {
    const token = tokenOf(field.value);
    if (token) onToken(token);
    else said.textContent = __("There is no token in this.");
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") give();
  });
  const row = make("div", "ap-row");
  row.append(field, makeButton("al-button", __("Open"), "", give));
  const hint = make("p", "al-dim", __("The line that "));
  hint.append(make("code", "", "attractor-nb serve"), __(" has printed ends with it. It is kept in this tab only."));
  box.append(title, hint, row, said);
  el.append(box);
  field.focus();
  return { close: () => box.remove() };
}

function tokenOf(text) {
  const given = text.trim();
  const found = /[#?&]token=([^&#\s]+)/.exec(given);
  if (found) return decodeURIComponent(found[1]);
  return /^[\w.~+/=-]+$/.test(given) ? given : "";
}
