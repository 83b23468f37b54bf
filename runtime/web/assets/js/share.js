// Shared links: a link to view the page that is open, and the list of those that are valid.

import { dialog } from "./dialog.js";
import { make, renew, table } from "./elements.js";
import { moment, utc } from "./format.js";
import { getAsOperator, mayOrder, order } from "./net.js";

const LIFETIMES = [[60, "1 hour"], [8 * 60, "8 hours"], [24 * 60, "1 day"], [7 * 24 * 60, "7 days"], [30 * 24 * 60, "30 days"]];

/** The button in the header; hidden unless this tab may order. */
export function shareButton() {
  return make("button", { type: "button", id: "share", hidden: !mayOrder(), click: share }, "Share");
}

async function share() {
  const name = make("input", { type: "text", id: "link-name", required: true, maxlength: "64", pattern: "[A-Za-z0-9_\\-]+", title: "letters, digits, - and _", placeholder: "for-ada" });
  const lifetime = make("select", { id: "link-minutes" }, LIFETIMES.map(([minutes, words]) => make("option", { value: minutes, selected: minutes === 24 * 60 }, words)));
  const made = make("div", { role: "status" });
  const known = make("section", { "aria-label": "Valid links" });
  const list = async () => renew(known, listed((await getAsOperator("links")).items, list));
  const send = async () => {
    const address = location.pathname + location.search;
    const { path } = await order("links", { name: name.value, minutes: Number(lifetime.value), address });
    renew(made, link(location.origin + path));
    made.querySelector("input").select();
    name.value = "";
    await list();
  };
  list().catch(() => known.replaceChildren(make("p", { class: "bad-words" }, "The list of links cannot be read; sign in again with: nap web link")));
  await dialog({ title: "Share this page", label: "Make a link", leave: "Close", send, inside: [
    make("p", {}, "A link opens this page with its filters. It may be used repeatedly, and permits to view the whole cluster but no orders, until it ends or is revoked."),
    make("label", { for: "link-name" }, "Name, to find and revoke it"), name,
    make("label", { for: "link-minutes" }, "Valid for"), lifetime,
    made, known] });
}

function link(address) {
  const shown = make("input", { type: "text", id: "link-made", readonly: true, value: address });
  const copy = (event) => navigator.clipboard.writeText(address).then(() => { event.target.textContent = "Copied"; });
  return [make("label", { for: "link-made" }, "The link; it is shown only now"), shown, make("button", { type: "button", click: copy }, "Copy")];
}

function listed(links, again) {
  if (links.length === 0) return make("p", { class: "quiet" }, "No other link is valid.");
  const revoke = ({ name }) => make("button", { type: "button", class: "bad", "aria-label": `Revoke ${name}`, click: () => order(`links/${name}/revoke`, {}).then(again, again) }, "Revoke");
  return table("Links", [
    ["Link", ({ name, address }) => [make("strong", {}, name), " ", make("span", { class: "quiet" }, address)], "text"],
    ["From", ({ issued_millis: at }) => make("time", { title: utc(at) }, moment(at))],
    ["Until", ({ until_millis: at }) => make("time", { title: utc(at) }, moment(at))],
    ["", revoke],
  ], links, "");
}
