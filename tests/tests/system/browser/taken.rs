//! A slot that a policy takes from one job for another: beneficiary and cost, in text and on the timeline.

use napreduce_tests::{Folder, OwnCluster, wait_until};
use serde_json::Value;

use super::driver::Browser;
use super::ledger::{NATJAM, submit};
use super::{ANYWHERE, link, origin};

fn preemptions(cluster: &OwnCluster, job: &str) -> Value {
    cluster.json(&["job", "history", job])[0]["preemptions"].take()
}

#[test]
fn taken_slot_links_to_beneficiary_and_comparison() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 1, "natjam", &format!("{ANYWHERE}{NATJAM}"));
    folder.write("large/1", "some words\n".repeat(500));
    folder.write("small/1", "some words\n".repeat(30));
    let large = submit(&cluster, &folder, "large", "research", "6000");
    wait_until("its map runs", || {
        cluster.json(&["task", "list", &large])[0]["live"][0]["state"] == "running"
    });
    let small = submit(&cluster, &folder, "small", "production", "1000");
    cluster.wait(&[&large, &small]).succeeded();
    let ledger = preemptions(&cluster, &large);
    let taken = &ledger[0];
    assert_eq!(
        [
            &taken["by"],
            &taken["end"],
            &taken["used_by"],
            &taken["given_back"]
        ],
        [
            "natjam",
            "suspended",
            &format!("{small}_m_0000.1"),
            "resumed"
        ],
        "{ledger}"
    );
    assert!(
        taken["used_micros"].as_u64() >= taken["freed_micros"].as_u64(),
        "{taken}"
    );
    assert!(
        taken["kept_millis"]
            .as_u64()
            .is_some_and(|millis| millis < 5_000),
        "{taken}"
    );

    let link = link(&cluster, &[]);
    browser.open(&link);
    browser.open(&format!("{}/jobs/{large}", origin(&link)));
    browser.until(
        "its bars",
        "return Number(document.querySelector('canvas[data-stints]')?.dataset.stints) >= 3",
    );
    // A timeline with a preemption opens by slot.
    browser.until(
        "an arc",
        "return document.querySelector('canvas[data-links]')?.dataset.links === '1'",
    );
    browser.keys("canvas", "n");
    browser.until_says(&format!("{small}_m_0000.1 got the slot after"));
    browser.until_says("resumed later");
    browser.picture_on_request("taken");
    browser.run(
        "const select = document.querySelector('select[aria-label=\"Colour by\"]'); \
         select.value = 'queue'; select.dispatchEvent(new Event('change'))",
    );
    browser.until(
        "both queues",
        "return document.querySelectorAll('.legend .swatch[class*=group-]').length === 2",
    );
    assert_eq!(browser.run("return location.search"), "?colour=queue");
    browser.picture_on_request("taken-by-queue");
    // The beneficiary is a link.
    browser.run("document.querySelector('.said a[href*=\"job_0002\"]').click()");
    browser.until(
        "the job that got it",
        "return location.pathname.startsWith('/jobs/job_0002')",
    );

    // First one queue had the slot, then the other, while the work of the first was suspended.
    browser.open(&format!("{}/queues?last=10m", origin(&link)));
    browser.until_says("1 at most, 1 suspended at most");
    let named = "return [...document.querySelectorAll('.shares h3')].map((head) => head.textContent).join()";
    assert_eq!(browser.run(named), "research,production");
    let steps = "return document.querySelectorAll('.steps b').length > 2 && [...document.querySelectorAll('.steps b')].some((step) => step.offsetHeight > 40)";
    assert_eq!(browser.run(steps), true);
    browser.picture_on_request("queues");
    browser.run("document.documentElement.dataset.theme = 'dark'");
    browser.picture_on_request("queues-dark");

    browser.open(&format!(
        "{}/compare?left={large}&right={small}",
        origin(&link)
    ));
    browser.until_says("Slots taken from it");
    browser.until(
        "both lives",
        "return document.querySelectorAll('canvas[data-stints]').length === 2",
    );
    let row = "return [...document.querySelectorAll('tbody tr')].find((row) => \
               row.textContent.includes('Slots taken from it')).textContent";
    let row = browser.run(row);
    assert!(
        row.as_str()
            .is_some_and(|row| row.starts_with("Slots taken from it10")),
        "{row}"
    );
    browser.until_says("MAP_INPUT_RECORDS");
    browser.picture_on_request("compare");
    browser.has_no_complaints();
}
