//! Twelve questions of an operator, each answered within three clicks of the first page, on a cluster of three
//! workers with 70 jobs of ten users.

use napreduce_tests::{Folder, GatedJob, OwnCluster, program, run, wait_until};
use serde_json::json;

use super::driver::Browser;
use super::ledger::NATJAM;
use super::{ANYWHERE, link, origin};

/// The Enter key in WebDriver's encoding.
const ENTER: &str = "\u{e007}";
const USERS: [&str; 10] = [
    "ada", "ben", "cleo", "dora", "emil", "fay", "gus", "hana", "ines", "jon",
];
const NAMES: [&str; 5] = [
    "hourly billing",
    "nightly index",
    "sessions",
    "page ranks",
    "log cleaning",
];
/// Jobs that have ended before the browser opens.
const ENDED: usize = 62;
/// The most clicks from the first page to an answer; a key that opens what it selects counts as one.
const CLICKS_MAX: u32 = 3;

/// The cluster with its jobs.
pub struct Busy<'test> {
    /// A job of which one reduce gets most records.
    pub skewed: String,
    /// A job of research from which production took a slot.
    pub preempted: String,
    /// A job with a map that fails each time.
    pub failed: String,
    /// A running job with five fast maps and one that goes on.
    pub straggling: GatedJob<'test>,
    /// A job that waits for a slot.
    pub waiting: String,
}

/// Submits a job of `testjobs` as a user.
pub fn submit(cluster: &OwnCluster, folder: &Folder, user: &str, arguments: &[&str]) -> String {
    let mut command = program("testjobs");
    command
        .env_remove("NAPREDUCE_DIR")
        .env("USER", user)
        .current_dir(folder.root())
        .args(arguments);
    let output = run(command
        .args(["--reduces", "4", "--detach", "--cluster"])
        .arg(cluster.directory()));
    output.succeeded().stdout.trim().to_owned()
}

impl<'test> Busy<'test> {
    /// Submits the jobs, and waits until each is as described.
    pub fn start(folder: &'test Folder, cluster: &'test OwnCluster) -> Busy<'test> {
        folder.write("small/1", "some words of a small file\n".repeat(40));
        folder.write("small/2", "other words of a small file\n".repeat(40));
        folder.write("skewed/1", "some line\n".repeat(200));
        for file in 1..=3 {
            folder.write(&format!("large/{file}"), "some words\n".repeat(300));
        }
        let by = |user: usize, name: &str, rest: &[&str]| {
            let output = format!("out/{name} {user} {}", rest.join("-").replace('/', "-"));
            let queue = if name == "hourly billing" {
                "production"
            } else {
                "research"
            };
            let job = [
                rest,
                &["--name", name, "--queue", queue, "--output", &output],
            ]
            .concat();
            submit(cluster, folder, USERS[user % USERS.len()], &job)
        };
        let mut ended: Vec<String> = (0..ENDED - 4)
            .map(|number| {
                by(
                    number,
                    NAMES[number % NAMES.len()],
                    &["small", "--job", "words-of-bytes"],
                )
            })
            .collect();
        let skewed = by(
            3,
            "sessions",
            &["skewed", "--job", "slow-values", "--number", "8"],
        );
        let failed = by(4, "log cleaning", &["small", "--job", "error-in-map"]);
        ended.extend([skewed.clone(), failed.clone()]);
        let ended: Vec<&str> = ended.iter().map(String::as_str).collect();
        // One of them fails.
        cluster.wait(&ended);
        let preempted = by(
            1,
            "nightly index",
            &["large", "--job", "slow", "--number", "4000"],
        );
        wait_until("its maps have all slots", || {
            cluster.json(&["job", "status", &preempted])[0]["map"]["running"] == 3
        });
        let urgent = by(
            0,
            "hourly billing",
            &["small", "--job", "slow", "--number", "1000"],
        );
        cluster.wait(&[&preempted, &urgent]).succeeded();
        let straggling = GatedJob::submit(folder, cluster, "gated", "rankings", ENDED + 1, 6);
        (0..5).for_each(|map| straggling.open(&format!("m_{map:04}")));
        wait_until("one map is left", || {
            cluster.json(&["job", "status", straggling.id()])[0]["map"]["done"] == 5
        });
        let holder = GatedJob::submit(folder, cluster, "gated", "holder", ENDED + 2, 2);
        holder.until("m_0001.1", "running");
        let waiting: Vec<String> = (0..6)
            .map(|user| by(user, "page ranks", &["large", "--job", "slow"]))
            .collect();
        Busy {
            skewed,
            preempted,
            failed,
            straggling,
            waiting: waiting[0].clone(),
        }
    }
}

/// Counts the clicks since the first page.
struct Walk<'test> {
    browser: &'test Browser,
    page: &'test str,
    clicks: u32,
}

impl Walk<'_> {
    /// Begins at the first page again.
    fn begin(&mut self) {
        self.browser.open(origin(self.page));
        self.clicks = 0;
    }

    fn count(&mut self, what: &str) {
        self.clicks += 1;
        assert!(self.clicks <= CLICKS_MAX, "{what} is click {}", self.clicks);
    }

    /// Clicks a button or link with this text.
    fn click(&mut self, words: &str) {
        self.count(words);
        self.browser.click(words);
    }

    /// Clicks the first element with this selector.
    fn follow(&mut self, selector: &str) {
        self.count(selector);
        let element = format!("document.querySelector({})", json!(selector));
        self.browser
            .until(selector, &format!("return {element} !== null"));
        self.browser.run(&format!("{element}.click()"));
    }

    /// Opens a job by typing its number into the search of every page.
    fn search(&mut self, job: &str) {
        self.count(job);
        self.browser.keys("body", "/");
        self.browser
            .keys("dialog.search input", &format!("{job}{ENTER}"));
        self.browser.until(
            job,
            &format!("return location.pathname.startsWith('/jobs/{job}')"),
        );
    }
}

/// The rows of the first table whose heads contain this one.
fn row_says(walk: &Walk<'_>, words: &[&str]) {
    let wanted = json!(words);
    let script = format!(
        "return [...document.querySelectorAll('main tbody tr')].some((row) => {wanted}.every((one) => row.innerText.includes(one)))"
    );
    walk.browser
        .until(&format!("a row says {words:?}"), &script);
}

#[test]
fn twelve_questions_are_answered_within_three_clicks() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 3, "natjam", &format!("{ANYWHERE}{NATJAM}"));
    let busy = Busy::start(&folder, &cluster);
    let page = link(&cluster, &[]);
    browser.open(&page);
    let mut walk = Walk {
        browser: &browser,
        page: &page,
        clicks: 0,
    };

    // Why does a job wait? The first page says it.
    walk.begin();
    row_says(&walk, &["waiting", "no map slot is free: job_"]);
    row_says(&walk, &["more for the same reason", &busy.waiting]);

    // When is a job done? The first page says it.
    row_says(&walk, &[busy.straggling.id(), "running", "about"]);

    // Which task of a running job is the straggler, and what does it log?
    walk.search(busy.straggling.id());
    walk.click("Tasks");
    row_says(&walk, &["m_0005", "running"]);
    walk.click("stderr");
    browser.until_says("m_0005.1 stderr");

    // The same of a job that has ended.
    walk.begin();
    walk.search(&busy.preempted);
    walk.click("Tasks");
    row_says(&walk, &["m_0002", "succeeded"]);
    walk.click("stderr");

    // What did preemption cost today?
    walk.begin();
    walk.click("Preemptions");
    browser.until_says("saved");
    row_says(&walk, &["nightly index", "hourly billing"]);

    // Which worker fails?
    walk.begin();
    walk.click("Workers");
    walk.follow("main td a[href$='#failed']");
    row_says(
        &walk,
        &[&busy.failed, "invalid digit found in string", "stderr"],
    );

    // Which partition is skewed?
    walk.begin();
    walk.search(&busy.skewed);
    browser.until_says("Skew");

    // Pause a job, and let it go on.
    walk.begin();
    walk.search(busy.straggling.id());
    walk.click("Suspend");
    walk.follow("dialog button[type=submit]");
    busy.straggling.until("m_0005.1", "suspended");
    walk.begin();
    walk.search(busy.straggling.id());
    walk.click("Resume");
    walk.follow("dialog button[type=submit]");

    // Compare with yesterday's run.
    walk.begin();
    walk.search(&busy.preempted);
    walk.click("Submitted");
    walk.click("Compare");
    browser.until_says("--name 'nightly index'");

    // How are memory and disk? Swap has a column where there is swap.
    walk.begin();
    walk.click("Workers");
    ["Free memory", "Free disk", "Attempts use"]
        .iter()
        .for_each(|what| browser.until_says(what));

    // A trace.
    walk.begin();
    walk.search(&busy.preempted);
    browser.until_says("Save a trace for Perfetto");

    // A link for a colleague.
    walk.begin();
    walk.search(&busy.preempted);
    walk.click("Share");
    browser.keys("#link-name", "for-ada");
    walk.follow("dialog button[type=submit]");
    browser.until(
        "a link",
        "return document.querySelector('#link-made') !== null",
    );
    browser.click("Close");

    // What was submitted?
    walk.begin();
    walk.search(&busy.preempted);
    walk.click("Submitted");
    browser.until_says("--number");
    browser.has_no_complaints();
}
