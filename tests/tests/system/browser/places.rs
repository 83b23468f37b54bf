//! The pages of one task and of one worker, and what was submitted; a rerun.

use napreduce_tests::{Folder, GatedJob, OwnCluster};

use super::driver::Browser;
use super::{ANYWHERE, link, origin};

/// Answers the dialog with a reason.
fn answer(browser: &Browser, reason: &str) {
    browser.until(
        "a question is asked",
        "return document.querySelector('dialog[open]') !== null",
    );
    browser.keys("#reason", reason);
    browser.run("document.querySelector('dialog button[type=submit]').click()");
}

/// Runs job 1 again from its page, with another output; the new job is compared with it.
fn rerun_and_compare(browser: &Browser, cluster: &OwnCluster) {
    browser.click("Rerun");
    answer(browser, "once more");
    browser.until_says("exists; choose another");
    browser.keys("#output", "-again");
    answer(browser, ", elsewhere");
    browser.until(
        "the new job",
        "return location.pathname === '/jobs/job_0002'",
    );
    cluster.wait(&["job_0002"]).succeeded();
    browser.click("Submitted");
    browser.until_says("This is the command of the first run; a rerun can have another output.");
    browser.until_says("Earlier jobs of this name");
    browser.click("Compare");
    browser.until_says("Submitted differently");
    browser.until_says("-again");
    browser.until(
        "both jobs are named",
        "return location.search === '?left=job_0001&right=job_0002'",
    );
}

#[test]
fn task_and_worker_pages_show_and_order() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 1, "fifo", ANYWHERE);
    let job = GatedJob::submit(&folder, &cluster, "gated", "napping", 1, 1);
    job.until("m_0000.1", "running");
    let page = link(&cluster, &[]);
    let task = format!("{}/jobs/job_0001/tasks/job_0001_m_0000", origin(&page));
    browser.open(&page);
    browser.open(&format!("{}/jobs/job_0001/tasks", origin(&page)));
    browser.click("job_0001_m_0000");
    browser.until(
        "its task",
        "return location.pathname === '/jobs/job_0001/tasks/job_0001_m_0000'",
    );
    browser.until_says("job_0001_m_0000.1 was launched on worker_0001");
    browser.until_says("stderr of job_0001_m_0000.1");
    browser.click("worker_0001");
    browser.until(
        "its worker",
        "return location.pathname === '/workers/worker_0001'",
    );
    browser.click("Drain");
    answer(&browser, "a new disk");
    browser.until_says("draining");
    browser.until_says("a new disk");
    browser.click("Keep");
    answer(&browser, "it is in already");
    browser.until(
        "it is up",
        "return document.querySelector('dl .state').textContent === 'up'",
    );

    browser.open(&task);
    browser.click("Suspend");
    answer(&browser, "the auditors come");
    browser.until_says("job_0001_m_0000.1 was suspended after");
    browser.until_says("operator wanted its slot, by suspend: the auditors come");
    browser.until(
        "its nap",
        "return document.querySelector('canvas[data-stints]').dataset.naps === '1'",
    );
    browser.picture_on_request("task");
    browser.click("worker_0001");
    let kept = "return document.querySelector('h2 + .scroll td.id a')?.textContent";
    browser.until("what it keeps", &format!("{kept} === 'job_0001_m_0000.1'"));
    browser.until(
        "its slots",
        "return document.querySelector('canvas[data-stints]').dataset.stints === '1'",
    );
    // The history samples workers every ten seconds.
    browser.until(
        "it came",
        "return document.querySelectorAll('h2 + .scroll tbody tr').length >= 2",
    );
    browser.picture_on_request("worker");

    job.command("resume", "m_0000");
    browser.open(&task);
    browser.until_says("job_0001_m_0000.1 resumed after a nap of");
    job.ends_as_undisturbed();
    browser.until_says("job_0001_m_0000.1 ended: succeeded");
    browser.click("job_0001 napping");
    browser.click("Submitted");
    browser.until_says("Attempts per task");
    browser.until_says("--detach");
    browser.until_says("SHA-256 ");
    browser.until_says("Scheduler at its end");
    browser.until_says("No earlier job has this name.");
    browser.picture_on_request("submitted");
    rerun_and_compare(&browser, &cluster);
    // The attempts that failed on a worker are two clicks from the first page, each with its log.
    folder.write("bad/1", "bad\n");
    let failing = ["bad", "--job", "panic-in-map", "--output", "never"];
    let failing = cluster.submit(&folder, &failing);
    cluster.wait(&[&failing]).failed(1, &["failed"]);
    browser.click("Workers");
    let worker = "return document.querySelector('main td a[href$=\"#failed\"]')?.textContent";
    browser.until("failures of the last hour", &format!("{worker} === '4'"));
    browser.click("4");
    browser.until_says(&format!("{failing}_m_0000.4"));
    browser.picture_on_request("worker-failures");
    browser.click("stderr");
    browser.until_says("bad row");
    browser.click("Close");
    browser.open(&format!("{}/jobs/{failing}", origin(&page)));
    browser.until_says(&format!(
        "The last line that {failing}_m_0000.4 printed to stderr:"
    ));
    let last = "return document.querySelector('pre.last-line')?.textContent ?? null";
    browser.until("the panic", &format!("{last}.includes('bad row')"));
    browser.until_says("napreduce 0.");
    browser.open(&format!("{}/jobs/{failing}/tasks", origin(&page)));
    let states = "return [...document.querySelectorAll('tbody td .state')].map((one) => one.textContent).join()";
    browser.until(
        "a failed map and a reduce that never ran",
        &format!("{states} === 'failed,killed'"),
    );
    browser.open(&format!(
        "{}/jobs/job_0001/tasks/job_0001_m_0009",
        origin(&page)
    ));
    browser.until_says("no such task: job_0001_m_0009 (job_0001 has 1 map tasks)");
    browser.has_no_complaints_but(&["404", "409"]);
}
