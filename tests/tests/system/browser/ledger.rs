//! The preemption ledger of a cluster: suspends by a scheduler, with totals, filters and flows.

use napreduce_tests::{Folder, OwnCluster, wait_until};
use serde_json::{Value, json};

use super::driver::Browser;
use super::{ANYWHERE, link, origin};

/// Production preempts maps by suspends.
pub const NATJAM: &str = "[preemption]\nprimitive = \"suspend\"\n\
                      [scheduler.natjam]\npreempt-maps = true\npreemptor-interval = \"100ms\"\n";

/// Submits a word count with this pause in microseconds per record.
pub fn submit(
    cluster: &OwnCluster,
    folder: &Folder,
    name: &str,
    queue: &str,
    pause: &str,
) -> String {
    let output = format!("out-{name}");
    let job = [
        name, "--job", "slow", "--output", &output, "--number", pause, "--name", name,
    ];
    let more = ["--queue", queue, "--reduces", "1", "--conf", "slowstart=1"];
    cluster.submit(folder, &[&job[..], &more[..]].concat())
}

/// Runs a job of research whose maps give up slots to a job of production; returns the requests in its
/// history.
fn preempted(folder: &Folder, cluster: &OwnCluster) -> Vec<Value> {
    let lines = |count: u32| {
        (0..count)
            .map(|line| format!("word{:03}\n", line % 350))
            .collect::<String>()
    };
    folder.write("large/1", lines(500));
    folder.write("large/2", lines(500));
    folder.write("small/1", lines(30));
    let large = submit(cluster, folder, "large", "research", "6000");
    let running = || {
        let tasks = cluster.json(&["task", "list", &large]);
        let live = tasks
            .as_array()
            .expect("tasks")
            .iter()
            .flat_map(|task| task["live"].as_array().expect("live"));
        live.filter(|live| live["state"] == "running").count()
    };
    wait_until("two maps run", || running() == 2);
    let small = submit(cluster, folder, "small", "production", "1000");
    cluster.wait(&[&large, &small]).succeeded();
    let history = cluster.json(&["job", "history", &large]);
    history[0]["preemptions"]
        .as_array()
        .expect("an array")
        .clone()
}

/// Opens all groups.
fn until_rows(browser: &Browser, count: usize) {
    let rows = "document.querySelector('.groups button[aria-expanded=false]')?.click(); \
                return document.querySelectorAll('.groups tr.entries tbody tr').length";
    browser.until(&format!("{count} entries"), &format!("{rows} === {count}"));
}

#[test]
fn cluster_ledger_names_preemptor_and_victim() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 2, "natjam", &format!("{ANYWHERE}{NATJAM}"));
    let known = preempted(&folder, &cluster);
    assert!(!known.is_empty(), "no slot was preempted");
    let link = link(&cluster, &[]);
    browser.open(&link);
    browser.click("Preemptions");
    browser.until_says("Slots wanted back");
    browser.until_says("large\nresearch");
    browser.until_says("small\nproduction");
    until_rows(&browser, known.len());
    // The figures equal those of the history.
    let asked = "return fetch('/api/nap/v1/preemptions/totals').then((answer) => answer.json())";
    let totals = browser.run(asked);
    let sum = |name: &str| {
        known
            .iter()
            .map(|one| one[name].as_u64().expect("a number"))
            .sum::<u64>()
    };
    assert_eq!(totals["count"], json!(known.len()));
    assert_eq!(totals["work_saved_millis"], json!(sum("work_saved_millis")));
    assert_eq!(totals["work_lost_millis"], json!(sum("work_lost_millis")));
    // Natjam requests a checkpoint; the configuration converts it to a suspend.
    let converted = &totals["converted"][0];
    assert_eq!(
        [&converted["asked"], &converted["primitive"]],
        ["checkpoint", "suspend"],
        "{totals}"
    );
    // From research to production, by queue and by job; each is a link.
    let flow = "return [...document.querySelectorAll('main table')].at(-1).innerText.replace(/\\s+/g, ' ')";
    let matrix = browser.run(flow);
    let matrix = matrix.as_str().expect("text");
    assert!(
        matrix.starts_with("From For production research") && matrix.contains("by suspend"),
        "{matrix}"
    );
    browser.picture_on_request("preemptions");
    browser.run(
        "const select = document.querySelector('select[aria-label=End]'); select.value = 'killed'; \
         select.dispatchEvent(new Event('change'))",
    );
    browser.until_says("No slot was wanted back in these times.");
    assert_eq!(browser.run("return location.search"), "?end=killed");
    // The address reproduces the view.
    browser.open(&format!(
        "{}/preemptions?end=suspended&flows=job",
        origin(&link)
    ));
    until_rows(
        &browser,
        known.iter().filter(|one| one["end"] == "suspended").count(),
    );
    browser.until_says("For job_0002");
    browser.click("Hold these times");
    browser.until(
        "the times are in the address",
        "return location.search.includes('until=')",
    );
    browser.until_says("For job_0002");
    until_rows(
        &browser,
        known.iter().filter(|one| one["end"] == "suspended").count(),
    );
    browser.run("document.documentElement.dataset.theme = 'dark'");
    browser.picture_on_request("preemptions-dark");
    // The terminal has the same groups.
    let listed = cluster.json(&["preemption", "list", "--end", "suspended"]);
    let groups = listed.as_array().expect("an array").iter();
    let rows = "return document.querySelectorAll('.groups button[aria-expanded]').length";
    assert_eq!(browser.run(rows), json!(groups.len()));
    assert_eq!(
        cluster.json(&["preemption", "totals"])["count"],
        json!(known.len())
    );
    let victim = known
        .iter()
        .find(|one| one["end"] == "suspended")
        .expect("one was suspended");
    let victim = victim["attempt"].as_str().expect("an ID");
    browser.click(victim);
    browser.until(
        "its task",
        "return location.pathname.startsWith('/jobs/job_0001/tasks/job_0001_')",
    );
    // The queue that lost the slots: its user, its job, and who got them.
    browser.open(&format!("{}/preemptions", origin(&link)));
    browser.click("research");
    browser.until(
        "its queue",
        "return location.pathname === '/queues/research'",
    );
    browser.until_says("lost to\tproduction");
    browser.until_says("natjam");
    browser.until_says("large");
    browser.picture_on_request("queue");
    browser.open(&format!("{}/queues/absent", origin(&link)));
    browser.until_says("No such queue");
    browser.has_no_complaints_but(&["404"]);
}
