//! The pictures of `docs/pictures`, taken of a small scene: maps of research hold all slots, and production takes
//! some of them twice. They are left in `target/browser`, with `docs-` before their names; those of the docs have
//! 256 colours:
//!
//! ```text
//! cargo test -p napreduce-tests --test system -- --ignored pictures_of_docs
//! ```

use napreduce_tests::{Folder, OwnCluster, wait_until};

use super::busy::submit;
use super::driver::Browser;
use super::everywhere::set_size;
use super::ledger::NATJAM;
use super::what_if::simulate;
use super::{ANYWHERE, link, origin};

const WIDTH: u32 = 1440;
/// Height of the window while a page loads.
const HEIGHT: u64 = 900;
/// A height that each page exceeds, which is then as high as its content.
const HEIGHT_MIN: u64 = 300;

/// Submits a job whose records take this many microseconds each; its input folder determines its maps.
fn job(
    cluster: &OwnCluster,
    folder: &Folder,
    user: &str,
    name: &str,
    number: usize,
    input: &str,
    micros: &str,
) -> String {
    let queue = if name == "hourly billing" {
        "production"
    } else {
        "research"
    };
    let output = format!("out/{}-{number}", name.replace(' ', "-"));
    let job = [
        input, "--job", "slow", "--number", micros, "--name", name, "--queue", queue,
    ];
    submit(
        cluster,
        folder,
        user,
        &[&job[..], &["--output", &output, "--conf", "slowstart=0.8"]].concat(),
    )
}

/// Waits until this share of the input of a job's maps is read.
fn until_maps_reach(cluster: &OwnCluster, job: &str, percent: u64) {
    wait_until("its maps have read so much", || {
        let map = &cluster.json(&["job", "status", job])[0]["map"];
        let bytes = |name: &str| map[name].as_u64().expect("a number");
        bytes("bytes_done") * 100 > bytes("bytes_total") * percent
    });
}

/// Takes a picture of the whole page.
fn whole_page(browser: &Browser, name: &str) {
    set_size(browser, WIDTH, HEIGHT_MIN);
    let height = browser.run("return document.documentElement.scrollHeight");
    set_size(browser, WIDTH, height.as_u64().expect("a number"));
    browser.picture(&format!("docs-{name}"));
}

#[test]
#[ignore = "takes the pictures of the documentation"]
fn pictures_of_docs() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 3, "natjam", &format!("{ANYWHERE}{NATJAM}"));
    for (name, files) in [("small", 2), ("large", 9)] {
        (0..files).for_each(|file| {
            drop(folder.write(&format!("{name}/{file}"), "some words\n".repeat(1_000)))
        });
    }
    let names = ["sessions", "log cleaning", "page ranks", "hourly billing"];
    let users = ["dora", "emil", "cleo", "ada"];
    let ended: Vec<String> = (0..12)
        .map(|number| {
            job(
                &cluster,
                &folder,
                users[number % 4],
                names[number % 4],
                number,
                "small",
                "200",
            )
        })
        .collect();
    cluster
        .wait(&ended.iter().map(String::as_str).collect::<Vec<_>>())
        .succeeded();
    let index = job(
        &cluster,
        &folder,
        "ben",
        "nightly index",
        12,
        "large",
        "6000",
    );
    until_maps_reach(&cluster, &index, 25);
    let billing = job(
        &cluster,
        &folder,
        "ada",
        "hourly billing",
        13,
        "small",
        "3000",
    );
    cluster.wait(&[&billing, &index]).succeeded();
    let ranks = job(&cluster, &folder, "cleo", "page ranks", 14, "large", "6000");
    until_maps_reach(&cluster, &ranks, 25);
    let waiting = ["sessions", "log cleaning", "sessions"];
    for (number, name) in waiting.iter().enumerate() {
        job(
            &cluster,
            &folder,
            users[number],
            name,
            number + 15,
            "large",
            "6000",
        );
    }
    let billing = job(
        &cluster,
        &folder,
        "ada",
        "hourly billing",
        18,
        "small",
        "3000",
    );
    cluster.wait(&[&billing]).succeeded();
    until_maps_reach(&cluster, &ranks, 40);

    let page = link(&cluster, &[]);
    browser.open(&page);
    let show = |address: &str| {
        set_size(&browser, WIDTH, HEIGHT);
        browser.open(&format!("{}{address}", origin(&page)));
    };
    show("/?last=1m&colour=queue");
    browser.until_says("no map slot is free: job_");
    browser.until(
        "both queues",
        "return document.querySelectorAll('.legend .swatch[class*=group-]').length === 2",
    );
    whole_page(&browser, "why-a-job-waits");

    show(&format!("/jobs/{ranks}/tasks"));
    browser.until_says("Preempted");
    whole_page(&browser, "tasks");

    show(&format!("/jobs/{index}"));
    browser.until(
        "an arc",
        "return Number(document.querySelector('canvas[data-links]')?.dataset.links) > 0",
    );
    browser.keys("canvas", "n");
    browser.until_says("got the slot after");
    whole_page(&browser, "who-took-the-slot");

    show("/preemptions");
    browser.run("document.querySelector('.groups button[aria-expanded=false]').click()");
    browser.until(
        "its rows",
        "return document.querySelector('.groups tr.entries') !== null",
    );
    whole_page(&browser, "preemptions");

    show("/recordings");
    simulate(&browser, &["fifo", "fair"]);
    browser.until_says("done after");
    browser.until_says("Mean sojourn is off by");
    whole_page(&browser, "what-if");
    browser.has_no_complaints();
}
