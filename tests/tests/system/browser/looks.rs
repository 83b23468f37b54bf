//! Every page of a history with hostile names: accepted by axe, reached by the keyboard, with enough contrast and size, without
//! motion where none is wanted, and within narrow and zoomed screens.

use napreduce_tests::Folder;
use serde_json::json;

use super::access::{PAGES, nameless, tab_reaches_everything};
use super::axe::Axe;
use super::driver::Browser;
use super::everywhere::{is_not_too_wide, set_media, set_scheme, set_size};
use super::{origin, served_hostile};

/// Returns the number of pixels by which the page is too wide.
pub const TOO_WIDE: &str = "return document.documentElement.scrollWidth - innerWidth";
/// Returns text whose contrast is below 4.5 to 1, or 3 to 1 if it is large (WCAG 2.2 AA).
pub const FAINT: &str = "
const channel = (value) => ((value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
const parsed = (colour) => colour.match(/[\\d.]+/g).map(Number);
const light = ([red, green, blue]) => 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
const ground = (one) => {
  for (; one; one = one.parentElement) {
    const colour = parsed(getComputedStyle(one).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
const faint = [];
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const one = texts.currentNode.parentElement;
  if (!texts.currentNode.data.trim() || !one.checkVisibility({ visibilityProperty: true }) || one.closest('.hidden, .skip')) continue;
  const style = getComputedStyle(one);
  const [dark, bright] = [light(parsed(style.color)), light(ground(one))].sort((a, b) => a - b);
  const contrast = (bright + 0.05) / (dark + 0.05);
  const size = parseFloat(style.fontSize);
  const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  if (contrast < (isLarge ? 3 : 4.5)) faint.push(`${contrast.toFixed(2)} ${texts.currentNode.data.trim().slice(0, 40)}`);
}
return faint";
/// Returns buttons, fields and links that are less than 24 pixels high or wide (WCAG 2.5.8).
pub const SMALL: &str = "
return [...document.querySelectorAll('button, input, select, summary, a[href]:not(.skip)')]
  .filter((one) => one.checkVisibility({ visibilityProperty: true }))
  .map((one) => [one.getBoundingClientRect(), one])
  .filter(([box]) => box.width < 24 || box.height < 24)
  .map(([box, one]) => `${box.width}x${box.height} ${one.outerHTML.slice(0, 80)}`)";
const MOVING: &str = "
return [...document.querySelectorAll('*')].filter((one) => {
  const { transitionDuration, animationName } = getComputedStyle(one);
  return animationName !== 'none' || transitionDuration.split(', ').some((time) => parseFloat(time) > 0);
}).length";

#[test]
fn pages_of_hostile_history_are_accessible() {
    let folder = Folder::new();
    let Some((browser, server)) = served_hostile(&folder) else {
        return;
    };
    let axe = Axe::find();
    for page in PAGES {
        set_media(&browser, &json!([]));
        set_size(&browser, 1280, 900);
        let address = format!("{}{page}", origin(&server.link));
        browser.open(&address);
        if let Some(axe) = &axe {
            axe.finds_nothing(&browser, page);
        }
        every_control_is_named(&browser, page);
        tab_reaches_everything(&browser, page);
        text_has_contrast_and_controls_have_size(&browser, page);
        forced_colours_stop_motion(&browser, page, &address);
        fits_narrow_screens_and_double_zoom(&browser, page, &address);
    }
    browser.has_no_complaints();
}

fn every_control_is_named(browser: &Browser, page: &str) {
    let (controls, nameless) = nameless(browser);
    assert!(controls >= 8, "{page} has {controls} controls");
    assert!(nameless.is_empty(), "{page}: {nameless:#?}");
}

fn text_has_contrast_and_controls_have_size(browser: &Browser, page: &str) {
    for scheme in ["light", "dark"] {
        set_scheme(browser, scheme);
        assert_eq!(browser.run(FAINT), json!([]), "{page} in {scheme}");
    }
    assert_eq!(browser.run(SMALL), json!([]), "{page}");
}

fn forced_colours_stop_motion(browser: &Browser, page: &str, address: &str) {
    let features = json!([
        { "name": "forced-colors", "value": "active" },
        { "name": "prefers-reduced-motion", "value": "reduce" },
    ]);
    set_media(browser, &features);
    browser.open(address);
    assert_eq!(browser.run(MOVING), 0, "{page}");
    is_not_too_wide(browser, page);
}

fn fits_narrow_screens_and_double_zoom(browser: &Browser, page: &str, address: &str) {
    // 1,280 pixels at 200 % have the width of 640.
    for (width, scale) in [(320, 1), (640, 2)] {
        let screen =
            json!({ "width": width, "height": 800, "deviceScaleFactor": scale, "mobile": false });
        browser.devtools("Emulation.setDeviceMetricsOverride", &screen);
        browser.open(address);
        assert_eq!(browser.run("return innerWidth"), width, "{page}");
        is_not_too_wide(browser, page);
    }
}
