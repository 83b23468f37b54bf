//! Recorded simulations and lab reports side by side: listed, opened, compared.

use napreduce_tests::{Folder, program, run};

use super::axe::Axe;
use super::driver::Browser;
use super::{Served, origin};

#[test]
fn recordings_of_two_schedulers_are_compared() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let axe = Axe::find();
    let simulated = [
        "sim",
        "--workload",
        "natjam-xl-s",
        "--scheduler",
        "fifo,natjam",
        "--primitive",
        "suspend",
    ];
    let mut simulate = program("nap");
    simulate
        .current_dir(folder.root())
        .args(simulated)
        .args(["--seed", "0", "--record", "runs", "--format", "json"]);
    let said = run(&mut simulate).succeeded().stdout;
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let server = Served::start(&folder, &folder.path("runs"));
    browser.open(&server.link);
    browser.until_says("natjam.0");
    assert_eq!(browser.run("return location.pathname"), "/recordings");
    if let Some(axe) = &axe {
        axe.finds_nothing(&browser, "recordings");
    }
    browser.picture_on_request("recordings");

    // The figures equal those printed by the simulation.
    let sojourn = |index: usize| {
        said["schedulers"][index]["runs"][0]["sojourn"]["mean"]
            .as_f64()
            .expect("seconds")
    };
    let seconds = "return fetch('/api/nap/v1/recordings').then(told => told.json()).then(({ items }) => items.map(item => item.sojourn.mean / 1000))";
    let shown = browser.run(seconds);
    for (index, name) in ["fifo", "natjam"].into_iter().enumerate() {
        let shown = shown[index].as_f64().expect("seconds");
        assert!(
            (shown - sojourn(index)).abs() < 0.01,
            "{name}: {shown} is not {}",
            sojourn(index)
        );
    }

    for name in ["fifo.0", "natjam.0"] {
        browser.run(&format!(
            "document.querySelector('input[value=\"{name}\"]').click()"
        ));
    }
    browser.click("Compare two");
    browser.until_says("Jobs that differ most");
    let drawn = "return [...document.querySelectorAll('canvas[data-stints]')].filter(one => Number(one.dataset.stints) > 0).length";
    browser.until("both are drawn", &format!("{drawn} === 2"));
    if let Some(axe) = &axe {
        axe.finds_nothing(&browser, "recordings-compared");
    }
    browser.picture_on_request("recordings-compared");
    browser.run("document.documentElement.dataset.theme = 'dark'");
    browser.picture_on_request("recordings-compared-dark");

    // Links of a job in one recording stay in that recording.
    browser.open(&format!("{}/jobs?recording=natjam.0", origin(&server.link)));
    browser.until_says("job_0002");
    browser.click("job_0002");
    browser.click("Preemptions");
    browser.until_says("natjam");
    assert_eq!(
        browser.run("return new URLSearchParams(location.search).get('recording')"),
        "natjam.0"
    );
    browser.open(&format!(
        "{}/queues?recording=natjam.0",
        origin(&server.link)
    ));
    browser.until_says("held on average");
    if let Some(axe) = &axe {
        axe.finds_nothing(&browser, "recordings-queues");
    }
    browser.picture_on_request("recordings-queues");
    browser.has_no_complaints();
}

/// A long reduce of research, and an urgent job during it; scaled down to a tenth.
const LONG_AND_URGENT: &str = r#"
seed = 7
cluster = { machines = 1, map-slots = 2, reduce-slots = 1 }

[[job]]
name = "long"
queue = "research"
maps = { count = 2, seconds = 2, bytes = 1000, output-bytes = 1000 }
reduces = { count = 1, shuffle-seconds = 1, seconds = 30 }

[[job]]
name = "urgent"
queue = "production"
submit = "15s"
priority = 1
maps = { count = 2, seconds = 2, bytes = 1000, output-bytes = 1000 }
reduces = { count = 1, seconds = 3 }
"#;

#[test]
fn lab_report_shows_cluster_of_each_cell() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let report = folder.path("report");
    std::fs::write(folder.path("jobs.toml"), LONG_AND_URGENT).expect("written");
    let mut lab = program("nap");
    lab.current_dir(folder.root())
        .args(["lab", "replay", "jobs.toml", "--time-scale", "10"]);
    lab.args([
        "--scheduler",
        "natjam,fifo",
        "--primitive",
        "kill",
        "--launch",
        "8ms",
        "--suspend",
        "2ms",
    ]);
    lab.args([
        "--resume",
        "2ms",
        "--checkpoint-write",
        "20ms",
        "--checkpoint-read",
        "10ms",
        "--report",
    ]);
    // On a busy machine, jobs are submitted too late, which is status 1.
    let said = run(lab.arg(&report)).stdout;
    assert!(said.contains("right") && !said.contains("DIFFER"), "{said}");
    let server = Served::start(&folder, &report);
    browser.open(&server.link);
    for cell in ["natjam.7", "fifo.7"] {
        browser.until_says(cell);
        browser.run(&format!(
            "document.querySelector('input[value=\"{cell}\"]').click()"
        ));
    }
    browser.picture_on_request("recordings-of-the-lab");
    browser.click("Compare two");
    browser.until_says("Jobs that differ most");
    browser.until_says("urgent");
    // The page and the report agree on lost work.
    let lost = "return fetch('/api/nap/v1/recordings').then((told) => told.json())\
                .then(({ items }) => Object.fromEntries(items.map((item) => [item.recording, item.work_lost_millis])))";
    let lost = browser.run(lost);
    assert!(
        lost["natjam.7"].as_u64().is_some_and(|lost| lost > 0),
        "{lost}: a kill loses work"
    );
    assert_eq!(lost["fifo.7"], 0, "and who waits loses none");
    browser.has_no_complaints();
}

#[test]
fn recordings_of_one_scheduler_show_how_they_differ() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let simulated = [
        "sim",
        "--workload",
        "natjam-xl-s",
        "--scheduler",
        "natjam",
        "--primitive",
        "kill,suspend",
    ];
    let mut simulate = program("nap");
    simulate
        .current_dir(folder.root())
        .args(simulated)
        .args(["--seed", "0", "--record", "runs"]);
    run(&mut simulate).succeeded();
    let server = Served::start(&folder, &folder.path("runs"));
    browser.open(&server.link);
    browser.until_says("natjam-suspend.0");
    let column = "const at = [...document.querySelectorAll('th')].findIndex((one) => one.innerText === 'Primitive'); \
                  return [...document.querySelectorAll('tbody tr')].map((row) => row.cells[at].innerText).join()";
    assert_eq!(browser.run(column), "kill,suspend");
    browser.picture_on_request("recordings-of-one-scheduler");
    browser.open(&format!(
        "{}/recordings/compare?left=natjam-kill.0&right=natjam-suspend.0",
        origin(&server.link)
    ));
    browser.until_says("natjam-kill.0 natjam, kill");
    browser.until_says("preemption.primitive");
    browser.until_says("natjam-suspend.0: natjam, suspend");
    browser.picture_on_request("recordings-of-one-scheduler-compared");

    // The search finds the job in both, and leads to the chosen one.
    browser.open(&format!(
        "{}/jobs?recording=natjam-suspend.0",
        origin(&server.link)
    ));
    browser.keys("body", "/");
    browser.keys("dialog.search input", "job_0002");
    browser.until(
        "both",
        "return document.querySelectorAll('dialog.search li').length === 2",
    );
    let found = "return [...document.querySelectorAll('dialog.search li')].map((one) => one.innerText.split(', in ')[1]).join()";
    assert_eq!(
        browser.run(found),
        "natjam-suspend.0,natjam-kill.0",
        "the recording of the page comes first"
    );
    browser.picture_on_request("search-in-recordings");
    browser.run("document.querySelectorAll('dialog.search li')[1].click()");
    browser.until(
        "its page there",
        "return location.pathname + location.search === '/jobs/job_0002?recording=natjam-kill.0'",
    );
    browser.has_no_complaints();
}
