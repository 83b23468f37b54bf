//! The page of a cluster in a real browser, with screenshots in `target/browser` if `NAPREDUCE_PICTURES` is set.
//! Skipped without a browser, unless `NAPREDUCE_REQUIRE` lists `browser`.

mod access;
mod axe;
mod budgets;
mod busy;
mod checkpointed;
mod docs_pictures;
mod driver;
mod elsewhere;
mod everywhere;
mod first_page;
mod histories;
mod keys;
mod ledger;
mod live;
mod looks;
mod over_time;
mod places;
mod reasons;
mod recordings;
mod tabs;
mod taken;
mod thinned;
mod what_if;
mod whole;

use std::process::{Child, Command, Stdio};

use driver::Browser;
use napreduce_tests::{Folder, GatedJob, OwnCluster, program, run, wait_until};

const ANYWHERE: &str = "[web]\nbind = \"127.0.0.1:0\"\n";

fn link(cluster: &OwnCluster, arguments: &[&str]) -> String {
    run(cluster.nap().args(["web", "link"]).args(arguments))
        .succeeded()
        .stdout
        .trim()
        .to_owned()
}

fn origin(link: &str) -> &str {
    link.split_once("/#").expect("a link").0
}

#[test]
fn link_signs_in_once_and_page_follows_job() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 2, "fifo", ANYWHERE);
    let link = link(&cluster, &[]);
    browser.open(&link);
    browser.until_says("Nothing runs. Submit a job");
    assert_eq!(
        browser.run("return location.hash"),
        "",
        "the code is still in the address"
    );
    browser.picture_on_request("cluster-idle");
    let job = GatedJob::submit(&folder, &cluster, "gated", "by-itself", 1, 2);
    browser.until_says("job_0001");
    job.until("m_0000.1", "running");
    browser.until(
        "its bars are drawn",
        "return document.querySelector('canvas[data-stints]').dataset.stints === '2'",
    );
    browser.picture_on_request("cluster");
    for task in ["m_0000", "m_0001", "r_0000"] {
        job.open(task);
    }
    cluster.wait(&[job.id()]).succeeded();
    browser.until_says("Nothing runs. Submit a job");
    browser.has_no_complaints();
    // The link is used a second time.
    browser.open(&format!("{}/about", origin(&link)));
    browser.click("Sign out");
    browser.until_says("Sign in by a link");
    browser.run("location.replace('about:blank')");
    browser.open(&link);
    browser.until_says("this link was used before");
    browser.until_says("nap web link");
    browser.picture_on_request("sign-in");
}

#[test]
fn suspend_ordered_on_page_is_shown_until_resume() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 1, "fifo", ANYWHERE);
    let job = GatedJob::submit(&folder, &cluster, "gated", "napping", 1, 1);
    job.until("m_0000.1", "running");
    let link = link(&cluster, &[]);
    browser.open(&link);
    browser.click("job_0001");
    browser.until_says("1 running, 0 suspended");
    operate_and_share(&browser, &cluster);
    browser.click("Tasks");
    let button = "document.querySelector('button[aria-label=\"Attempts of job_0001_m_0000\"]')";
    browser.until("the task", &format!("return {button} !== null"));
    // A row opens to the attempts of its task, and the button keeps the focus.
    browser.run(&format!("{button}.focus(); {button}.click()"));
    browser.until_says("job_0001_m_0000.1");
    assert_eq!(
        browser.run("return document.activeElement.getAttribute('aria-expanded')"),
        "true",
        "the button lost the focus"
    );
    browser.picture_on_request("tasks-open");
    browser.run(
        "[...document.querySelectorAll('td button')].find((one) => one.textContent === 'Suspend').click()",
    );
    browser.until(
        "a question is asked",
        "return document.querySelector('dialog[open]') !== null",
    );
    browser.keys("#reason", "the auditors come");
    browser.picture_on_request("order");
    browser.run("document.querySelector('dialog button[type=submit]').click()");
    job.until("m_0000.1", "suspended");
    browser.until_says("Resume");
    let taken = &job.history()["preemptions"][0];
    assert_eq!(
        taken["reason"],
        "the auditors come: requested on the dashboard by browser"
    );
    browser.run("document.querySelector('nav.tabs a[href$=preemptions]').click()");
    browser.until_says("the auditors come: requested on the dashboard by browser");
    browser.has_no_complaints();
    browser.click("Timeline");
    // The timeline is stale until the next answer.
    browser.until(
        "its nap",
        "return document.querySelector('canvas[data-stints]')?.dataset.naps === '1'",
    );
    browser.keys("canvas", "n");
    browser.until_says("then suspended by operator (the auditors come");
    let spoken = browser.run("return document.getElementById('spoken').textContent");
    assert!(
        spoken
            .as_str()
            .is_some_and(|words| words.contains("kept in memory")),
        "{spoken}"
    );
    browser.picture_on_request("nap");
    job.command("resume", "m_0000");
    browser.until(
        "a second bar",
        "return document.querySelector('canvas[data-stints]').dataset.stints === '2'",
    );
    browser.keys("canvas", "t");
    browser.until(
        "the same as a table",
        "return document.querySelectorAll('.timeline tbody tr').length === 2",
    );
    job.ends_as_undisturbed();
    browser.until_says("succeeded");
    browser.picture_on_request("timeline-as-table");
    browser.click("Counters");
    browser.until_says("MAP_INPUT_RECORDS");
    browser.click("Tasks");
    browser.click("stderr");
    browser.until_says("job_0001_m_0000.1 stderr");
    browser.has_no_complaints();
}

/// Holds, releases and changes job 1 from its page, and shares the page.
fn operate_and_share(browser: &Browser, cluster: &OwnCluster) {
    let asked = "return document.querySelector('dialog[open]') !== null";
    let send = "document.querySelector('dialog button[type=submit]').click()";
    browser.click("Hold");
    browser.until("a question is asked", asked);
    browser.run(send);
    browser.click("Release");
    browser.until("a question is asked", asked);
    browser.until(
        "the focus is in it",
        "return document.querySelector('dialog').contains(document.activeElement)",
    );
    browser.run(send);
    browser.click("Change");
    browser.until("a question is asked", asked);
    browser.run("document.getElementById('priority').value = 7");
    browser.picture_on_request("change");
    browser.run(send);
    browser.until_says("default, priority 7");
    browser.click("Change");
    browser.until("a question is asked", asked);
    browser.run(send);
    browser.until_says("nothing to change; give priority or queue");
    browser.click("Cancel");
    browser.until(
        "the focus is back",
        "return document.activeElement.textContent === 'Change'",
    );
    let status = cluster.json(&["job", "status", "job_0001"]);
    assert_eq!(
        (&status[0]["priority"], &status[0]["state"]),
        (&7.into(), &"running".into())
    );

    browser.click("Share");
    browser.until_says("No other link is valid.");
    browser.keys("#link-name", "for-ada");
    browser.run(send);
    let made = browser.until(
        "a link",
        "return document.getElementById('link-made')?.value ?? null",
    );
    let made = made.as_str().expect("an address").to_owned();
    assert!(made.contains("/jobs/job_0001#code="), "{made}");
    browser.until_says("for-ada /jobs/job_0001");
    browser.picture_on_request("share");
    browser.click("Revoke");
    browser.until_says("No other link is valid.");
    browser.click("Close");

    // Whoever is signed out arrives, by another link, where they were.
    browser.run("localStorage.removeItem('nap-wanted'); return fetch('/api/nap/v1/sign-out', { method: 'POST' }).then(() => true)");
    browser.run("location.reload()");
    browser.until_says("Sign in by a link");
    let page = browser.run("return location.pathname");
    browser.run("location.replace('about:blank')");
    browser.open(&link(cluster, &[]));
    browser.until(
        "the page again",
        &format!("return location.pathname === {page}"),
    );
    browser.until_says("1 running, 0 suspended");
    browser.has_no_complaints_but(&["400", "401"]);
}

#[test]
fn waiting_job_shows_reason_and_viewer_cannot_order() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 1, "fifo", ANYWHERE);
    let first = GatedJob::submit(&folder, &cluster, "gated", "first", 1, 1);
    first.until("m_0000.1", "running");
    let second = GatedJob::submit(&folder, &cluster, "gated", "second", 2, 1);
    let link = link(&cluster, &["--view"]);
    browser.open(&link);
    // The first page shows that the job waits, with a link to the job that holds the slot.
    browser.until_says("waiting");
    browser.until_says("no map slot is free");
    browser.picture_on_request("waiting");
    browser.run("document.querySelectorAll('td.text a')[0].click()");
    browser.until(
        "the job that holds it",
        "return location.pathname === '/jobs/job_0001'",
    );
    assert_eq!(
        browser
            .run("return [...document.querySelectorAll('button')].some((one) => one.textContent === 'Kill')"),
        false
    );
    let by_hand = "return fetch('/api/nap/v1/jobs/job_0001/kill', { method: 'POST', body: '{}', \
                   headers: { 'Content-Type': 'application/json' } }).then((answer) => answer.status)";
    assert_eq!(browser.run(by_hand), 403);
    browser.until_says(
        "This tab can only view. For orders, open in it a link that this command prints: nap web link",
    );
    browser.has_no_complaints_but(&["403"]);
    for (job, tasks) in [
        (&first, ["m_0000", "r_0000"]),
        (&second, ["m_0000", "r_0000"]),
    ] {
        tasks.iter().for_each(|task| job.open(task));
    }
    cluster.wait(&[first.id(), second.id()]).succeeded();
}

#[test]
fn hostile_history_is_escaped_on_every_page() {
    let folder = Folder::new();
    let Some((browser, server)) = served_hostile(&folder) else {
        return;
    };
    browser.open(&format!("{}/jobs", origin(&server.link)));
    browser.until_says("<img src=x onerror=alert(1)>");
    browser.picture_on_request("jobs");
    let job = format!("{}/jobs/job_0001", origin(&server.link));
    let task = "tasks/job_0001_m_0000";
    for tab in [
        "timeline",
        "tasks",
        "preemptions",
        "counters",
        "submitted",
        "attempts",
        "events",
        task,
    ] {
        browser.open(&format!("{job}/{tab}"));
        browser.until_says("<img src=x onerror=alert(1)>");
        assert_eq!(
            browser.run("return document.querySelectorAll('main img, main script').length"),
            0,
            "{tab}"
        );
        browser.run("document.documentElement.dataset.theme = 'dark'");
        browser.picture_on_request(&format!("{}-dark", tab.replace(task, "task")));
    }
    browser.has_no_complaints();
}

#[test]
fn timeline_of_hundred_thousand_bars_is_drawn() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let history = folder.path("history");
    histories::large(&history, 100_000, 300);
    let server = Served::start(&folder, &history);
    browser.open(&server.link);
    browser.open(&format!("{}/jobs/job_0001", origin(&server.link)));
    let stints =
        "return document.querySelector('canvas[data-stints]')?.dataset.stints === '100000'";
    browser.until("all are drawn", stints);
    // So many tasks are shown by slot.
    let by_slot = "return document.querySelector('button[aria-pressed=true]').innerText";
    assert_eq!(browser.run(by_slot), "By slot");
    browser.picture_on_request("hundred-thousand");
    let drawn = "const canvas = document.querySelector('canvas[data-stints]'); const times = []; \
                 for (let round = 0; round < 9; round += 1) { \
                   document.querySelector('.timeline .view').dispatchEvent(new Event('scroll')); \
                   times.push(Number(canvas.dataset.drawMillis)); } \
                 return times.sort((one, other) => one - other)[4]";
    let millis = browser.run(drawn).as_f64().expect("a number");
    eprintln!("100,000 bars: {millis} ms to draw what fits the screen");
    // Keys select the first bar.
    browser.keys("canvas", "l");
    browser.until_says("job_0001_m_0000.1 on");
    // The table has all rows, but only some of them are in the document.
    browser.keys("canvas", "t");
    let table = "const table = document.querySelector('.timeline table'); \
                 return [table.rows.length, table.getAttribute('aria-rowcount')].join()";
    assert_eq!(browser.run(table), "61,100001");
    browser.run("document.querySelector('.timeline .long').scrollTop = 1e9");
    let last = "return document.querySelector('.timeline tbody tr:last-child').getAttribute('aria-rowindex') === '100001'";
    browser.until("the last of them", last);
    let is_seen = "const box = document.querySelector('.timeline .long').getBoundingClientRect(); \
                   const row = document.querySelector('.timeline tbody tr:last-child').getBoundingClientRect(); \
                   return row.bottom > box.top && row.bottom <= box.bottom + 1";
    assert_eq!(browser.run(is_seen), true, "the last row is out of sight");
    browser.picture_on_request("hundred-thousand-as-table");
    browser.click("Tasks");
    browser.until_says("100 of 100,000 are shown");
    browser.picture_on_request("hundred-thousand-tasks");
    // Clicking a column head sorts all rows, not only the visible ones; the address records the order.
    browser.click("Took");
    let sorted =
        "return document.querySelector('th[aria-sort=descending]')?.innerText.startsWith('Took')";
    browser.until("the slowest come first", sorted);
    assert_eq!(browser.run("return location.search"), "?sort=-took");
    browser.until(
        "one of 1.4 s is the first",
        "return document.querySelector('tbody .took')?.innerText === '1.4 s'",
    );
    browser.open(&format!("{}/jobs?sort=name", origin(&server.link)));
    let sorted =
        "return document.querySelector('th[aria-sort=ascending]')?.innerText.startsWith('Name')";
    browser.until("jobs are sorted by name", sorted);
    browser.has_no_complaints_but_slow_answers();
}

/// Opens a browser on the history of a job whose every text contains HTML markup.
fn served_hostile(folder: &Folder) -> Option<(Browser, Served)> {
    let browser = Browser::start(folder)?;
    let history = folder.path("history");
    histories::hostile(&history);
    let server = Served::start(folder, &history);
    browser.open(&server.link);
    Some((browser, server))
}

/// A running `nap history serve`, ended when it is dropped.
struct Served {
    process: Child,
    link: String,
}

impl Served {
    fn start(folder: &Folder, history: &std::path::Path) -> Served {
        let mut command = program("nap");
        command
            .args(["history", "serve", "--web", "127.0.0.1:0"])
            .arg(history);
        Served::by(folder, command)
    }

    /// Runs a command that prints a link and serves until it is interrupted.
    fn by(folder: &Folder, mut command: Command) -> Served {
        let said = folder.path("served.txt");
        command
            .stdout(std::fs::File::create(&said).expect("a file"))
            .stderr(Stdio::inherit());
        let process = command.spawn().expect("nap runs");
        let mut link = None;
        wait_until("the page of the history", || {
            let text = std::fs::read_to_string(&said).expect("text");
            link = text
                .strip_prefix("web: ")
                .and_then(|rest| Some(rest.split_once(' ')?.0.to_owned()));
            link.is_some()
        });
        Served {
            process,
            link: link.expect("a link"),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let process = rustix::process::Pid::from_child(&self.process);
        if rustix::process::kill_process(process, rustix::process::Signal::TERM).is_ok() {
            let _ = self.process.wait();
        }
    }
}
